"""The losses and data of supervised lessons and preferences."""
