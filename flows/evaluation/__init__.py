"""Exams, both as part of a night and on their own."""
