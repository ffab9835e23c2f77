"""Self-play: the student writes the problems that it practises on."""
