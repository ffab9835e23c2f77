"""Supervised lessons on worked solutions."""
