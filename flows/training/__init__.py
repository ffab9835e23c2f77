"""The night's learning: lessons, rounds, and their monitoring."""
