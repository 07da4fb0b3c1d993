"""The figures of a run that learns from tosses."""
import tosses
from learning import load
from style import run_folder

run = run_folder()
flags, metrics = load(run)
tosses.toss(run, flags)
tosses.errors(run, flags)
tosses.errors_in_time(run, flags)
tosses.training(run, flags, metrics)
if "parameters" in metrics:
    tosses.parameters(run, flags, metrics)
