"""What ``run`` needs around the processor: its supervisor, the status file and log, and the record of puts."""
