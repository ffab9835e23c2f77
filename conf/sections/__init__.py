"""The sections of the configuration's schema."""
