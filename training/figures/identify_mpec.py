"""fit.png: tracks, residuals, and the identified friction with its confidence interval, where the program was solved;
motion.png: forces and residuals of the motion that was found."""
from identification import fit, program
from learning import load
from style import run_folder

_, metrics = load(run_folder())
if metrics["mu"] is not None:
    fit()
program()
