"""Hugging Face models, tokenizers and hardware."""
