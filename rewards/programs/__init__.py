"""Extracts the programs in answers, and tests them."""
