"""Child processes, clocks, memory and the arithmetic floor."""
