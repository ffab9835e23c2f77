"""Further machines, joined by Ray: their engines sample beside this machine's own."""
