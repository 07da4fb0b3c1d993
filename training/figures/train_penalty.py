"""rollout.png: the learned block beside the exact one; training.png: how it was learned; rows.png: what."""
from learning import load, rollout, rows, training
from style import run_folder


def main():
    run = run_folder()
    flags, metrics = load(run)
    rollout(run, flags, metrics)
    training(run, ("complementarity", "nonnegativity"), "dimensionless")
    rows(run, metrics)


main()
