"""The three headers of the queued interface, one module each: parsing, responses, and rendering of publications."""
