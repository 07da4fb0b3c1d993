"""fit.png: tracks, what was identified of them, and how sure it is; study.png: by other models."""
from identification import fit, study

fit()
study()
