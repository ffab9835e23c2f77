"""The night's child processes, on this machine and on others connected by Ray."""
