"""Master weights, optimizer state, random state."""
