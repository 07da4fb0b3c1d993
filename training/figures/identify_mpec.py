"""fit.png: tracks, residuals, and the identified friction with its confidence interval."""
from identification import fit

fit()
