"""The parts of the configuration's schema."""
