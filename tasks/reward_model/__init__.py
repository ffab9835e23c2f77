"""The reward model that learns from the owner's picks."""
