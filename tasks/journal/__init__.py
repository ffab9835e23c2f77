"""What the owner taught by day, frozen for the night."""
