"""Exams, the cache of their answers, and the promotion decision."""
