"""Sources of problems and of worked solutions."""
