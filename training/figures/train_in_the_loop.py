"""rollout.png: the learned block beside the exact one; training.png: how it was learned."""
from learning import friction, load, rollout
from style import run_folder


def main():
    run = run_folder()
    flags, metrics = load(run)
    rollout(run, flags, metrics)
    friction(run, flags)


main()
