"""A night under way: its context, hours, preflight checks and progress."""
