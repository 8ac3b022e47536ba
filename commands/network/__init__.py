"""Several queue managers that make up an estate."""
