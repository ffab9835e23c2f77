"""A judge: another model that ranks the answers of a group."""
