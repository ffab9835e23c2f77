"""Exams in a night and outside of one."""
