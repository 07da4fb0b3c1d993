"""fit.png: tracks, residuals, and the identified friction; study.png: the friction that other models identify."""
from identification import fit, study

fit()
study()
