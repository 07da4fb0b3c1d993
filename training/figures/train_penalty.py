"""rollout.png: the learned block beside the exact one; training.png: how it was learned; rows.png: what."""
from learning import draw, rollout, rows, training

draw(rollout, training(("complementarity", "nonnegativity"), "dimensionless"), rows)
