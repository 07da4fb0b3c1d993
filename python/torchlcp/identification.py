"""Parameters and states of systems from measurements: least squares, moving horizons, particle filters, uncertainty.

The methods are compiled, the same for C++ and Python, and call the functions that they are given, which may be any
functions of tensors. All compute in float64, and treat b independent problems at the same time. Results have no gradient.

    def residuals(theta):  # [..., b, p] -> [..., b, m]
        block = SlidingBlock(mass=1.0, dt=0.1, mu=theta[..., 0], gravity=9.81)
        return (block.simulate(v, u).v_next - measured).movedim(0, -1)

    fit = least_squares(residuals, start)
    print(fit.theta, uncertainty(fit.jacobian, noise).std)

fit_motion fits scenes of rigid bodies to recorded motion, with all of this inside.

These standard deviations know the noise alone. Of a model that steps in time, interval adds the bias of its time steps,
and explains says whether the model can be right at all.
"""

import enum
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchlcp._arguments import TensorLike, call, operator
from torchlcp._callbacks import numbered
from torchlcp._motion import (
    LeastLengths, MotionFit, MotionParameter, MotionProgress, MotionScene, MotionStarts, fit_motion, least_lengths,
    motion_of_points, with_velocities,
)

__all__ = [
    "Interval",
    "LeastLengths",
    "LeastSquares",
    "LeastSquaresStatus",
    "Linearization",
    "MotionFit",
    "MotionParameter",
    "MotionProgress",
    "MotionScene",
    "MotionStarts",
    "MovingHorizon",
    "ParticleFilter",
    "Uncertainty",
    "explains",
    "fit_motion",
    "interval",
    "least_lengths",
    "least_squares",
    "least_squares_of_linearized",
    "linearize",
    "motion_of_points",
    "moving_horizon",
    "particle_filter",
    "uncertainty",
    "with_velocities",
]

class Linearization(NamedTuple):
    """residuals [b, m], and their jacobian [b, m, p], which is exact and 0 where a parameter has no effect here."""

    residuals: Tensor
    jacobian: Tensor


class LeastSquaresStatus(enum.IntEnum):
    """How a problem ended.

    CONVERGED: the gradient is 0 up to the tolerance, or the residuals up to the rounding of theta.
    STOPPED: max_iterations ran out.
    UNDEFINED: the residuals are not finite at the start.
    STALLED: the gradient is not 0, but steps along it were rejected until they hardly mattered, as at a kink.
    """

    CONVERGED = 0
    STOPPED = 1
    UNDEFINED = 2
    STALLED = 3


class LeastSquares(NamedTuple):
    """The result of least_squares.

    theta: [b, p]; the start where the status is UNDEFINED.
    objective: [b], the sum of squares.
    residuals: [b, m], at theta.
    jacobian: [b, m, p], at theta; the column of a parameter is 0 where it has no effect.
    iterations: [b], int64.
    status: [b], int8, the values of LeastSquaresStatus.
    """

    theta: Tensor
    objective: Tensor
    residuals: Tensor
    jacobian: Tensor
    iterations: Tensor
    status: Tensor


class Interval(NamedTuple):
    """The result of interval.

    theta: [b, p], the estimates with the finer steps.
    std: [b, p], by uncertainty: from the noise alone; infinite where the data do not determine it.
    bias: [b, p]: theta is too large by this through its time steps; theta - bias is the limit.
    low, high: [b, p], the ends of intervals of 95 %, theta -+ (1.96 std + 1.25 |bias|); NaN where the fit does not explain its
        data.
    explained: [b], bool: whether the residuals without the error of time stepping are what noise leaves.
    """

    theta: Tensor
    std: Tensor
    bias: Tensor
    low: Tensor
    high: Tensor
    explained: Tensor


class MovingHorizon(NamedTuple):
    """The result of moving_horizon.

    mean: [steps + 1, b, d], the state after each step, by the data up to it.
    std: [steps + 1, b, d], its standard deviations, to first order.
    iterations: [steps + 1, b], int64, of each fit.
    """

    mean: Tensor
    std: Tensor
    iterations: Tensor


class ParticleFilter(NamedTuple):
    """The result of particle_filter.

    mean: [steps + 1, b, d], of the weighted particles before resampling.
    std: [steps + 1, b, d], their standard deviation.
    distinct: [steps + 1, b], int64: how many of the particles of the start have descendants after the resampling of the
        step; with roughening, how many of the particles before that step.
    effective: [steps + 1, b], 1 / sum of the squared weights, where equal particles count as one with the sum of their
        weights; 0 where every likelihood is 0.
    particles: [b, n, d], after the last step.
    """

    mean: Tensor
    std: Tensor
    distinct: Tensor
    effective: Tensor
    particles: Tensor


class Uncertainty(NamedTuple):
    """The covariance of a least-squares estimate.

    covariance: [b, p, p], of the determined combinations of parameters; the others contribute 0.
    std: [b, p]; infinite for a parameter that the data do not determine.
    rank: [b], int64, how many independent combinations of the parameters the data determine.
    null_space: [b, p, p]: in its first p - rank rows, an orthonormal basis of the changes of the parameters that have no
        effect on the residuals; the other rows are 0. The parameters are scaled so that the columns of the Jacobian that
        are not 0 have length 1.
    """

    covariance: Tensor
    std: Tensor
    rank: Tensor
    null_space: Tensor


Residuals = Callable[[Tensor], Tensor]
Observer = Callable[[int, Tensor, Tensor], object]


def _of_one(function: Residuals) -> Callable[[list[Tensor], int], list[Tensor]]:
    return lambda tensors, step: [function(*tensors)]


def linearize(residuals: Residuals, theta: TensorLike) -> Linearization:
    """Residuals and their Jacobian, by forward-mode differentiation in all parameters of all problems at the same time.

    Args:
        residuals: a function of tensors that is differentiable in forward mode, [..., b, p] -> [..., b, m], where leading
            dimensions are further points at which the same problems are evaluated.
        theta: [b, p].

    Raises:
        RuntimeError: a shape does not fit, or residuals themselves linearize or fit something, since PyTorch has one level
            of forward mode. Errors of residuals are passed on.
    """
    with numbered(_of_one(residuals)) as (function,):
        return Linearization(*call("_linearize", function, theta))


def _least_squares(
    function: Callable[[list[Tensor], int], list[Tensor]],
    linearized: bool,
    start: TensorLike,
    observer: Observer | None,
    options: dict[str, Any],
) -> LeastSquares:
    def observe(tensors: list[Tensor], step: int) -> list[Tensor]:
        if observer is not None:
            observer(step, *tensors)
        return []

    with numbered(function, observe) as (number, observing):
        options["observer"] = None if observer is None else observing
        return LeastSquares(*call("_least_squares", number, linearized, start, **options))


def least_squares(
    residuals: Residuals,
    start: TensorLike,
    *,
    max_iterations: int = 100,
    tolerance: float = 1e-8,
    least_curvature: float = 0.0,
    lower: TensorLike | None = None,
    observer: Observer | None = None,
) -> LeastSquares:
    """The Levenberg-Marquardt method for a batch of small nonlinear least-squares problems.

    Each problem has its own damping and its own end, so that its result does not depend on the others in the batch, to
    the last bit. A step to residuals that are not finite is rejected.

        Madsen, Nielsen, Tingleff: Methods for Non-linear Least Squares Problems, 2nd ed., 2004, section 3.2.

    Args:
        residuals: as in linearize.
        start: [b, p], float64.
        max_iterations: the largest number of steps.
        tolerance: a problem ends where the next step J d of its linearised residuals has at most this size, relative to
            that of the residuals, both in the 2-norm, or where the step d is within the rounding of theta.
        least_curvature: the damping of a parameter is relative to the square of its column of J, but to no less than this
            for each residual. With 0 the steps do not depend on the units of the parameters; but where a column is
            almost 0, such as that of x in x^2 near x = 0, they may be too long until many were rejected.
        lower: [p], lower bounds of the parameters.
        observer: is called at the start and after each iteration with the iteration, theta [b, p] and the objectives [b].

    Raises:
        RuntimeError: a shape or dtype does not fit. Errors of residuals and observer are passed on.
    """
    options = {
        "max_iterations": max_iterations,
        "tolerance": tolerance,
        "least_curvature": least_curvature,
        "lower": lower,
    }
    return _least_squares(_of_one(residuals), False, start, observer, options)


def least_squares_of_linearized(
    linearized: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    start: TensorLike,
    *,
    max_iterations: int = 100,
    tolerance: float = 1e-8,
    least_curvature: float = 0.0,
    lower: TensorLike | None = None,
    observer: Observer | None = None,
) -> LeastSquares:
    """As least_squares, for residuals that are evaluated with their Jacobian, of those problems only that have not ended.

    Args:
        linearized: from theta [k, p] and the numbers of these k problems, [k], int64, to the residuals [k, m] and their
            Jacobian [k, m, p].
        start, max_iterations, tolerance, least_curvature, lower, observer: as in least_squares.
    """
    options = {
        "max_iterations": max_iterations,
        "tolerance": tolerance,
        "least_curvature": least_curvature,
        "lower": lower,
    }
    return _least_squares(lambda tensors, step: [*linearized(*tensors)], True, start, observer, options)


def moving_horizon(
    propagate: Callable[[Tensor, Tensor], Tensor],
    residuals: Callable[[Tensor, int], Tensor],
    mean: TensorLike,
    deviation: TensorLike,
    steps: int,
    *,
    window: int = 10,
    noises: int = 0,
    max_iterations: int = 20,
) -> MovingHorizon:
    """The states of b systems, with their parameters, while data arrive.

    After each step k the window of the last steps s, ..., k is fitted by least squares,

        |xi|^2 + sum_i |w_i|^2 + sum_i |r_i(x_i)|^2   over xi and w,   x_s = m + L xi,   x_i+1 = F(x_i, w_i),

    where |xi|^2, the arrival cost, stands for the data before the window. Each fit starts at the one before. When the
    window moves on, the first of its terms are linearised at the fit and eliminated, which is exact for linear systems.

        Rao, Rawlings, Mayne: Constrained state estimation for nonlinear discrete-time systems, IEEE TAC 48, 2003.

    Args:
        propagate: F, from states [..., b, d] and process noise [..., b, r], which is standard normal, to the next states.
        residuals: r_i, from states and the number of the step to the errors of its data over their standard deviation,
            [..., b, m]. Both functions must be differentiable in forward mode.
        mean: [b, d], float64, the state before the data of step 0.
        deviation: [b, d], float64, its standard deviations.
        steps: their number.
        window: the number of steps of the window, >= 1.
        noises: r.
        max_iterations: of each fit.

    Raises:
        RuntimeError: a shape, dtype or option does not fit. Errors of the functions are passed on.
    """
    of_step: Callable[[list[Tensor], int], list[Tensor]] = lambda tensors, step: [residuals(tensors[0], step)]
    of_noise: Callable[[list[Tensor], int], list[Tensor]] = lambda tensors, step: [propagate(*tensors)]
    with numbered(of_noise, of_step) as numbers:
        return MovingHorizon(
            *call(
                "_moving_horizon",
                *numbers, mean, deviation, steps, window=window, noises=noises, max_iterations=max_iterations
            )
        )


def particle_filter(
    propagate: Callable[[Tensor], Tensor],
    log_likelihood: Callable[[Tensor, int], Tensor],
    start: TensorLike,
    steps: int,
    generator: torch.Generator | None = None,
    *,
    roughening: TensorLike | None = None,
) -> ParticleFilter:
    """The bootstrap particle filter of b tracks.

    Weights the particles by the likelihood of the data of each step, 0 to `steps`, and resamples them systematically. If
    every likelihood of a track is 0, its particles are kept.

        Gordon, Salmond, Smith: Novel approach to nonlinear/non-Gaussian Bayesian state estimation, IEE Proc. F 140, 1993.

    Args:
        propagate: one step of particles [b, n, d], including the process noise.
        log_likelihood: from particles and the number of the step to the log-likelihood of its data, up to a constant,
            [b, n].
        start: [b, n, d], float64, n > 0.
        steps: their number.
        generator: of the random numbers; None: PyTorch's own.
        roughening: K of section 4 of the source, [d]. After each resampling, component k gets normal noise whose standard
            deviation is K_k n^(-1/d) times the range of that component over the particles.

    Raises:
        RuntimeError: a shape or dtype does not fit. Errors of the functions are passed on.
    """
    of_step: Callable[[list[Tensor], int], list[Tensor]] = lambda tensors, step: [log_likelihood(tensors[0], step)]
    with numbered(_of_one(propagate), of_step) as numbers:
        return ParticleFilter(
            *call("_particle_filter", *numbers, start, steps, generator, roughening=roughening)
        )


@operator("_uncertainty")
def uncertainty(jacobian: TensorLike, noise: TensorLike) -> Uncertainty:
    """The covariance of estimates for independent errors of equal standard deviation, to first order.

    The covariance is noise^2 (J'J)^-1, from the inverse of the Gauss-Newton Hessian. It contains the noise alone: neither
    the bias of time steps, see interval, nor the error of a wrong model, see explains. A combination whose effect is below
    1e-10 of the largest, with the columns of J scaled to equal length, is not determined.

        Seber, Wild: Nonlinear Regression, Wiley, 1989, chapter 2.

    Args:
        jacobian: [b, m, p], float64, of the residuals.
        noise: [b] or [], the standard deviation of the errors.

    Raises:
        RuntimeError: a shape or dtype does not fit.
    """


@operator("_explains")
def explains(
    residuals: TensorLike,
    noise: TensorLike,
    parameters: int,
    *,
    coordinates: int = 1,
    seen: TensorLike | None = None,
) -> Tensor:
    """Whether residuals are what noise leaves of a fit, [b], bool; False where a residual that counts is not finite.

    False where one of two statistics is more than five standard deviations from its expectation. With many normal
    residuals of a true model that happens to one fit in a million. The sum of the squared residuals, over noise^2, may be
    too far above m minus the number of parameters. And the residuals of a coordinate may be correlated in time: the mean
    square of the differences of successive ones is too far below twice their mean square. Residuals whose sum of squares
    is at most noise^2 may be correlated, as those that round-off leaves of data without noise. Where the noise was
    estimated from the residuals, their size tells nothing, and only their correlation checks the model.

        von Neumann: Distribution of the ratio of the mean square successive difference to the variance, Annals of
        Mathematical Statistics 12, 1941.

    Args:
        residuals: [b, m], float64, m = samples times coordinates, the coordinates of a sample one after another.
        noise: [b] or [], > 0, the standard deviation of each residual.
        parameters: the number that were fitted.
        coordinates: 1 or more; with 1, all residuals are one series.
        seen: [b, samples], bool: False for the samples that do not count. None: all count.

    Raises:
        RuntimeError: a shape, dtype or number does not fit.
    """


def interval(
    coarse: LeastSquares, fine: LeastSquares, noise: TensorLike, *, coordinates: int = 1, order: float = 1.0
) -> Interval:
    """Intervals of 95 % that hold the bias of time steps, from two fits, the second with steps of half the length.

    A model that steps in time has the error h^order of its method, with the step h. Its best fit to exact data differs
    from the truth, whatever the noise. The difference of two fits of the same data gives this bias, and that of their
    residuals what the model leaves without it. The intervals hold the truth with a probability of 95 % or, where the
    bias matters, more, since one of their two sides is always too wide. A safety factor of 1.25 stands for the error of the
    bias itself. Fits that end in different minima have a large bias.

        Richardson: The deferred approach to the limit, Philosophical Transactions of the Royal Society A 226, 1927.
        Roache: Perspective: a method for uniform reporting of grid refinement studies, J. Fluids Engineering 116, 1994.

    Args:
        coarse, fine: of least_squares, with theta [b, p] and residuals [b, m].
        noise: [b] or [], the standard deviation of the errors.
        coordinates: those of a sample, as in explains.
        order: of the time stepping, >= 1. Where a smooth model has a higher order than this, its bias is overestimated.

    Raises:
        RuntimeError: a shape, dtype or option does not fit.
    """
    fits = (coarse.theta, coarse.residuals, fine.theta, fine.residuals, fine.jacobian)
    return Interval(*call("_interval", *fits, noise, coordinates=coordinates, order=order))
