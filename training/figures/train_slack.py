"""rollout.png: the learned block beside the exact one; training.png: how it was learned."""
from learning import draw, rollout, training

draw(rollout, training(("prediction", "complementarity", "nonnegativity"), "m/s"))
