"""The pipeline's stages. Each reads artifacts, calls a model or a verifier, and writes an artifact."""
