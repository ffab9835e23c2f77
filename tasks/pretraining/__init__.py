"""Students trained from scratch: their texts, tokenizer and model, and their pretraining."""
