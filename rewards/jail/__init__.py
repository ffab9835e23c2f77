"""The sandbox in which programs run."""
