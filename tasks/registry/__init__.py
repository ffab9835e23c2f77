"""Import, register, promote and prune checkpoints, and write their model cards."""
