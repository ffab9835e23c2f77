"""The night's learning: lessons, rounds, and what watches over them."""
