"""Teaching by day: journal entries become lessons, which the day copy learns at once."""
