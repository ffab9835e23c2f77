"""Extracts programs from answers and tests them."""
