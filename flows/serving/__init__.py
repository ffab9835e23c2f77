"""`nightschool serve`: serves the champion through an OpenAI-compatible API."""
