"""Options that several verbs share, and what they stand for.

They are beside the verbs of both packages, not below the group of commands: the group imports verbs by their names when
they are called, verbs import options, and nothing imports the group.
"""
