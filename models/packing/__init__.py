"""Batches without padding, and attention over them."""
