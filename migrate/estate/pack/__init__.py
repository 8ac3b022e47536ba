"""The pack for a change board: what an estate's migration means for each application, and how it is done and undone."""

from migrate.estate.pack.collecting import Applications, collect, read_applications
from migrate.estate.pack.files import write_pack

__all__ = ["Applications", "collect", "read_applications", "write_pack"]
