"""Migration of an estate: many brokers, each with a record of how far it is, planned and applied in waves.

    estate.toml ──> survey, plan of each broker ──> collisions across brokers ──> apply in waves ──> verify
                    (workers, one broker at a time)

Everything that is decided about one broker is decided by ``migrate.strmqbrk`` and ``migrate.migmbbrk``.
"""
