"""The journal of what the owner taught by day, frozen for the night."""
