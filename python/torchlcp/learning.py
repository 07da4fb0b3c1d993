"""Models from data, and what data say of a model: which of its parameters they determine, and how likely they are.

fit_network learns a network that ends in an LCP from samples alone. The losses of learning are in torchlcp.losses.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from torchlcp._arguments import ListLike, TensorLike, call, operator
from torchlcp._callbacks import numbered
from torchlcp.nn import LcpNetwork

__all__ = [
    "FitProgress",
    "FitResult",
    "FitRound",
    "Identifiability",
    "MarkovChain",
    "fit_network",
    "identifiability",
    "log_likelihood",
    "predicted_states",
]


class FitProgress(NamedTuple):
    """How far fit_network has come.

    rounds: that are complete.
    done: the share of the next one, 0 to 1, or 0 where none follows.
    unknowns: of the best network so far; 0 before the first round is complete.
    validation_rmse: its error, in the units of the targets; infinite before.
    """

    rounds: int
    done: float
    unknowns: int
    validation_rmse: float


class FitRound(NamedTuple):
    """The best network of a round of fit_network.

    Errors are in the units of the targets, roots of the mean square over all outputs. rest is the share of the training
    samples that rest, whose targets are 0, which it predicts to rest exactly; 1 where none rests.
    """

    unknowns: int
    q: str
    training_rmse: float
    validation_rmse: float
    rest: float
    starts: int


class FitResult(NamedTuple):
    """The result of fit_network.

    network: what was learned, float64, on the CPU, to be trained further, saved, exported or scripted.
    validation_rmse, training_rmse: the errors of the chosen network before its last fit to all samples, so that its
        parameters were not fitted to the validation samples; in the units of the targets, roots of the mean square over all
        outputs. An exact network may have learned from some of the validation samples that show what no other sample shows.
    unknowns: their number.
    exact: whether it predicts all samples up to rounding, and rests where they rest.
    rest: see FitRound.
    disagreement: None unless several networks are exact: the share of random states, each component from another sample, in
        which the others predict something else. Where it is > 0, more samples would tell which is right.
    odd: whether the map was held to be odd in the last fit, as the samples allowed.
    inertial: whether each unknown was held to stop a body along its direction, as the samples allowed.
    out_of_time: whether budget_seconds ended the search.
    rounds: those of the search, in their order.
    """

    network: LcpNetwork
    validation_rmse: float
    training_rmse: float
    unknowns: int
    exact: bool
    rest: float
    disagreement: float | None
    odd: bool
    inertial: bool
    out_of_time: bool
    rounds: list[FitRound]


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


@operator("_identifiability")
def identifiability(features: TensorLike) -> Identifiability:
    """Which parameters the data of the linear fit y = features . parameters determine, without a gradient.

    The features are scaled to unit columns before the singular values are compared; a singular value below 1e-10 of the
    largest counts as 0, and so does a column of zeros.

    Args:
        features: [samples, parameters], float64.

    Raises:
        RuntimeError: a shape or dtype does not fit.
    """


@operator("_chain_log_likelihood")
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


@operator("_chain_predicted_states")
def predicted_states(chain: MarkovChain, log_observation: TensorLike) -> Tensor:
    """The probability of each state at each step, given the observations of the steps before it, [..., steps, s].

    The arguments are those of log_likelihood.
    """


def fit_network(
    inputs: ListLike,
    targets: ListLike,
    *,
    unknowns: int | str = "auto",
    starts: int = 192,
    seed: int | None = None,
    generator: torch.Generator | None = None,
    validation: float | tuple[ListLike, ListLike] = 0.2,
    loss: str = "prediction",
    noise: float | str = "auto",
    f: str = "absent",
    G: str = "constant",
    q: str = "auto",
    hidden_units: int = 8,
    activation: str = "tanh",
    definiteness: float = 0.3,
    first_velocity: int | None = None,
    rest_below: float = 0.0,
    budget_seconds: float | None = None,
    progress: Callable[[FitProgress], object] | None = None,
    threads: int | None = None,
    iterations: int = 400,
    learning_rate: float = 0.02,
    batch_size: int = 64,
    kappa: float = 0.0,
    finishing_iterations: int = 80,
    coupling_penalty: float = 5e-3,
    rest_penalty: float = 0.1,
) -> FitResult:
    """Learns y = f(x) + G(x) z, 0 <= z perp M z + q(x) >= 0, with the number of unknowns z, from samples alone.

    What sticks, slides, hits or bounces is learned up to round-off, from random starts, without a model. Rounds of the search
    have one unknown more each: many random starts are fitted in one batch by the Levenberg-Marquardt method, the worst are
    dropped, and the best are finished on all samples. The search ends where the errors on the validation samples are
    round-off and two such networks agree in states that no sample shows, or where more unknowns do not help. Of networks that
    are not exact, the simplest is chosen whose error is the lowest up to chance, and at last it is fitted to all samples.
    include/lcp/learning/network_search.h has the details. Ctrl-C ends it.

        fit = fit_network(x, v_next)  # [samples, p] and [samples, d]
        v_next = fit.network(x)

    Args:
        inputs: [samples, p], in any units.
        targets: [samples, d], in any units.
        unknowns: their number, or "auto": found by the search.
        starts: of a round; one that repeats an earlier round has twice as many as that.
        seed: in [0, 2^32), 0 unless given. The same samples, options and seed give the same bits, whatever the number of
            threads, unless budget_seconds ends the search.
        generator: of random numbers, from which the seed is drawn in place of a seed that is given.
        validation: the share of the samples by which networks are chosen, random ones, or (inputs, targets).
        loss: what finds a first approximation in rounds that begin with random starts alone. "prediction": the error of the
            prediction. By Adam: "bilevel", the soft-constraint loss with growing weights (torchlcp.losses.bilevel_loss), or
            "one_sided", z known from the signs of the targets, y = z+ - z-.
        noise: the standard deviation of noise on the targets: targets of at most three times it count as rest, unless
            rest_below is given. "auto": not known, and only targets that are exactly 0 rest.
        f: the part of y that does not depend on z: "absent", so that y is exactly 0 where all z are, as the velocity of a
            body that rests; "constant", "affine" or "network".
        G: the effect of z: "constant", "affine" or "network".
        q: "affine", "network", or "auto": affine where that is enough.
        hidden_units: the width of the hidden layer of each part that is a network.
        activation: "tanh" or "relu", of the hidden layers.
        definiteness: see torchlcp.nn.LcpNetwork.
        first_velocity: where the targets are the velocities after a step, the column of inputs with the first of those before
            it: then a diagonal M under noise may be held to what inertia allows, if the samples do not contradict it.
        rest_below: targets of at most this size count as rest. Networks are preferred that rest exactly there.
        budget_seconds: what is left of the search is skipped after this time, so that the result depends on the machine.
        progress: called with FitProgress while the fit goes on. What it raises ends the fit.
        threads: the number of threads; None: torch.get_num_threads().
        iterations: of Adam, where loss is not "prediction" or kappa > 0.
        learning_rate: the same.
        batch_size: the same.
        kappa: > 0: Adam comes first with the loss "prediction", too, with the derivative of the LCP smoothed by the central
            path z w = kappa, which falls to 0.
        finishing_iterations: of the Levenberg-Marquardt method on the best starts; 0: Adam alone.
        coupling_penalty: the weight of the entries of M beside its diagonal before the last iterations.
        rest_penalty: the weight of unknowns > 0 in samples that rest.

    Raises:
        RuntimeError: a shape or an option does not fit, or a number is not finite. Errors of progress are passed on.
        TypeError: inputs or targets are no numbers.
        ValueError: seed is given beside generator, or a word is not one of those above.
    """
    if generator is not None:
        if seed is not None:
            raise ValueError("seed must not be given beside generator, from which it is drawn")
        seed = int(torch.randint(2**32, (), generator=generator, device=generator.device))
    if isinstance(unknowns, str) and unknowns != "auto" or unknowns == 0:
        raise ValueError(f'unknowns must be a number >= 1 or "auto"; got {unknowns!r}')
    if isinstance(noise, str) and noise != "auto":
        raise ValueError(f'noise must be a number >= 0 or "auto"; got {noise!r}')
    given = validation if isinstance(validation, tuple) else (None, None)
    if len(given) != 2:
        raise ValueError(f"validation must be a share or a pair (inputs, targets); got {len(given)} of them")

    def tell(tensors: list[Tensor], rounds: int) -> list[Tensor]:
        if progress is not None:
            done, so_far, rmse = tensors[0].tolist()
            progress(FitProgress(rounds, done, int(so_far), rmse))
        return []

    with numbered(tell) as (telling,):
        theta, input_unit, output_unit, numbers, rounds = call(
            "_fit_network",
            inputs, targets, *given,
            validation=0.2 if isinstance(validation, tuple) else validation,
            noise=None if isinstance(noise, str) else noise,
            budget_seconds=budget_seconds,
            f=f,
            G=G,
            q=q,
            hidden_units=hidden_units,
            activation=activation,
            definiteness=definiteness,
            loss=loss,
            unknowns=0 if isinstance(unknowns, str) else unknowns,
            starts=starts,
            seed=0 if seed is None else seed,
            threads=torch.get_num_threads() if threads is None else threads,
            iterations=iterations,
            learning_rate=learning_rate,
            batch_size=batch_size,
            kappa=kappa,
            finishing_iterations=finishing_iterations,
            coupling_penalty=coupling_penalty,
            rest_penalty=rest_penalty,
            rest_below=rest_below,
            first_velocity=first_velocity,
            progress=None if progress is None else telling,
        )
    found, q_is_network, training, validating, rest, exact, apart, odd, inertial, late = numbers.tolist()
    kinds = ("affine", "network")
    network = LcpNetwork(
        len(input_unit),
        len(output_unit),
        int(found),
        f=f,
        G=G,
        q=kinds[int(q_is_network)],
        hidden=hidden_units,
        activation=activation,
        definiteness=definiteness,
    )
    network.set_theta(theta)
    network.input_unit.copy_(input_unit)
    network.output_unit.copy_(output_unit)
    return FitResult(
        network=network,
        validation_rmse=validating,
        training_rmse=training,
        unknowns=int(found),
        exact=bool(exact),
        rest=rest,
        disagreement=None if math.isnan(apart) else apart,
        odd=bool(odd),
        inertial=bool(inertial),
        out_of_time=bool(late),
        rounds=[FitRound(int(n), kinds[int(k)], a, b, c, int(count)) for n, k, a, b, c, count in rounds.tolist()],
    )
