"""Master weights and optimizer state."""
