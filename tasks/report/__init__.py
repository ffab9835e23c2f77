"""The morning report."""
