"""Answers that are programs: extracting and testing them."""
