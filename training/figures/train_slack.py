"""rollout.png: the learned block beside the exact one; training.png: how it was learned."""
from learning import load, rollout, training
from style import run_folder


def main():
    run = run_folder()
    flags, metrics = load(run)
    rollout(run, flags, metrics)
    training(run, ("prediction", "complementarity", "nonnegativity"), "m/s")


main()
