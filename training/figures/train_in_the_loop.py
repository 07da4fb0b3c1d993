"""rollout.png: the learned block beside the exact one; training.png: how it was learned."""
from learning import draw, friction, rollout

draw(rollout, friction)
