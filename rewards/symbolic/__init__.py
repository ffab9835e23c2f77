"""Answers in numbers and formulas: reading, normalising, comparing."""
