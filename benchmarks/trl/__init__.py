"""TRL on the same work."""
