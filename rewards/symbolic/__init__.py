"""Reads, normalises and compares answers that are numbers or formulas."""
