"""Run nights and measure them."""
