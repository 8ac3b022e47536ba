"""The console: a queue manager in the browser.

    access    what the options allow, without letting anybody in; which requests are answered
    source    the queue manager, read on threads of its own, and what it did since the console was opened
    pages     the table of all pages; messages, overview, queues: from the state and a query to what each shows
    server    pages, forms and assets over HTTP: nothing in a page is markup that a program wrote

Pages are made by the server (``templates/``), in the style of all pages (``commands.pages``). A script of our own opens
levels of the topic tree, shows news, and listens to keys; without it, all can be reached all the same.
"""
