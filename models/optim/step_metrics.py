"""The metrics of a GRPO round, from sums over its tokens, completions and steps."""

from collections import defaultdict


def round_means(sums: defaultdict[str, float], steps: int) -> dict[str, float]:
    """Return means and extremes from the sums of `grpo_loss` over all microbatches and those of the `steps`."""
    tokens, sequences = sums["tokens"], sums["sequences"]
    ratio, squared = sums["sampler_ratio"], sums["sampler_ratio_squared"]
    return {
        "loss": sums["loss"] / steps,
        "grad_norm": sums["grad_norm"] / steps,
        "non_finite_steps": sums["non_finite_steps"],
        "tokens": tokens,
        "entropy": sums["entropy"] / tokens,
        "clip_share": sums["clipped"] / tokens,
        "mismatch": sums["mismatch"] / tokens,
        "mismatch_max": sums["mismatch_max"],
        "sampler_ratio": ratio / tokens,
        "sampler_ratio_max": sums["sampler_ratio_max"],
        "sampler_ratio_min": 1 / sums["sampler_inverse_ratio_max"] if sums["sampler_inverse_ratio_max"] else 0.0,
        "sampler_k3": sums["sampler_k3"] / tokens,
        "effective_sample_share": ratio**2 / (tokens * squared) if squared else 0.0,
        "masked_share": sums["masked_sequences"] / sequences,
        "kl": sums["kl"] / tokens,
    }
