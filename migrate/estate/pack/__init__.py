"""The pack for a change board: what an estate's migration means for each application, and how it is done and undone."""
