"""The night's child processes, on this machine and on further ones joined by Ray."""
