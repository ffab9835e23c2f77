"""The day copy, and the data, losses and steps of supervised and preference lessons."""
