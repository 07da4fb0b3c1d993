"""lcp::_compliant_walk and lcp::_compliant_walk_adjoint through PyTorch; what they compute is
tests/physics/compliant_walk_test.cpp."""
import math

import pytest
import torch

from support import assert_same, check_meta, check_meta_strides, check_operators, lcp, normal, tensor

pytestmark = pytest.mark.usefixtures("library")

STEPS = 25
LAW = [0.01, 1e-3, 1.0]  # dt, sigma, beta


def particle(*batch, steps=STEPS, seed=0):
    """Particles that fall, slide and stick; behind the tensors their name and the number of their contacts."""
    parameters = tensor([1.0, 9.81, 0.4, 1e4, 0.02]) * (1 + 0.1 * normal(*batch, 5, seed=seed))
    x = normal(*batch, 6, seed=seed + 1) * tensor([1.0, 1, 0.02, 0.3, 0.3, 0.3])
    return [parameters, x, 2 * normal(*batch, steps, 3, seed=seed + 2), "particle", 1]


def block(*batch, steps=STEPS, seed=0):
    """Blocks that fall on their corners and sides, slide and rest."""
    parameters = tensor([2.0, 0.5, 0.4, 9.81, 0.4, 1e4, 0.02]) * (1 + 0.1 * normal(*batch, 7, seed=seed))
    x = tensor([0, 0.25, 0, 0, 0, 0]) + normal(*batch, 6, seed=seed + 1) * tensor([1.0, 0.02, 0.1, 0.5, 0.3, 1])
    return [parameters, x, normal(*batch, steps, 3, seed=seed + 2) * tensor([5.0, 5, 0.5]), "block", 4]


BODIES = [particle, block]


def walk(arguments, tolerance=None, max_iterations=None):
    return lcp._compliant_walk(*arguments, *LAW, tolerance, max_iterations)


def walk_back(arguments, wanted=7, gradients=None):
    x_next, gamma, y, status, iterations = walk(arguments)
    return lcp._compliant_walk_adjoint(*arguments[:3], x_next, gamma, y, status, *(gradients or (x_next, gamma)), arguments[3],
                                       *LAW, wanted)


def calls():
    for body in BODIES:
        arguments = body(2, steps=3)
        x_next, gamma, y, status, iterations = walk(arguments)
        yield "_compliant_walk", [*arguments, *LAW, None, None], {}
        yield "_compliant_walk_adjoint", [*arguments[:3], x_next, gamma, y, status, x_next, gamma, arguments[3], *LAW, 7], {}


@pytest.mark.parametrize("body", BODIES)
def test_all_steps_are_solved_and_impulses_are_in_their_cones(body):
    arguments = body(50)
    x_next, gamma, y, status, iterations = walk(arguments)
    assert (status == 0).all() and (iterations >= 0).all()
    tangents, normals = gamma.unflatten(-1, (-1, 3)).split([2, 1], -1)
    mu = arguments[0][:, None, 2 if body is particle else 4, None, None]
    assert (normals >= 0).all() and (tangents.norm(dim=-1, keepdim=True) <= mu * normals * (1 + 1e-9)).all()
    assert (normals > 0).any() and (normals == 0).any()


@pytest.mark.parametrize("body", BODIES)
def test_gradients_are_those_of_finite_differences(body):
    arguments = body(3, steps=12)
    x_next, gamma, *_ = walk(arguments)
    weights = [torch.cos(1.7 * torch.arange(x.numel()) + 0.3).double().view(x.shape) for x in (x_next, gamma)]
    for place, gradient in enumerate(walk_back(arguments, gradients=weights)):
        for i in range(0, gradient.numel(), 1 + gradient.numel() // 25):
            values = []
            h = 1e-6 * max(1, abs(arguments[place].reshape(-1)[i]))
            for step in (h, -h):
                moved = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
                moved[place].view(-1)[i] += step
                values.append(sum((x * w).sum() for x, w in zip(walk(moved, 1e-14)[:2], weights)))
            difference = (values[0] - values[1]) / (2 * h)
            assert abs(gradient.reshape(-1)[i] - difference) < 1e-5 * (1 + abs(difference)), (place, i)


def test_meta_tensors_have_the_shapes_and_strides_of_the_results():
    check_meta(calls())
    check_meta_strides(calls())


def test_the_operators_pass_the_checks_of_torch_library():
    check_operators(calls())


@pytest.mark.parametrize("body", BODIES)
def test_vmap_is_a_batch(body):
    arguments = body(3)
    assert_same(torch.vmap(lambda p, x, u: walk([p, x, u, *arguments[3:]]))(*arguments[:3]), walk(arguments))


@pytest.mark.parametrize("body", BODIES)
def test_every_shape_of_the_batch_gives_the_same(body):
    arguments = body(2, 3)
    whole, back = walk(arguments), walk_back(arguments)
    parameters, x, u, *rest = arguments
    for i in range(2):
        for j in range(3):
            one = [parameters[i, j], x[i, j], u[i, j], *rest]
            assert_same(walk(one), tuple(r[i, j] for r in whole))
            assert_same(walk_back(one), tuple(r[i, j] for r in back))
    shared = [parameters[0, 0], x[:, :1], u[:1], *rest]
    full = [parameters[0, 0].expand(2, 3, -1).contiguous(), x[:, :1].expand(2, 3, -1).contiguous(),
            u[:1].expand(2, 3, STEPS, -1).contiguous(), *rest]
    assert_same(walk(shared), walk(full))
    assert_same(walk_back(shared), walk_back(full))


@pytest.mark.parametrize("body", BODIES)
def test_only_wanted_gradients_are_computed_and_they_are_the_same(body):
    arguments = body(2)
    everything = walk_back(arguments)
    for k in range(3):
        assert_same(walk_back(arguments, wanted=1 << k)[k], everything[k])


@pytest.mark.parametrize("body", BODIES)
def test_gradients_through_a_step_that_is_not_solved_are_nan_and_others_are_not(body):
    arguments = body(4)
    arguments[2][1, 7, 0] = math.nan
    x_next, gamma, y, status, iterations = walk(arguments)
    assert (status[1, 7:] == 4).all() and (status[1, :7] == 0).all() and (status[[0, 2, 3]] == 0).all()
    assert x_next[1, 7:].isnan().all() and gamma[1, 7:].isnan().all() and (iterations[1, 7:] == 0).all()
    weights = torch.zeros_like(x_next), torch.zeros_like(gamma)
    weights[0][:, 6] = 1
    before = walk_back(arguments, gradients=weights)
    assert all(g.isfinite().all() for g in before) and (before[2][:, 7:] == 0).all()
    weights[0][:, 8] = 1
    through = walk_back(arguments, gradients=weights)
    assert through[0][1].isnan().all() and through[1][1].isnan().all() and through[2][1, :9].isnan().all()
    assert all(g[[0, 2, 3]].isfinite().all() for g in through)


@pytest.mark.parametrize("body", BODIES)
def test_nothing_to_do_is_done(body):
    for batch, steps in [((0,), 3), ((2,), 0), ((), 0)]:
        arguments = body(*batch, steps=steps)
        x_next, *_, status, iterations = walk(arguments)
        assert x_next.shape == (*batch, steps, 6) and status.shape == (*batch, steps)
        assert all((g == 0).all() for g in walk_back(arguments))


def test_mistakes_are_named():
    def error_of(place, value):
        arguments = [*block(), *LAW, None, None]
        arguments[place] = value
        with pytest.raises(RuntimeError) as error:
            lcp._compliant_walk(*arguments)
        return str(error.value).split("\n")[0]

    assert error_of(3, "ball") == "body must be particle or block; got ball"
    assert error_of(0, torch.ones(5).double()) == "a block has 7 parameters; got 5"
    assert error_of(4, 1) == "a block has 4 contacts; got 1"
    assert error_of(1, torch.ones(5).double()) == "x must be [..., 6]; got [5]"
    assert error_of(2, torch.ones(3, 2).double()) == "u must be [..., T, 3]; got [3, 2]"
    assert error_of(5, -1.0) == "dt must be finite and > 0; got -1"
    assert error_of(6, 0.0) == "sigma must be finite and > 0; got 0"
    assert error_of(7, -1.0) == "beta must be finite and >= 0; got -1"
    assert error_of(9, -1) == "max_iterations must be >= 0; got -1"
    with pytest.raises(RuntimeError, match="parameters must be float64; got Float"):
        walk([x.float() if isinstance(x, torch.Tensor) else x for x in block()])


def inputs(body, dtype=torch.float64):
    """position, velocity, the inputs of 6 steps, and the parameters, of three bodies."""
    parameters, x, u, *_ = body(3, steps=6, seed=5)
    all_inputs = [x[:, :3], x[:, 3:], u.movedim(-2, 0), *parameters.unbind(-1)]
    return [a.to(dtype).clone().requires_grad_() for a in all_inputs]


def simulate(body, *given):
    dt, sigma, beta = LAW
    return getattr(lcp, f"_simulate_compliant_{body.__name__}")(
        *given[:3], given[3:], dt=dt, sigma=sigma, beta=beta, tolerance=1e-14)


@pytest.mark.parametrize("body", BODIES)
def test_rollouts_differentiate_twice_and_forward(body):
    given = inputs(body)
    rollout = lambda *some: simulate(body, *some, *given[len(some):])[:3]
    assert torch.autograd.gradcheck(rollout, given, eps=1e-7, atol=1e-4, rtol=1e-4, check_forward_ad=True)
    few = [x.detach()[..., :1, :].requires_grad_() if x.dim() > 1 else x.detach() for x in given]
    few[2] = few[2].detach()[:3].requires_grad_()
    shared = [x.detach()[0].requires_grad_() for x in given[3:]]
    end = lambda *some: [x[-1] for x in simulate(body, *some)[:3]]
    assert torch.autograd.gradgradcheck(end, [*few[:3], *shared], eps=1e-6, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("body", BODIES)
def test_rollouts_pass_the_transforms_of_torch_func(body):
    given = [x.detach() for x in inputs(body)]
    end = lambda mu: simulate(body, *given[:-3], mu, *given[-2:])[0][-1].square().sum()
    mu = given[-3].clone().requires_grad_()
    gradient, = torch.autograd.grad(end(mu), mu)
    assert (gradient != 0).any()
    torch.testing.assert_close(torch.func.grad(end)(given[-3]), gradient, rtol=1e-9, atol=1e-12)
    slope = torch.func.jvp(end, (given[-3],), (torch.ones(3).double(),))[1]
    torch.testing.assert_close(slope, gradient.sum(), rtol=1e-9, atol=1e-12)
