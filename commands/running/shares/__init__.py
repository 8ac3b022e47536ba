"""Several bridges share one workload: its queue managers, the shares, each worked for by one bridge at a time."""
