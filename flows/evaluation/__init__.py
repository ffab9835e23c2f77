"""Exams, both within a night and standalone."""
