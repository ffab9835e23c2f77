"""Speed, memory and learning, measured beside what a user would pick instead."""
