"""fit.png: tracks and what was identified of them."""
