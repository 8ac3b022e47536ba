"""The report of a migration: the same facts as text, as JSON, and as one page of HTML; and the files beside it."""
