"""The day: lines of the journal as lessons that are learned at once."""
