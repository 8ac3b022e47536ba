"""The core of the bridge: a command message in; effects on the topic space and puts out. No I/O, no clock."""
