"""rollout.png: the learned block beside the exact one."""
from learning import draw, rollout

draw(rollout)
