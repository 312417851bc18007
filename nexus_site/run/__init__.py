"""What starts, watches and stops the processes of one machine."""
