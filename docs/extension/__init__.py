"""Makes the site's reference from the code: a Sphinx extension (``site``), and plain functions that need no Sphinx."""
