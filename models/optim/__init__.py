"""Master weights, optimizer state and random state."""
