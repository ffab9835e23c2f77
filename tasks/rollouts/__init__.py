"""The stages from prompts to advantages: select, sample, score, credit."""
