"""A TorchScript model that C++ wrote, in Python."""
import pathlib
import subprocess
import sys

import pytest
import torch

pytestmark = pytest.mark.usefixtures("library")

PRETRAINED = pathlib.Path(__file__).parents[2] / "models" / "pretrained" / "sliding_block_direct.pt"
FOLDER = PRETRAINED.parent
EXAMPLE = PRETRAINED.parents[2] / "examples" / "load_model.py"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("sliding_block_*.pt")), ids=lambda path: path.stem)
def test_every_pretrained_block_steps_like_coulomb_friction(path):
    """Those of train_penalty and train_structured stick up to their error, the others exactly."""
    learned = torch.jit.load(path)
    assert path.with_suffix(".json").exists() and learned.format_version == 2 and learned.input_sizes
    v, u = states()
    v_next, _, status = learned.step(v, u)
    exact = coulomb(v, u, learned)
    assert (status == 0).all() and (v_next - exact).abs().max() < 1e-4
    if not path.stem.endswith(("penalty", "structured")):
        assert torch.equal(v_next == 0, exact == 0)


@pytest.fixture
def model():
    return torch.jit.load(PRETRAINED)


def states(count=4000):
    generator = torch.Generator().manual_seed(0)
    v, u = torch.randn(2, count, dtype=torch.float64, generator=generator)
    return v, 5 * u


def coulomb(v, u, model):
    free = v + model.dt * u / model.mass
    limit = model.dt * getattr(model, "mu", 0.3) * model.gravity  # a network has no mu
    return free.sign() * (free.abs() - limit).clamp(min=0)


def test_the_pretrained_track_has_friction_that_depends_on_the_position():
    learned = torch.jit.load(FOLDER / "track_network.pt")
    assert (FOLDER / "track_network.json").exists() and learned.format_version == 2 and learned.input_sizes
    v, u = states()
    v, u, x = v, u / 5, torch.pi * torch.rand(len(v), dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    v_next, force, status = learned.step(v, u, x)
    free = v + u
    exact = free.sign() * (free.abs() - (1 + (2 * x).sin() / 2)).clamp(min=0)
    assert (status == 0).all() and (v_next - exact).square().mean().sqrt() < 1e-3
    assert (v_next[exact == 0] == 0).double().mean() > 0.99
    assert torch.allclose(force, v_next - v - u)


def test_attributes(model):
    assert (model.dt, model.mass, model.gravity, model.mu, model.format_version) == (0.1, 1.0, 9.81, 0.3, 2)


def test_steps_like_coulomb_friction_and_sticks_exactly(model):
    v, u = states()
    v_next, force, status = model.step(v, u)
    exact = coulomb(v, u, model)
    assert (v_next - exact).abs().max() < 1e-5
    assert torch.equal(v_next == 0, exact == 0)
    assert (status == 0).all() and status.dtype == torch.int8
    assert torch.allclose(force, model.mass * (exact - v) / model.dt - u, atol=1e-4)
    assert torch.equal(model(v, u), v_next)


def test_takes_any_shape_and_dtype(model):
    v, u = states(12)
    expected = model(v, u)
    assert torch.equal(model(v.view(3, 4), u.view(3, 4)), expected.view(3, 4))
    assert model(v[:, None], u).shape == (12, 12)
    assert model(v[0], u[0]).shape == ()
    assert torch.allclose(model(v.float(), u.float()), expected, atol=1e-6)


def test_differentiates_in_inputs_and_parameters(model):
    v, u = states(50)
    v, u = v.requires_grad_(), u.requires_grad_()
    assert torch.autograd.gradcheck(model, (v, u), eps=1e-7)
    model(v, u).square().sum().backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    assert len(gradients) == 4 and all(g is not None and g.isfinite().all() and g.any() for g in gradients)


def test_trains_on(model, tmp_path):
    """The model of a block with mu = 0.3 is trained with data of a block with twice the inertia."""
    v, u = states(500)
    free = v + model.dt * u / 2
    target = free.sign() * (free.abs() - model.dt * model.mu * model.gravity / 2).clamp(min=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(150):
        optimizer.zero_grad()
        loss = (model(v, u) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 50
    model.save(tmp_path / "again.pt")
    assert torch.equal(torch.jit.load(tmp_path / "again.pt")(v, u), model(v, u))


def test_the_example_prints_mu_where_there_is_one(run, build, tmp_path):
    flags = ("--parameters", "rows", "--samples", 20, "--iterations", 1, "--out", "out", "--quiet")
    assert run("train_in_the_loop", *flags).returncode == 0
    learned_mu, without_mu = FOLDER / "sliding_block_bilevel.pt", tmp_path / "out" / "model.pt"
    for path, printed in ((PRETRAINED, "mu = 0.3,"), (learned_mu, "mu = 0."), (without_mu, "no mu,")):
        command = [sys.executable, EXAMPLE, build / "lib" / "libtorchlcp.so", path]
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.returncode == 0 and printed in result.stdout, result.stderr


def test_says_what_is_missing_without_the_library():
    code = f"import torch; torch.jit.load({str(PRETRAINED)!r})"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode != 0 and "lcp::solve" in result.stderr
