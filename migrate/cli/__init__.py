"""The verbs of migration, found by the command group through their module paths."""
