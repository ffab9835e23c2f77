"""Nights that are run and measured."""
