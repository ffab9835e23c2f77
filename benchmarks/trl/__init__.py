"""The same work done by TRL, for comparison."""
