"""Administration as PCF: what commands/mqsc does, for programs that put commands on SYSTEM.ADMIN.COMMAND.QUEUE."""
