"""The console: a queue manager in the browser.

    opening   what the options and the configuration allow; refuses what would let anybody in
    access    which requests are answered: Host, Origin, session, token
    reading/  the queue manager, read on threads of its own, and what it did since the console was opened
    pages/    one module a page or two: from the state and a query to what a template shows
    rendering what a template shows, as HTML: nothing in it is markup that a program wrote
    server    pages, forms and assets over HTTP, until it is asked to end

Pages are made by the server (``templates/``), in the style of all pages (``commands.pages``). A script of our own opens
levels of the topic tree, shows news, and listens to keys; without it, all can be reached all the same.
"""
