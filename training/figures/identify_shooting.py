"""fit.png: tracks, what was identified of them, and how sure it is."""
from identification import fit

fit()
