"""The stages: each reads artifacts, calls a model or a verifier, and writes an artifact."""
