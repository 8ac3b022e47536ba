"""What every part of the program knows of the disk it works on, and of open files."""
