"""errors.png and errors_in_time.png: the errors of a cube or a model in each protocol."""
import tosses
from learning import load
from style import run_folder

run = run_folder()
flags, _ = load(run)
tosses.errors(run, flags)
tosses.errors_in_time(run, flags)
