"""The day: lines of the journal as lessons that are learnt at once."""
