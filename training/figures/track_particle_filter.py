"""filter.png: the filter's estimates, and the number of its distinct particles."""
from identification import filtered

filtered()
