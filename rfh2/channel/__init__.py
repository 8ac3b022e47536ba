"""The client channel: transmission segments and what is in them, as bytes (wire formats 6.5, docs/wire-formats.md).

layouts      every structure, declared once
segments     segments written, split and read from a connection
structure    one structure in the bytes of a call, its fields read and written by IBM's names
"""
