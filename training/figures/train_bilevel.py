"""rollout.png: the learned block beside the exact one; training.png: loss and error during training."""
from learning import draw, friction, rollout

draw(rollout, friction)
