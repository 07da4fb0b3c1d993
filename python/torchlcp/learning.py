"""What data say of a model: which of its parameters they determine, and how likely they are.

The losses of learning are in torchlcp.losses.
"""

from typing import NamedTuple

from torch import Tensor

from torchlcp._arguments import TensorLike, call

__all__ = ["Identifiability", "MarkovChain", "identifiability", "log_likelihood", "predicted_states"]


class Identifiability(NamedTuple):
    """Which parameters of a linear fit its data determine.

    rank: the number of independent combinations of the parameters that the data determine.
    condition: the largest over the smallest of the singular values of the scaled features that are not 0.
    null_space: [parameters, parameters - rank], orthonormal: changes of the parameters without an effect.
    """

    rank: int
    condition: float
    null_space: Tensor


class MarkovChain(NamedTuple):
    """A process that is in one of s hidden states at each step.

    log_initial: [s], the log of the probabilities of the states at the first step.
    log_transition: [s, s], the log of the probability of state j (column) after state i (row).
    """

    log_initial: Tensor
    log_transition: Tensor


def identifiability(features: TensorLike) -> Identifiability:
    """Which parameters the data of the linear fit y = features . parameters determine, without a gradient.

    The features are scaled to unit columns before the singular values are compared; a singular value below 1e-10 of the
    largest counts as 0, and so does a column of zeros.

    Args:
        features: [samples, parameters], float64.

    Raises:
        RuntimeError: a shape or dtype does not fit.
    """
    return Identifiability(*call("_identifiability", features))


def log_likelihood(chain: MarkovChain, log_observation: TensorLike) -> Tensor:
    """log p(observations) of a chain of hidden states, [...], by the forward recursion.

    It is differentiable in all tensors; its derivative in log_observation is the probability of each state at each step,
    given all observations.

        Rabiner: A tutorial on hidden Markov models, Proceedings of the IEEE 77, 1989, section III A.

    Args:
        chain: see MarkovChain.
        log_observation: [..., steps, s], the log of the density of each step's observation in each state; 0 in every
            state where a step was not observed.

    Raises:
        RuntimeError: a shape does not fit.
    """
    likelihood: Tensor = call("_chain_log_likelihood", *chain, log_observation)
    return likelihood


def predicted_states(chain: MarkovChain, log_observation: TensorLike) -> Tensor:
    """The probability of each state at each step, given the observations of the steps before it, [..., steps, s].

    The arguments are those of log_likelihood.
    """
    states: Tensor = call("_chain_predicted_states", *chain, log_observation)
    return states
