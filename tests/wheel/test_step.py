"""torchlcp.Step and load_steps: a step of one's own, compiled with the headers of the package."""

import pathlib

import pytest
import torch

import torchlcp
from torchlcp import Status

SOURCE = pathlib.Path(__file__).parents[2] / "examples" / "dry_pendulum.cpp"
NUMBERS = {"inertia": 1.0, "weight": 10.0, "friction": 0.5, "dt": 0.01}


@pytest.fixture(scope="module")
def pendulum():
    torchlcp.load_steps(SOURCE)
    return torchlcp.Step("example::dry_pendulum")


def test_a_compilation_that_was_killed_does_not_block_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    folder = tmp_path / f"torch_{torch.__version__}" / "torchlcp_steps_dry_pendulum"
    folder.mkdir(parents=True)
    (folder / "lock").touch()  # what PyTorch leaves there
    torchlcp.load_steps(SOURCE)
    assert list(folder.glob("*.so")) and not (folder / "lock").exists()


def test_it_knows_the_names_of_its_numbers(pendulum):
    assert pendulum.parameters == ("inertia", "weight", "friction", "dt")
    assert pendulum.states == ("angle", "velocity") and pendulum.inputs == ("torque",)
    assert pendulum.pairs == ("forward", "backward")
    assert repr(pendulum) == "Step('example::dry_pendulum'): angle, velocity"


def test_a_pendulum_swings_and_sticks(pendulum):
    swing = pendulum.simulate(NUMBERS, [1.0, 0.0], torch.zeros(1000, 1, dtype=torch.float64))
    assert (swing.status == Status.SOLVED).all() and swing.residual.abs().max() < 1e-9
    angle, velocity = swing.x_next.unbind(-1)
    last = int(velocity.nonzero()[-1])
    assert 300 < last < 999 and (angle[last:] == angle[last]).all()
    assert abs(10 * angle[-1].sin()) < 0.5  # what friction holds


def test_numbers_lists_and_tensors_are_taken_in_any_batch(pendulum):
    u = torch.zeros(3, 1, dtype=torch.float64)
    one = pendulum.simulate(NUMBERS, [1.0, 0.0], u)
    stacked = pendulum.stack(NUMBERS)
    torch.testing.assert_close(pendulum.simulate(stacked, [1.0, 0.0], u.tolist()), one)
    many = pendulum.simulate(NUMBERS | {"friction": torch.tensor([0.5, 2.0]).double()}, [[1.0, 0.0]], u)
    assert many.x_next.shape == (2, 3, 2) and many.status.shape == (2, 3)
    torch.testing.assert_close(many.x_next[0], one.x_next)
    step = pendulum.step(NUMBERS, [1.0, 0.0], [0.0])
    torch.testing.assert_close(step, type(one)(*(x[0] for x in one)))
    single = pendulum.simulate(NUMBERS, torch.tensor([1.0, 0.0]), u.float())
    assert single.x_next.dtype == torch.float32


def test_gradients_reach_parameters_by_name(pendulum):
    friction = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    u = torch.zeros(50, 1, dtype=torch.float64)
    end = lambda f, **options: pendulum.simulate(NUMBERS | {"friction": f}, [1.0, 0.0], u, **options).x_next[-1, 0]
    slope, = torch.autograd.grad(end(friction), friction)
    assert abs(slope - (end(0.5 + 1e-6) - end(0.5 - 1e-6)) / 2e-6) < 1e-7
    smoothed, = torch.autograd.grad(end(friction, kappa=1e-6), friction)
    assert abs(slope - smoothed) < 1e-3


def test_a_feedback_is_that_of_a_loop_of_steps(pendulum):
    generator = torch.Generator().manual_seed(0)
    normal = lambda *shape: torch.randn(*shape, dtype=torch.float64, generator=generator)
    K, reference, x, u = given = [y.requires_grad_() for y in (normal(2, 20, 1, 2), normal(20, 2), normal(2), normal(20, 1))]

    def loop(K, reference, x, u):
        ends = []
        for s in range(20):
            acts = u[s] + (K[:, s] * (reference[s] - x).unsqueeze(-2)).sum(-1)
            x = pendulum.step(NUMBERS, x, acts).x_next
            ends.append(x)
        return torch.stack(ends, -2)

    closed = lambda K, reference, x, u: pendulum.simulate(NUMBERS, x, u, feedback=torchlcp.Feedback(K, reference)).x_next
    torch.testing.assert_close(closed(*given), loop(*given))
    torch.testing.assert_close(*[torch.autograd.grad(f(*given).square().sum(), given) for f in (closed, loop)])
    few = [y.detach().clone().requires_grad_() for y in (K[:, :3], reference[:3], x, u[:3])]
    assert torch.autograd.gradcheck(closed, few, check_forward_ad=True) and torch.autograd.gradgradcheck(closed, few)
    with pytest.raises(RuntimeError, match=r"reference must be \[2\] or \[..., 20, 2\]; got \[20, 1\]"):
        closed(K, reference[:, :1], x, u)


def test_mistakes(pendulum):
    u = torch.zeros(3, 1)
    with pytest.raises(TypeError, match="parameters must be inertia, weight, friction, dt; got inertia, mass"):
        pendulum.simulate({"inertia": 1.0, "mass": 1.0}, [1.0, 0.0], u)
    with pytest.raises(TypeError, match="friction must be a number, a tensor, or a list or an array of numbers; got str"):
        pendulum.simulate(NUMBERS | {"friction": "much"}, [1.0, 0.0], u)
    with pytest.raises(RuntimeError, match=r"x must be \[\.\.\., 2\]: angle, velocity; got \[3\]"):
        pendulum.simulate(NUMBERS, [1.0, 0.0, 0.0], u)
    with pytest.raises(RuntimeError, match='there is no registered step "example::none"'):
        torchlcp.Step("example::none")
    with pytest.raises(FileNotFoundError):
        torchlcp.load_steps("none.cpp")
    with pytest.raises(TypeError, match="at least one source"):
        torchlcp.load_steps()


def test_what_is_loaded_again_replaces_the_step(pendulum, tmp_path):
    changed = tmp_path / "dry_pendulum.cpp"
    changed.write_text(SOURCE.read_text().replace('"example::dry_pendulum"', '"test::loaded"'))
    torchlcp.load_steps(changed)
    u = torch.zeros(1, 1, dtype=torch.float64)
    before = torchlcp.Step("test::loaded").simulate(NUMBERS, [1.0, 0.0], u)
    torch.testing.assert_close(before, pendulum.simulate(NUMBERS, [1.0, 0.0], u))
    changed.write_text(changed.read_text().replace("parameters[3] * velocity", "2 * parameters[3] * velocity"))
    torchlcp.load_steps(changed)
    after = torchlcp.Step("test::loaded").simulate(NUMBERS, [1.0, 0.0], u)
    torch.testing.assert_close(after.x_next[0, 0] - 1, 2 * (before.x_next[0, 0] - 1))


def test_what_does_not_compile_says_so(tmp_path):
    source = tmp_path / "wrong.cpp"
    source.write_text("int wrong = nothing;\n")
    with pytest.raises(RuntimeError, match="nothing"):
        torchlcp.load_steps(source)
