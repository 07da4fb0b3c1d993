"""torchlcp.learning.fit_network: a network that ends in an LCP from arrays of samples alone."""

import io
import math

import numpy
import pytest
import torch

from torchlcp.learning import FitProgress, fit_network
from torchlcp.nn import LcpNetwork

SMALL = {"unknowns": 2, "starts": 24}


def block(count, seed):
    """Steps of a sliding block in SI units, as arrays of NumPy: [count, 2] and [count, 1]."""
    numbers = numpy.random.default_rng(seed)
    v, u = 0.5 * numbers.standard_normal(count), 5 * numbers.standard_normal(count)
    free = v + 0.1 * u
    return numpy.stack([v, u], -1), (numpy.sign(free) * numpy.maximum(abs(free) - 0.1 * 0.3 * 9.81, 0))[:, None]


@pytest.fixture(scope="module")
def small():
    return block(60, 1)


@pytest.fixture(scope="module")
def fit(small):
    return fit_network(*small, **SMALL)


def test_a_block_is_learned_from_an_array_up_to_rounding():
    fit = fit_network(*block(500, 1))
    assert fit.exact and fit.unknowns == 2 and fit.disagreement == 0 and not fit.out_of_time
    assert max(fit.training_rmse, fit.validation_rmse) < 1e-15
    x, y = map(torch.from_numpy, block(2000, 2))
    predicted = fit.network(x)
    assert (predicted - y).abs().max() < 1e-14
    assert torch.equal(predicted == 0, y == 0)
    assert [(r.unknowns, r.q, r.starts) for r in fit.rounds] == [(2, "affine", 192)]


def test_the_network_is_a_module_to_go_on_with(fit, small, tmp_path):
    x, y = map(torch.from_numpy, small)
    network = fit.network
    assert isinstance(network, LcpNetwork) and not network.M.grad_fn and network.M.requires_grad
    exported = torch.export.export(network, (x,)).module()
    assert torch.equal(exported(x), network(x))
    assert torch.equal(torch.jit.trace(network, x)(x), network(x))
    network.save_torchscript(tmp_path / "block.pt", inputs=1)
    assert torch.equal(torch.jit.load(tmp_path / "block.pt")(x[:, 0], x[:, 1]), network(x).squeeze(1))
    file = io.BytesIO()
    torch.save(network.state_dict(), file)
    file.seek(0)
    again = LcpNetwork(2, 1, 2)
    again.load_state_dict(torch.load(file))
    assert torch.equal(again(x), network(x))

    with torch.no_grad():
        again.q_bias.add_(0.1)
    before = (again(x) - y).square().mean()
    before.backward()
    steepness = torch.cat([p.grad.flatten() for p in again.parameters() if p.grad is not None]).norm()
    torch.optim.SGD(again.parameters(), float(1e-3 / steepness)).step()
    assert (again(x) - y).square().mean() < before


def test_samples_may_be_lists_arrays_and_tensors_of_any_float(fit, small):
    theta = fit.network.theta()
    x, y = map(torch.from_numpy, small)
    for samples in [(x, y), (x.tolist(), y.tolist()), (x.T.contiguous().T, small[1])]:
        assert torch.equal(fit_network(*samples, **SMALL).network.theta(), theta)
    single = fit_network(x.float(), y.float().numpy(), unknowns=2, starts=6)
    assert single.network.M.dtype == torch.float64
    # The samples are rounded to float32.
    assert 1e-10 < single.validation_rmse < 1e-6
    with torch.inference_mode():
        assert fit_network(x.clone(), y.clone(), loss="bilevel", **SMALL).exact


def test_a_seed_decides_and_threads_do_not(fit, small):
    theta = fit.network.theta()
    assert torch.equal(fit_network(*small, **SMALL, seed=0, threads=3).network.theta(), theta)
    assert not torch.equal(fit_network(*small, **SMALL, seed=1).network.theta(), theta)
    drawn = [fit_network(*small, **SMALL, generator=torch.Generator().manual_seed(3)).network.theta() for _ in range(2)]
    assert torch.equal(*drawn)
    assert not torch.equal(drawn[0], theta)


@pytest.mark.parametrize("loss", ["prediction", "bilevel", "one_sided"])
def test_each_loss_learns_the_block(small, loss):
    options = {"starts": 24, "q": "affine"} if loss == "one_sided" else SMALL
    assert fit_network(*small, **options, loss=loss, kappa=0.01 if loss == "prediction" else 0.0).exact


def test_parts_and_several_outputs():
    numbers = torch.Generator().manual_seed(0)
    x = torch.randn(200, 3, generator=numbers, dtype=torch.float64)
    y = torch.stack([(x[:, 0] - 0.5).relu(), 1 + x[:, 1] + 10 * (x[:, 2] + x[:, 0]).relu()], -1)
    fit = fit_network(x, y, f="affine", q="affine", starts=32)
    assert fit.network.dependences == {"f": "affine", "G": "constant", "q": "affine"}
    assert fit.validation_rmse < 1e-12
    curved = fit_network(x, x[:, :1].sin() + x[:, 1:2], f="network", q="affine", unknowns=1, starts=8, hidden_units=4)
    assert curved.network.hidden == 4 and curved.network.f_hidden_bias.shape == (4,)
    assert curved.validation_rmse < 0.05
    # It is the error before the last fit to all samples.
    assert (curved.network(x) - x[:, :1].sin() - x[:, 1:2]).square().mean().sqrt() < 0.05


def test_validation_may_be_given(small):
    x, y = block(30, 5)
    fit = fit_network(*small, **SMALL, validation=(x.tolist(), y))
    assert fit.exact


def test_noise_tells_what_rests():
    x, y = block(400, 1)
    noisy = y + 0.02 * numpy.random.default_rng(7).standard_normal(y.shape)
    fit = fit_network(x, noisy, noise=0.02, first_velocity=0, q="affine", unknowns=2, starts=16)
    assert not fit.exact and fit.rest > 0.8
    assert 0.01 < fit.validation_rmse < 0.03
    x, y = map(torch.from_numpy, block(1000, 2))
    assert (fit.network(x) - y).square().mean().sqrt() < 5e-3
    assert (fit.network(x)[y == 0] == 0).double().mean() > 0.95


def test_progress_is_told_and_time_limited(small):
    told = []
    fit = fit_network(*small, **SMALL, progress=told.append)
    assert all(isinstance(now, FitProgress) for now in told)
    assert told[0].rounds == 0 and 0 < told[0].done < 1 and math.isinf(told[0].validation_rmse)
    assert told[-1] == (1, 0, 2, fit.rounds[0].validation_rmse)

    def stop(now):
        raise KeyError(now.rounds)

    with pytest.raises(KeyError, match="0"):
        fit_network(*small, progress=stop)
    hurried = fit_network(*small, budget_seconds=1e-3)
    assert hurried.out_of_time and len(hurried.rounds) == 1


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"targets": [1.0, 2.0]}, RuntimeError, r"targets must be \[samples, outputs\]; got \[2\]"),
        ({"targets": torch.zeros(3, 1)}, RuntimeError, "targets must have a row for each of the 60 of inputs; got 3"),
        ({"inputs": torch.zeros(60, 2).long()}, RuntimeError, "inputs must be floating-point numbers; got Long"),
        ({"inputs": [[math.nan, 0.0]] * 60}, RuntimeError, "inputs must be finite; got nan in row 0"),
        ({"inputs": "x"}, TypeError, "inputs must be a number, a tensor, or a list or an array of numbers; got str"),
        ({"unknowns": "many"}, ValueError, "unknowns must be a number >= 1 or \"auto\"; got 'many'"),
        ({"unknowns": 0}, ValueError, "unknowns must be a number >= 1 or \"auto\"; got 0"),
        ({"noise": "much"}, ValueError, "noise must be a number >= 0 or \"auto\"; got 'much'"),
        ({"loss": "squares"}, RuntimeError, "loss must be prediction, bilevel or one_sided; got squares"),
        ({"G": "cubic"}, RuntimeError, "G must be absent, constant, affine or network; got cubic"),
        ({"q": "constant"}, RuntimeError, "q must be auto, affine or network; got constant"),
        ({"activation": "gelu"}, RuntimeError, "activation must be tanh or relu; got gelu"),
        ({"seed": 1, "generator": torch.Generator()}, ValueError, "seed must not be given beside generator"),
        ({"seed": 2**32}, RuntimeError, r"seed must be in \[0, 2\^32\); got 4294967296"),
        ({"validation": 0.0}, RuntimeError, r"validation must be a share in \(0, 1\); got 0"),
        ({"validation": (1.0,)}, ValueError, r"validation must be a share or a pair \(inputs, targets\); got 1 of them"),
        ({"validation": ([[1.0]], [[1.0]])}, RuntimeError, "validation must have 2 inputs, as the others; got 1"),
        ({"first_velocity": 2}, RuntimeError, "first_velocity must be that of 1 of the 2 inputs, from 0 on; got 2"),
        ({"finishing_iterations": 0}, RuntimeError, "leaves nothing that minimises the loss"),
        ({"loss": "one_sided", "unknowns": 2}, RuntimeError, "unknowns must be found by the search"),
    ],
)
def test_mistakes_are_named(small, change, error, message):
    arguments = dict(zip(("inputs", "targets"), small, strict=True)) | change
    with pytest.raises(error, match=message):
        fit_network(arguments.pop("inputs"), arguments.pop("targets"), **arguments)
