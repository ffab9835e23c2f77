"""The models and how they learn: sampler, trainer, losses, lessons, checkpoints."""
