"""rollout.png: the learned block beside the exact one; training.png: loss and error during training;
rows.png: the learned [M|W]."""
from learning import draw, rollout, rows, training

draw(rollout, training(("complementarity", "nonnegativity"), "dimensionless"), rows)
