"""filter.png: what the filter made of the tracks, and what was left of it."""
from identification import filtered

filtered()
