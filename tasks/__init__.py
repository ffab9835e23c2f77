"""The pipeline's stages. Each reads artifacts, may call a model or a verifier, and writes an artifact."""
