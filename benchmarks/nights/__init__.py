"""Whole nights: run, timed and traced."""
