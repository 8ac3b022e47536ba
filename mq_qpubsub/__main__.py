"""``python -m mq_qpubsub``, and ``qpubsub``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def main() -> None:
    """Run the command line, unless a file of somebody else's hides one of its packages."""
    place = Path(__file__).parents[1]
    for package in ("rfh2", "streams", "commands", "migrate"):
        spec = find_spec(package)
        found = Path(spec.origin) if spec is not None and spec.origin else None
        if found != place / package / "__init__.py":
            raise SystemExit(
                f"qpubsub: {found or 'nothing'} is imported as {package}, instead of {place / package}; rename it, or "
                "take its directory out of PYTHONPATH (python -I -m mq_qpubsub ignores PYTHONPATH)"
            )
    from commands.cli import main as command_line  # noqa: PLC0415  (after it is known to be ours)

    command_line()


if __name__ == "__main__":
    main()
