"""Exams, their cache, and the decision."""
