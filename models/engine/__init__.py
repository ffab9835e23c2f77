"""vLLM: its environment and settings, and the sync of weights with its checks."""
