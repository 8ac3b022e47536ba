"""Where a plan goes: the embedded queue manager, or files for IBM MQ."""
