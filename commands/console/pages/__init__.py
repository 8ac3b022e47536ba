"""The pages of the console: each is a function from the state and a query to the values of its template."""

from commands.console.pages.page import MENU, PAGES, Page, Query

__all__ = ["MENU", "PAGES", "Page", "Query"]
