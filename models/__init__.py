"""Policy, sampler, trainer, losses, checkpoints."""
