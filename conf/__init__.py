"""The configuration, the home's files and the journal's format."""
