"""`nightschool serve`: the champion behind an OpenAI-compatible endpoint."""
