"""``python -m commands.cli``: the same as ``qpubsub``."""

from commands.cli import main

main()
