"""horizon.png: the estimates of the moving horizon, and the iterations that they took."""
from identification import horizon

horizon()
