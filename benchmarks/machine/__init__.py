"""Child processes, clocks and memory."""
