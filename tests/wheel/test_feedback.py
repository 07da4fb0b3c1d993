"""A linear feedback of the state, beside the inputs of a rollout, against a loop that computes what acts in each step."""

import functools
import math

import pytest
import torch
from systems import SYSTEMS, WITHOUT_DERIVATIVE, formulations, numbers

import torchlcp
from torchlcp import Feedback, Status

TREE = torch.utils._pytree
INPUTS = {"sliding": 1, "planar": 2, "point mass": 2, "tripod": 3, "particle": 3, "block": 3}
closed = [(name, options) for name, options in formulations if name in INPUTS]
each = pytest.mark.parametrize("name, options", closed, ids=str)
# Options that the walk through all steps does not have, so that the rollout is a loop over torchlcp.solve.
looped = [(name, {**options, "method": "lemke"}) for name, options in closed if name not in ("particle", "block")]


def case(name, options):
    """A system, its first state, inputs, and a feedback of its own for each step and each of two elements."""
    system, (state, u), _ = SYSTEMS[name]
    if options.get("formulation") == "forward":
        state = state + 1
    wide = lambda x: x.expand(2, *x.shape[-1:]) if name != "sliding" else x
    state = TREE.tree_map(wide, state)
    u = u if name == "sliding" else u.unsqueeze(1)
    generator = torch.Generator().manual_seed(3)
    normal = lambda *shape: torch.randn(*shape, dtype=torch.float64, generator=generator)
    reference = TREE.tree_map(lambda x: x + 0.1 * normal(len(u), *x.shape), state)
    size = joined(name, state).shape[-1]
    return system, state, u, Feedback(0.5 * normal(len(u), 2, INPUTS[name], size), reference)


def joined(name, state):
    return state.unsqueeze(-1) if name == "sliding" else torch.cat(TREE.tree_leaves(state), -1)


def loop(name, system, state, u, feedback, **options):
    """The rollout in which Python computes what acts."""
    steps = []
    for s, (K, of_step) in enumerate(zip(feedback.K, u, strict=True)):
        reference = TREE.tree_map(lambda x: x[s], feedback.reference)
        effect = (K * (joined(name, reference) - joined(name, state)).unsqueeze(-2)).sum(-1)
        acts = of_step + (effect.squeeze(-1) if name == "sliding" else effect)
        found = system.step(state, acts, **options)
        steps.append(found)
        state = found.v_next if hasattr(found, "v_next") else tuple(found.next)
    return type(found)(*(torch.stack(x) for x in zip(*steps, strict=True)))


def with_derivative(results):
    without = WITHOUT_DERIVATIVE | ({"gamma"} if "z" in results._fields else set())
    return {key: x for key, x in results._asdict().items() if key not in without}


def total(results):
    return sum((x * torch.cos(torch.arange(x.numel())).view_as(x)).sum() for x in with_derivative(results).values())


def assert_same_results(found, expected):
    assert type(found) is type(expected)
    torch.testing.assert_close(found.status, expected.status)
    torch.testing.assert_close(with_derivative(found), with_derivative(expected), rtol=1e-9, atol=1e-9)


def function_of(name, system, options, roll_out=None):
    """A rollout as a function of its state, inputs and feedback."""
    roll_out = roll_out or (lambda system, *x, feedback, **o: system.simulate(*x, feedback=feedback, **o))
    return lambda state, u, K, reference: roll_out(system, state, u, feedback=Feedback(K, reference), **options)


@pytest.mark.parametrize("name, options", closed + looped, ids=str)
def test_a_rollout_and_its_gradients_are_those_of_a_loop(name, options):
    system, *x, feedback = case(name, options)
    arguments = TREE.tree_map(lambda x: x.clone().requires_grad_(), (*x, *feedback))
    found = function_of(name, system, options)(*arguments)
    expected = function_of(name, system, options, functools.partial(loop, name))(*arguments)
    assert (found.status == Status.SOLVED).all()
    assert_same_results(found, expected)
    leaves = TREE.tree_leaves(arguments)
    gradients = [torch.autograd.grad(total(y), leaves) for y in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-7, atol=1e-9)
    tangents = TREE.tree_map(torch.ones_like, arguments)
    jvps = [
        torch.func.jvp(lambda *x: tuple(with_derivative(f(*x)).values()), arguments, tangents)[1]
        for f in (function_of(name, system, options),
                  function_of(name, system, options, functools.partial(loop, name)))
    ]
    torch.testing.assert_close(*jvps, rtol=1e-7, atol=1e-9)


@each
def test_derivatives_of_both_orders_are_those_of_differences(name, options):
    system, *x, feedback = case(name, options)
    leaves, tree = TREE.tree_flatten((*x, *feedback))
    leaves = [x.clone().requires_grad_() for x in leaves]
    function = lambda *leaves: total(function_of(name, system, options)(*TREE.tree_unflatten(leaves, tree)))
    assert torch.autograd.gradcheck(function, leaves, check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(function, leaves, check_fwd_over_rev=True)


@pytest.mark.parametrize("name, options", closed + looped[:1] + looped[-1:], ids=str)
def test_it_is_mapped(name, options):
    system, state, u, (K, reference) = case(name, options)
    function = function_of(name, system, options)
    two = lambda x: TREE.tree_map(lambda x: torch.stack([x, 1.01 * x]), x)
    value = lambda *x: total(function(*x))
    for mapped, f in ((function, function), (torch.func.grad(value, argnums=2), torch.func.grad(value, argnums=2))):
        for k, arguments in enumerate(((state, u, two(K), reference), (state, u, K, two(reference)))):
            dims = (None, None, 0, None) if k == 0 else (None, None, None, 0)
            got = torch.func.vmap(mapped, dims)(*arguments)
            for i in range(2):
                one = list(arguments)
                one[2 + k] = TREE.tree_map(lambda x: x[i], one[2 + k])
                for of_map, of_one in zip(TREE.tree_leaves(got), TREE.tree_leaves(f(*one)), strict=True):
                    torch.testing.assert_close(of_map[i], of_one, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", INPUTS)
def test_it_is_compiled_with_its_gradient(name):
    torch._dynamo.reset()
    system, *x, feedback = case(name, {})
    arguments = TREE.tree_map(lambda x: x.clone().requires_grad_(), (*x, *feedback))
    function = lambda *x: total(function_of(name, system, {})(*x))
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    leaves = TREE.tree_leaves(arguments)
    found, expected = compiled(*arguments), function(*arguments)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, leaves), torch.autograd.grad(expected, leaves))


@pytest.mark.parametrize("name", INPUTS)
def test_gains_and_references_broadcast_over_steps_and_elements(name):
    system, state, u, (K, reference) = case(name, {})
    one = TREE.tree_map(lambda x: x[0], reference)
    many = TREE.tree_map(lambda x: x.expand(len(u), *x.shape), one)
    expected = system.simulate(state, u, feedback=Feedback(K[0, 0].expand_as(K), many))
    for few in (K[0, 0], K[:1, :1], K[:1, 0]):
        assert_same_results(system.simulate(state, u, feedback=Feedback(few, TREE.tree_map(lambda x: x[:1], many))), expected)
    single = TREE.tree_map(lambda x: x[0], (state, one))
    assert_same_results(
        system.simulate(single[0], u[:, 0] if name != "sliding" else u[:, :1], feedback=Feedback(K[0, 0], many)),
        system.simulate(TREE.tree_map(lambda x: x.expand(2, *x.shape), single[0]), u, feedback=Feedback(K[0, 0], many)))
    halves = system.simulate(TREE.tree_map(torch.Tensor.float, state), u.float(), feedback=Feedback(K, reference))
    assert all(x.dtype == torch.float32 for x in with_derivative(halves).values())
    zero = system.simulate(state, u, feedback=Feedback((0 * K).tolist(), reference))
    assert_same_results(zero, system.simulate(state, u.expand_as(zero.status) if name == "sliding" else u))


@pytest.mark.parametrize("name, options", [(name, {}) for name in INPUTS] + looped, ids=str)
def test_numbers_that_are_not_finite_reach_only_their_element(name, options):
    system, state, u, (K, reference) = case(name, options)
    alone = system.simulate(state, u, feedback=Feedback(K, reference), **options)
    of_reference, tree = TREE.tree_flatten(reference)
    for place in range(1 + len(of_reference)):
        given = [x.clone() for x in (K, *of_reference)]
        given[place][1, 0] = math.nan
        given = [x.requires_grad_() for x in given]
        found = system.simulate(state, u, feedback=Feedback(given[0], TREE.tree_unflatten(given[1:], tree)), **options)
        assert found.status.tolist() == [[Status.SOLVED] * 2] + [[Status.BAD_INPUT, Status.SOLVED]] * 2
        for x, expected in zip(with_derivative(found).values(), with_derivative(alone).values(), strict=True):
            assert x[1:, 0].isnan().all()
            torch.testing.assert_close((x[0], x[:, 1]), (expected[0], expected[:, 1]), rtol=1e-12, atol=1e-12)
        for gradient in torch.autograd.grad(sum(x[:, 1].sum() for x in with_derivative(found).values()), given):
            assert gradient.isfinite().all() and (gradient[:, 0] == 0).all()


@pytest.mark.parametrize("name", INPUTS)
def test_mistakes_are_named(name):
    system, state, u, (K, reference) = case(name, {})
    m, k = K.shape[-2:]
    for gains in (K[..., :-1], K[:2], K[0, 0, 0]):
        with pytest.raises(RuntimeError, match=rf"K must be \[{m}, {k}\] or \[3, ..., {m}, {k}\]; got"):
            system.simulate(state, u, feedback=Feedback(gains, reference))
    with pytest.raises(RuntimeError, match=r"reference must be \[\d*\] or \[3, ...(, \d)?\]; got"):
        system.simulate(state, u, feedback=Feedback(K, TREE.tree_map(lambda x: x[:2], reference)))
    if not isinstance(state, torch.Tensor):
        with pytest.raises(TypeError, match=r"reference must be (position|pose)_reference, velocity_reference; got 1 tensors"):
            system.simulate(state, u, feedback=Feedback(K, reference[:1]))
    with pytest.raises(TypeError, match="K must be a number, a tensor, or a list or an array of numbers; got str"):
        system.simulate(state, u, feedback=Feedback("much", reference))


def test_a_linear_complementarity_system_takes_it():
    """A block that is held to a path; steps are the last of its batch dimensions."""
    c, steps = 0.1, 6
    system = [numbers(0).view(1, 1), numbers(0).view(1, 1), numbers(0, 0, 0).view(1, 3), numbers(0.5, -0.5, 0).view(1, 3),
              numbers(0), numbers(1, -1, 0).view(3, 1), numbers(c, -c, 0).view(3, 1),
              numbers(c, -c, 1, -c, c, 1, -1, -1, 0).view(3, 3), numbers(0, 0, 1)]
    generator = torch.Generator().manual_seed(0)
    normal = lambda *shape: torch.randn(*shape, dtype=torch.float64, generator=generator)
    given = [x.requires_grad_() for x in (3 * normal(2, steps, 1, 1), normal(2, steps, 1), normal(2, 1), normal(2, steps, 1))]

    def closed(K, reference, x, u):
        return torchlcp.simulate_lcs(*system, x, u, cone=[2, 2, -1], feedback=Feedback(K, reference)).x_next

    def loop(K, reference, x, u):
        ends = []
        for s in range(steps):
            acts = u[:, s] + (K[:, s] * (reference[:, s] - x).unsqueeze(-2)).sum(-1)
            x = torchlcp.simulate_lcs(*system, x, acts.unsqueeze(-2), cone=[2, 2, -1]).x_next[:, 0]
            ends.append(x)
        return torch.stack(ends, 1)

    torch.testing.assert_close(closed(*given), loop(*given))
    gradients = [torch.autograd.grad(f(*given).square().sum(), given) for f in (closed, loop)]
    torch.testing.assert_close(*gradients)
    assert torch.autograd.gradcheck(closed, given, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(closed, given)
    few = closed(given[0][0, 0], given[1][0, 0], *given[2:])
    torch.testing.assert_close(few, closed(given[0][:1, :1], given[1][:1, :1], *given[2:]))
    assert torch.func.vmap(closed, (0, None, None, None))(torch.stack([given[0]] * 2), *given[1:]).shape == (2, 2, steps, 1)
    with pytest.raises(RuntimeError, match=r"K must be \[1, 1\] or \[..., 6, 1, 1\]; got \[2, 5, 1, 1\]"):
        closed(given[0][:, :5], *given[1:])


def test_operators_take_gains_with_a_reference_alone():
    system, state, u, (K, reference) = case("planar", {})
    call = functools.partial(torch.ops.lcp._simulate_planar_block, state, u, system._parameters(), formulation="polyhedral",
                             directions=4, max_passes=1, relaxed=False, direction_tolerance=None)
    for alone in ({"K": K}, {"reference": reference}):
        with pytest.raises(RuntimeError, match="K and reference must both be given, or neither"):
            call(**alone)
    eye = torch.eye(1).double()
    with pytest.raises(RuntimeError, match="K and reference must both be given, or neither"):
        torch.ops.lcp.simulate_lcs(*[eye] * 4, eye[0], *[eye] * 3, eye[0], eye[0], eye, K=eye)
