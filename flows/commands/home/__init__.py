"""Commands that show or change what a home holds."""
