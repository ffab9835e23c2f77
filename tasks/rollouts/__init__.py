"""From prompts to advantages: select, sample, score, credit."""
