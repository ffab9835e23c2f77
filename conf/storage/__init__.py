"""The home: its folders, its journal, durable files and locks."""
