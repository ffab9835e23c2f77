"""Students made from nothing: their texts, tokenizer and model, and their pretraining."""
