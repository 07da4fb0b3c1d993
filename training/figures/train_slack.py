"""rollout.png: the learned block beside the exact one; training.png: loss and error during training."""
from learning import draw, rollout, training

draw(rollout, training(("prediction", "complementarity", "nonnegativity"), "m/s"))
