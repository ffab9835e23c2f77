"""Alarms, and who hears of them."""
