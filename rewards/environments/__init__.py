"""The environments that Night school provides."""
