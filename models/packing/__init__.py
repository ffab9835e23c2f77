"""Padding-free batches, and attention over them."""
