"""Teaching by day: journal entries as lessons that are learned at once."""
