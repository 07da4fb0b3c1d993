"""torchlcp.identification, against closed forms that are written here in other words."""

import inspect
import threading

import pytest
import torch

from torchlcp import _callbacks, identification
from torchlcp.identification import (
    LeastSquaresStatus, explains, interval, least_squares, least_squares_of_linearized, linearize, moving_horizon,
    particle_filter, uncertainty,
)
from torchlcp.physics import SlidingBlock


def numbers(*x):
    return torch.tensor(x, dtype=torch.float64)


def rosenbrock(theta):
    """Its minimum is (1, 1)."""
    a, b = theta.unbind(-1)
    return torch.stack([1 - a, 10 * (b - a * a)], -1)


STARTS = numbers([-1.2, 1.0], [0.0, 0.0], [3.0, -2.0])


@pytest.mark.parametrize("name", identification.__all__)
def test_what_is_public_is_documented(name):
    thing = getattr(identification, name)
    assert inspect.getdoc(thing)
    if inspect.isfunction(thing):
        parameters = inspect.signature(thing).parameters
        assert all(x.annotation is not x.empty for x in parameters.values())
        assert all(f"{x}" in inspect.getdoc(thing) for x in parameters)


@pytest.mark.parametrize(
    "name, operator, result",
    [
        ("interval", "_interval", identification.Interval),
        ("least_squares", "_least_squares", identification.LeastSquares),
        ("linearize", "_linearize", identification.Linearization),
        ("moving_horizon", "_moving_horizon", identification.MovingHorizon),
        ("particle_filter", "_particle_filter", identification.ParticleFilter),
        ("uncertainty", "_uncertainty", identification.Uncertainty),
    ],
)
def test_results_and_defaults_are_those_of_the_operators(name, operator, result):
    schema = getattr(torch.ops.lcp, operator).default._schema
    assert [value.name for value in schema.returns] == list(result._fields)
    parameters = inspect.signature(getattr(identification, name)).parameters
    keywords = [x for x in schema.arguments if x.kwarg_only]
    assert [x.name for x in keywords] == [x.name for x in parameters.values() if x.kind is x.KEYWORD_ONLY]
    assert all(parameters[x.name].default == x.default_value for x in keywords)


def test_a_linearization_is_that_of_autograd():
    found = linearize(rosenbrock, STARTS)
    assert torch.equal(found.residuals, rosenbrock(STARTS))
    expected = torch.func.vmap(torch.func.jacrev(rosenbrock))(STARTS)
    torch.testing.assert_close(found.jacobian, expected, rtol=1e-14, atol=0)


def test_least_squares_find_the_minimum_of_each_problem_as_if_alone():
    seen = []
    fit = least_squares(rosenbrock, STARTS, observer=lambda *x: seen.append(x))
    assert (fit.status == LeastSquaresStatus.CONVERGED).all()
    torch.testing.assert_close(fit.theta, torch.ones(3, 2).double())
    assert [k for k, _, _ in seen] == list(range(fit.iterations.max() + 1))
    assert torch.equal(seen[0][1], STARTS) and torch.equal(seen[-1][2], fit.objective)
    for k in range(3):
        alone = least_squares(rosenbrock, STARTS[k : k + 1])
        assert all(torch.equal(a[0], b[k]) for a, b in zip(alone, fit, strict=True))


def test_residuals_may_come_with_their_jacobian():
    asked = []

    def linearized(theta, problems):
        asked.append(problems.tolist())
        return rosenbrock(theta), torch.func.vmap(torch.func.jacrev(rosenbrock))(theta)

    expected = least_squares(rosenbrock, STARTS)
    torch.testing.assert_close(least_squares_of_linearized(linearized, STARTS), expected)
    assert asked[0] == [0, 1, 2] and asked[-1] == [int(expected.iterations.argmax())]


def test_bounds_and_limits_are_kept():
    fit = least_squares(rosenbrock, STARTS, lower=numbers(1.5, -10.0))
    assert (fit.theta[:, 0] == 1.5).all() and fit.theta[:, 1].tolist() == pytest.approx([2.25] * 3)
    stopped = least_squares(rosenbrock, STARTS, max_iterations=1)
    assert (stopped.status == LeastSquaresStatus.STOPPED).all() and (stopped.iterations == 1).all()
    kink = least_squares(lambda x: torch.cat([3 * x.abs() + 1, x - 0.5], -1), numbers([-3.0]))
    assert kink.status == LeastSquaresStatus.STALLED and abs(kink.theta) < 1e-6
    undefined = least_squares(lambda theta: theta.log(), numbers([-1.0]))
    assert undefined.status == LeastSquaresStatus.UNDEFINED and undefined.theta == -1


def test_the_friction_of_a_block_is_found():
    """A block that slides for ten steps, with its speed measured; the uncertainty is that of the slope."""
    v, u, measured = numbers(5.0), torch.zeros(10, 1).double(), 5 - 0.4 * 9.81 * 0.1 * torch.arange(1, 11).double()

    def residuals(theta):
        block = SlidingBlock(mass=1.0, dt=0.1, mu=theta[..., 0], gravity=9.81)
        return (block.simulate(v, u).v_next.movedim(0, -1) - measured) / 0.01

    fit = least_squares(residuals, numbers([0.1], [0.9]))
    assert fit.theta.flatten().tolist() == pytest.approx([0.4, 0.4])
    found = uncertainty(fit.jacobian, torch.ones(2).double())
    slope = 0.981 * sum(k * k for k in range(1, 11)) ** 0.5 / 0.01
    assert found.std.flatten().tolist() == pytest.approx([1 / slope] * 2) and found.rank.tolist() == [1, 1]


def test_what_data_do_not_determine_has_no_uncertainty():
    found = uncertainty(numbers([[1.0, 1.0], [1.0, 1.0]]), numbers(0.1).squeeze(0))
    assert found.rank == 1 and found.std.isinf().all()
    assert found.null_space[0, 0].abs().tolist() == pytest.approx([0.5**0.5] * 2) and (found.null_space[0, 1] == 0).all()


def test_an_interval_holds_the_bias_of_eulers_method():
    """exp(-t), by Euler's method in 2 and 4 steps a sample; tests/python/test_intervals.py has rigid bodies."""
    t, noise = 0.04 * torch.arange(1, 51).double(), torch.Generator().manual_seed(0)
    data = (-t).exp() + 1e-3 * torch.randn(50, dtype=torch.float64, generator=noise)
    fit = lambda n: least_squares(lambda k: (1 - 0.04 / n * k) ** (t * n / 0.04) - data, numbers([0.9]))
    assert interval(fit(2), fit(4), numbers(1e-4).squeeze(0)).low.isnan().all()  # the residuals are ten times as large
    found = interval(fit(2), fit(4), numbers(1e-3).squeeze(0))
    assert found.explained.all() and abs(found.bias - (found.theta - 1)) < 3 * found.std and found.bias < -5 * found.std
    assert found.low <= 1 <= found.high and (found.high - found.low).item() == pytest.approx(
        2 * (1.959964 * found.std + 1.25 * found.bias.abs()).item())
    assert interval(fit(2), fit(4), numbers(1e-3), order=2.0).bias.item() == pytest.approx(found.bias.item() / 3)


def test_residuals_that_noise_does_not_leave_are_not_explained():
    noise = torch.randn(1, 200, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert explains(noise, numbers(1.0), 2).all() and not explains(2 * noise, numbers(1.0), 2).any()
    assert not explains((0.1 * torch.arange(200).double()).sin().unsqueeze(0), numbers(1.0), 2, coordinates=2).any()
    seen = torch.arange(noise.shape[-1]).expand_as(noise) != 1
    gap = noise.index_fill(-1, torch.tensor([1]), float("nan"))
    assert explains(gap, 1, 2, seen=seen).all() and not explains(gap, 1, 2).any()


def test_a_moving_horizon_is_the_kalman_filter_of_a_linear_system():
    """x' = 0.9 x + 0.3 w, measured with the deviation 0.2."""
    data = torch.randn(13, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = moving_horizon(
        lambda x, w: 0.9 * x + 0.3 * w, lambda x, k: (x - data[k]) / 0.2, numbers([1.0]), numbers([0.5]), 12,
        window=3, noises=1,
    )
    mean, variance = 1.0, 0.25
    for k in range(13):
        if k > 0:
            mean, variance = 0.9 * mean, 0.81 * variance + 0.09
        gain = variance / (variance + 0.04)
        mean, variance = mean + gain * (data[k].item() - mean), (1 - gain) * variance
        assert found.mean[k].item() == pytest.approx(mean) and found.std[k].item() == pytest.approx(variance**0.5)
    assert found.iterations.shape == (13, 1)


def test_a_particle_filter_is_near_the_kalman_filter():
    data, noise = 0.5, torch.Generator().manual_seed(1)
    start = torch.randn(2, 20000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    propagate = lambda x: x + torch.randn(x.shape, dtype=torch.float64, generator=noise)
    call = lambda **options: particle_filter(
        propagate, lambda x, k: -((x[..., 0] - data) ** 2) / 2, start, 1, torch.Generator().manual_seed(2), **options)
    found = call()
    variance = 0.5 + 1  # half of the start's variance is left after the first data
    expected = 0.25 + variance / (variance + 1) * (data - 0.25)
    assert found.mean[1].flatten().tolist() == pytest.approx([expected] * 2, abs=0.03)
    assert found.std[1, 0].item() == pytest.approx((variance / (variance + 1)) ** 0.5, abs=0.03)
    assert (found.effective < 20000).all() and (found.distinct[1] < found.distinct[0]).all()
    assert found.particles.shape == start.shape
    assert (call(roughening=numbers(0.1)).distinct[1] > found.distinct[1]).all()


def test_the_same_generator_gives_the_same_particles():
    start = torch.linspace(0, 1, 50).double().view(1, 50, 1)
    call = lambda seed: particle_filter(
        lambda x: x, lambda x, k: -x[..., 0], start, 2, torch.Generator().manual_seed(seed)).particles
    assert torch.equal(call(0), call(0)) and not torch.equal(call(0), call(1))


@pytest.mark.parametrize(
    "call",
    [
        lambda f: linearize(f, STARTS),
        lambda f: least_squares(f, STARTS),
        lambda f: least_squares(rosenbrock, STARTS, observer=f),
        lambda f: least_squares_of_linearized(f, STARTS),
        lambda f: moving_horizon(f, lambda x, k: x, STARTS, STARTS, 2),
        lambda f: particle_filter(lambda x: x, f, STARTS.unsqueeze(-1), 2),
    ],
)
def test_errors_of_functions_are_passed_on(call):
    def function(*arguments):
        raise KeyError("of the caller")

    with pytest.raises(KeyError, match="of the caller"):
        call(function)
    assert not _callbacks._functions
    torch.testing.assert_close(linearize(rosenbrock, STARTS).residuals, rosenbrock(STARTS))  # nothing is left behind


def test_functions_may_fit_themselves():
    """The inner fit finds the mean of the data; the outer one a number that squares to it."""
    inner = lambda: least_squares(lambda x: x - numbers(1.0, 3.0), numbers([0.0])).theta[0, 0]
    seen = []
    fit = least_squares(
        lambda theta: theta**2 - 2, numbers([1.0]), observer=lambda *_: seen.append(inner().item()))
    assert fit.theta.item() == pytest.approx(2**0.5) and seen == pytest.approx([2.0] * (fit.iterations.item() + 1))


def test_a_fit_within_residuals_is_refused():
    """PyTorch has one level of forward-mode differentiation."""
    with pytest.raises(RuntimeError, match="residuals must not be linearized within residuals"):
        least_squares(lambda theta: least_squares(rosenbrock, STARTS).theta + theta, STARTS)


def test_threads_fit_side_by_side():
    results = [None] * 4

    def fit(k):
        results[k] = least_squares(rosenbrock, STARTS).theta

    threads = [threading.Thread(target=fit, args=(k,)) for k in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all(torch.equal(x, results[0]) for x in results)


def test_mistakes_are_named():
    for call, message in [
        (lambda: least_squares(rosenbrock, STARTS.float()), r"start must be \[b, p\], float64; got \[3, 2\], Float"),
        (lambda: least_squares(rosenbrock, STARTS, lower=numbers(1.0)), r"lower must be \[2\]; got \[1\]"),
        (lambda: moving_horizon(None, None, STARTS, STARTS, 2, window=0), "window must be >= 1; got 0"),
        (lambda: particle_filter(None, None, STARTS, 2), r"start must be \[b, n, d\], float64, n > 0; got \[3, 2\]"),
        (lambda: explains(STARTS, numbers(1.0), 1, coordinates=3), "coordinates must divide the number of residuals, 2; got 3"),
        (lambda: uncertainty(STARTS, numbers(1.0)), r"jacobian must be \[b, m, p\], float64; got \[3, 2\]"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            call()
