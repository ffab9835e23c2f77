"""Lessons from corrections, words, praise and picks."""
