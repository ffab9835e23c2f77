"""TRL doing the same work."""
