"""Steps that users register, see lcp/step.h; their rollouts are those of test_rollout.py, too."""
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from support import assert_near, assert_same, lcp, normal, tensor

pytestmark = pytest.mark.usefixtures("own_steps")

LABEL = "test::spring"


def spring(*batch, steps=8):
    """Parameters, first state and inputs of balls that a wall stops."""
    parameters = tensor([5.0, 0.5, 0.7, 0.05]) * (1 + 0.1 * normal(*batch, 4, seed=0))
    x = tensor([0.5, 0.2, 1.0, 0.3]) + 0.1 * normal(*batch, 4, seed=1)
    return parameters, x, normal(*batch, steps, 1, seed=2)


def with_gradients(*tensors):
    return [x.clone().requires_grad_() for x in tensors]


def simulate(*arguments, step=LABEL, **options):
    return lcp._simulate_step(step, *arguments, **options)


def test_a_step_gives_the_rollouts_of_the_same_system_of_the_library():
    parameters = tensor([1.0, 0.04, 0.4, 9.81, 0.5]) * (1 + 0.1 * normal(100, 5, seed=3))
    x = normal(100, 4, seed=4) * tensor([1, 0.2, 1, 1])
    x[:, 1].abs_()
    u = 2 * normal(100, 80, 2, seed=5)
    D = tensor([[0.0, 1, -1, 0], [1, 0, 0, 0]])
    own = with_gradients(parameters, x, u)
    found = simulate(*own, step="test::point_mass")
    theirs = with_gradients(parameters, x, u)
    x_next, z, w, residual, status, _ = lcp._rollout("point_mass_at_velocities ties=inactive", [*theirs, D], 0)
    assert (status == 0).all() and (z[..., 0] > 0).any() and (z[..., 0] == 0).any()
    for one, other in zip(found, (x_next, z, w, status, residual)):
        assert_near(one.detach(), other.detach())
    weights = normal(*x_next.shape, seed=6)
    gradients = [torch.autograd.grad((y * weights).sum(), inputs) for y, inputs in ((found[0], own), (x_next, theirs))]
    for one, other in zip(*gradients):
        assert_near(one, other)


def test_gradients_of_all_orders_and_modes():
    arguments = with_gradients(*spring(2))
    f = lambda *all: simulate(*all)[:2]
    assert (f(*arguments)[1] > 0).any()
    assert gradcheck(f, arguments, check_forward_ad=True)
    assert gradgradcheck(f, arguments, check_fwd_over_rev=True)


def test_a_step_without_inputs_and_pairs():
    rate, x = with_gradients(tensor([1.2]), tensor([0.9]))
    u = torch.zeros(3, 0).double()
    x_next, z, w, status, residual = simulate(rate, x, u, step="test::decay")
    expected, now = [], x
    for _ in range(3):
        now = now ** 2 * rate.log() / rate.tan()
        expected.append(now)
    assert_near(x_next.detach(), torch.stack(expected).detach())
    assert z.shape == w.shape == (3, 0) and (status == 0).all() and (residual == 0).all()
    f = lambda *all: simulate(*all, u, step="test::decay")[0]
    assert gradcheck(f, (rate, x), check_forward_ad=True)
    assert gradgradcheck(f, (rate, x))


def functions(parameters, state):
    """The step Functions of tests/support/own_steps.cpp."""
    (a,), (x, y, z) = parameters.unbind(-1), state.unbind(-1)
    where = lambda condition, one, other: torch.where(condition, one + 0 * a, other + 0 * a)
    smooth = a.sqrt() + (-x).exp() * a.log() + a ** 1.5 / (1 + x * x) - y.tanh() - 2 / a
    angles = (x.sin() * y.cos() + z.tan() - (0.5 * x).asin() * (0.3 * y).acos()) * (z.atan() - torch.atan2(y, a))
    kinks = x.abs() + torch.minimum(y, z) - 3 * y.clamp_min(0.1) + where(x <= y, a, where(y >= z, 1 - z, 2))
    return torch.stack([smooth, angles, kinks / (1 + where(z < 0, z * z, 0) + where(z > 0.5, 1, x * x))], -1)


def test_functions_have_the_values_and_derivatives_of_torch():
    """On both sides of each branch."""
    parameters, state = with_gradients(0.5 + normal(200, 1, seed=6).abs(), 0.7 * normal(200, 3, seed=7).clamp(-1.9, 1.9))
    weights = normal(200, 3, seed=8)
    step = lambda p, x: simulate(p, x, torch.zeros(1, 0).double(), step="test::functions")[0][:, 0]
    by_torch, by_step = functions(parameters, state), step(parameters, state)
    assert_near(by_step.detach(), by_torch.detach())
    first = [torch.autograd.grad((y * weights).sum(), (parameters, state), create_graph=True) for y in (by_step, by_torch)]
    for one, other in zip(*first):
        assert_near(one.detach(), other.detach())
    second = [torch.autograd.grad(sum((g ** 2).sum() for g in gradients), (parameters, state)) for gradients in first]
    for one, other in zip(*second):
        assert_near(one, other)
    p, x, dp, dx = parameters.detach(), state.detach(), normal(200, 1, seed=9), normal(200, 3, seed=10)
    assert_near(torch.func.jvp(step, (p, x), (dp, dx))[1], torch.func.jvp(functions, (p, x), (dp, dx))[1])


def test_smoothed_gradients_are_those_of_the_central_path():
    parameters, x, u = spring(steps=1)
    x = tensor([0.68, 0.2, 1.0, 0.3])
    kappa = 1e-3
    given = with_gradients(parameters, x)
    z = simulate(*given, u, kappa=kappa)[1]
    found = torch.autograd.grad(z.sum(), given)
    # z w = kappa and w = z + q, so that z = (-q + sqrt(q^2 + 4 kappa)) / 2 moves by -z / (z + w) dq.
    exact = with_gradients(parameters, x)
    q = -simulate(*exact, u)[1].sum()  # where z > 0, w = 0
    point = (-q.detach() + (q.detach() ** 2 + 4 * kappa).sqrt()) / 2
    share = point / (point + kappa / point)
    for one, other in zip(found, torch.autograd.grad(q, exact)):
        assert_near(one, -share * other)
    assert_same(z.detach(), simulate(parameters, x, u)[1])  # the value is exact


def test_single_precision_computes_formulas_in_double():
    parameters, x, u = spring(20)
    exact = simulate(parameters, x, u)
    rounded = simulate(*(each.float() for each in (parameters, x, u)))
    assert rounded[0].dtype == torch.float32
    assert (rounded[0].double() - exact[0]).abs().max() < 1e-5
    assert (rounded[3] == 0).all()


def test_transforms_and_threads():
    parameters, x, u = spring(64)
    loss = lambda p, x, u: simulate(p, x, u)[0].square().sum()
    given = with_gradients(parameters, x, u)
    expected = torch.autograd.grad(loss(*given), given)
    mapped = torch.vmap(torch.func.grad(loss, argnums=(0, 1, 2)))(parameters, x, u)
    assert_same(mapped, expected)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    again = with_gradients(parameters, x, u)
    assert_same(torch.autograd.grad(compiled(*again), again), expected)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = with_gradients(parameters, x, u)
        assert_same(torch.autograd.grad(loss(*alone), alone), expected)
    finally:
        torch.set_num_threads(threads)
    one = lambda p: simulate(p, x[0], u[0])[0]
    forwards, backwards = torch.func.jacfwd(one)(parameters[0]), torch.func.jacrev(one)(parameters[0])
    assert_near(forwards, backwards)


@pytest.mark.parametrize("place", range(3))
def test_a_number_that_is_not_finite_is_bad_input(place):
    given = list(spring(3))
    given[place][1].view(-1)[0] = torch.nan
    x_next, z, w, status, residual = simulate(*given)
    assert (status[1] == 4).all() and x_next[1].isnan().all() and residual[1].isnan().all()
    assert (status[[0, 2]] == 0).all() and x_next[[0, 2]].isfinite().all()
    arguments = with_gradients(*given)
    for kappa in (0.0, 1e-3):
        gradients = torch.autograd.grad(simulate(*arguments, kappa=kappa)[0][[0, 2]].sum(), arguments)
        assert all((x[1] == 0).all() and x.isfinite().all() for x in gradients)


def test_mistakes_say_what_is_expected():
    parameters, x, u = spring()
    names = "stiffness, length, wall, dt"
    for call, message in [
        (lambda: simulate(parameters[:3], x, u), rf"parameters must be \[\.\.\., 4\]: {names}; got \[3\]"),
        (lambda: simulate(parameters, x[:2], u), r"x must be \[\.\.\., 4\]: x, y, v_x, v_y; got \[2\]"),
        (lambda: simulate(parameters, x, u[0]), r"u must be \[\.\.\., T, 1\]: force; got \[1\]"),
        (lambda: simulate(parameters, x.float(), u), "dtype"),
        (lambda: simulate(parameters, x, u, ties="none"), "ties"),
        (lambda: simulate(parameters, x, u, kappa=-1.0), "kappa must be finite and >= 0"),
        (lambda: simulate(parameters, x, u, tolerance=0.0), "tolerance must be finite and > 0"),
        (lambda: simulate(parameters, x, u, step="test::none"), 'no registered step "test::none"'),
        (lambda: simulate(tensor([1.0]), tensor([1.0]), torch.zeros(1, 0).double(), step="tripod"),
         "tripod is the name of a step of the library; register yours under another one"),
        (lambda: simulate(tensor([1.0]), tensor([1.0]), torch.zeros(1, 0).double(), step="test::not_affine"),
         "pairs of test::not_affine must be affine in z; the derivative of w_0 in z_0 is 0 at z = 0"),
        (lambda: simulate(tensor([1.0]), tensor([1.0]), torch.zeros(1, 0).double(), step="test::twice"),
         "two different steps are registered as test::twice"),
        (lambda: simulate(tensor([1.0]), tensor([1.0]), torch.zeros(1, 0).double(), step="test::a name"),
         'the name of a step must not be empty nor have spaces, commas or =; got "test::a name"'),
    ]:
        with pytest.raises(RuntimeError, match=message):
            call()


def test_a_step_with_branches_has_first_derivatives_alone():
    rate, x = with_gradients(tensor([1.2]), tensor([0.9]))
    f = lambda *all, **options: simulate(*all, torch.zeros(3, 0).double(), step="test::branches", **options)[0]
    assert gradcheck(f, (rate, x), check_forward_ad=True)
    smoothed, = torch.autograd.grad(f(rate, x, kappa=1e-9).sum(), rate)
    of_rate, = torch.autograd.grad(f(rate, x).sum(), rate, create_graph=True)
    torch.testing.assert_close(smoothed, of_rate.detach(), rtol=1e-4, atol=1e-6)
    with pytest.raises(RuntimeError, match=r"write lcp::where\(condition, a, b\) in place of if"):
        torch.autograd.grad(of_rate.sum(), rate)
