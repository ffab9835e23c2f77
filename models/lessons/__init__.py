"""Losses and data for supervised and preference lessons."""
