"""Rollouts of linear complementarity systems: the loop over lcp::solve is the reference, through all of PyTorch."""
import io
import itertools

import pytest
import torch
from torch._dynamo import compiled_autograd
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, vmap
from torch.utils.checkpoint import checkpoint

from support import (
    NAN, TIES, WARNINGS_ARE_ERRORS, assert_near, assert_same, check_meta, gradients, lcp, leaves, normal, tensor,
    times,
)

pytestmark = [pytest.mark.usefixtures("library"), WARNINGS_ARE_ERRORS]

NAMES = ["A", "B", "D", "G", "d", "E", "H", "M", "q", "x", "u"]
CORE_DIMS = [2, 2, 2, 2, 1, 2, 2, 2, 1, 1, 2]
UNSOLVED, BAD_INPUT = (1, 2), 4
# n = 4 is the largest for which there is a kernel of its own, n = 6 and 9 are solved by others.
SIZES = [(1, 1, 1), (2, 3, 2), (1, 2, 3), (4, 2, 4), (3, 1, 6), (2, 2, 9), (0, 2, 2), (2, 0, 3), (2, 1, 0), (5, 6, 3)]


def random_system(k, m, n, *batch, steps=7, seed=0, dtype=torch.float64):
    """States that do not grow, P-matrices that are not symmetric; no ties in rollouts of a few steps."""
    for seed in itertools.count(100 * seed, 20):
        shapes = [(k, k), (k, m), (k, n), (k, n), (k,), (n, k), (n, m), (n, n), (n,), (k,), (steps, m)]
        A, B, D, G, d, E, H, S, q, x, u = (normal(*batch, *shape, seed=seed + i) for i, shape in enumerate(shapes))
        R = normal(*batch, n, n, seed=seed + 11)
        M = R.mT @ R + torch.eye(n, dtype=torch.float64) + S - S.mT
        arguments = [0.3 * A, B, 0.2 * D, 0.2 * G, d, E, H, M, q, x, u]
        _, z, w, *_ = loop(*arguments)
        if steps > 10 or (torch.maximum(z, w) > 1e-3).all():
            return [a.to(dtype) for a in arguments]


def sliding_block(*batch, steps=24, dtype=torch.float64, pull=None):
    """The traditional formulation, 1 kg, dt = .1 s, mu m g = 1 N: it slides to and fro, and sticks between."""
    M = tensor([[0.1, -0.1, 1], [-0.1, 0.1, 1], [-1, -1, 0]])
    if pull is None:
        pull = 6 * torch.cos(0.7 * torch.arange(steps)).double() * (torch.arange(steps) % 5 < 3)
        pull[-10:] = 0
    sign = tensor([[1.0], [-1.0], [0.0]])
    zeros = [torch.zeros(1, columns, dtype=torch.float64) for columns in (1, 1, 3)]
    system = [*zeros, tensor([[0.5, -0.5, 0]]), tensor([0.0]), sign, 0.1 * sign, M, tensor([0.0, 0, 1])]
    x = 0.1 * normal(*batch, 1, seed=4)
    return [a.to(dtype) for a in (*system, x, pull.unsqueeze(-1))]


def breaking_system(steps=6, dtype=torch.float64):
    """w = -z + q is infeasible from the step on in which q becomes negative: step 3 of the first trajectory."""
    one, zero = tensor([[1.0]]), tensor([[0.0]])
    u = torch.ones(2, steps, 1, dtype=torch.float64)
    u[0, 3:4] = -5
    arguments = [0.5 * one, one, 0.25 * one, zero, tensor([0.1]), one, one, -one, tensor([0.5]), tensor([0.3]), u]
    return [a.to(dtype) for a in arguments]


def sticks(cone, z, w):
    """Which pairs are directions of a contact that sticks."""
    held = torch.zeros_like(z, dtype=torch.bool)
    for j in {j for j in cone if j >= 0}:
        own = tensor([i == j for i in cone]).bool()
        held = held | (own & ((z[..., j] == 0) & ((w[..., j] > 0) | (z * own > 0).any(-1)))[..., None])
    return held


def loop(A, B, D, G, d, E, H, M, q, x, u, cone=(), **options):
    """x_next, z, w, status and the residual, by one lcp::solve for each step."""
    steps = []
    for s in range(u.shape[-2]):
        h = times(E, x) + times(H, u[..., s, :]) + q
        z, w, status = lcp.solve(M, h, **options)
        residual = torch.minimum(z, times(M, z) + h).abs().detach()
        residual = residual.amax(-1) if z.shape[-1] else residual.sum(-1)
        x = times(A, x) + times(B, u[..., s, :]) + times(D, z) + times(G, torch.where(sticks(cone, z, w), 0, w)) + d
        shape = torch.broadcast_shapes(x.shape[:-1], z.shape[:-1])
        x = x.expand(*shape, x.shape[-1])
        steps.append([x, *(a.expand(*shape, a.shape[-1]) for a in (z, w)), *(a.expand(shape) for a in (status, residual))])
    dims = [-2, -2, -2, -1, -1]
    return [torch.stack(each, dim) for each, dim in zip(zip(*steps), dims)]


def simulate(*arguments, **options):
    return lcp.simulate_lcs(*arguments, **options)


def outputs(f, **options):
    return lambda *arguments: tuple(f(*arguments, **options)[:3])


def loss(f, **options):
    def value(*arguments):
        return sum((k + 1) * (x.sin() + x * x).sum() for k, x in enumerate(f(*arguments, **options)[:3]))

    return value


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-12), (torch.float32, 2e-4)])
def test_it_computes_what_the_loop_computes(size, dtype, tolerance):
    arguments = random_system(*size, 37, dtype=dtype)
    for shared in (False, True):
        if shared:  # one system for all trajectories
            arguments = [a[0] if name not in "xu" else a for name, a in zip(NAMES, arguments)]
        actual, expected = simulate(*arguments), loop(*arguments)
        assert_same(actual[3], expected[3])
        solved = expected[3] == 0
        assert solved.all() or shared
        for a, b in zip(actual[:3], expected[:3]):
            assert a.dtype == dtype
            torch.testing.assert_close(a[solved], b[solved], rtol=tolerance, atol=tolerance)
        assert (actual[4][solved] < tolerance).all()


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("ties", TIES)
def test_gradients_are_those_of_the_loop(size, ties):
    arguments = random_system(*size, 5, seed=2)
    assert_near(gradients(loss(simulate, ties=ties), arguments), gradients(loss(loop, ties=ties), arguments))


CONE = [2, 2, -1]  # of the sliding block


@pytest.mark.parametrize("ties", TIES)
def test_a_block_comes_to_rest_exactly_and_has_the_gradients_of_the_loop(ties):
    arguments = sliding_block(9)
    options = {"cone": CONE, "ties": ties}
    x_next, z, w, status, residual = simulate(*arguments, **options)
    expected = loop(*arguments, **options)
    assert 20 < (x_next == 0).sum() < x_next.numel() - 20
    assert_same(x_next == 0, expected[0] == 0)
    assert_near((x_next, z, w, residual), (*expected[:3], expected[4]))
    assert_same(status, expected[3])
    assert_near(gradients(loss(simulate, **options), arguments), gradients(loss(loop, **options), arguments))
    speed = lambda f: lambda *a: f(*a, **options)[0][:, -1].sum()  # at rest in the end
    assert (x_next[:, -1] == 0).all()
    for name, g in zip(NAMES, gradients(speed(simulate), arguments)):
        assert (g == 0).all() or name in "ABDGd"


def test_what_comes_to_rest_by_forces_alone_rests_exactly():
    # The same block with v_next = v + c (u + lambda+ - lambda-) in place of half the difference of w+ and w-.
    arguments = dict(zip(NAMES, sliding_block(9)))
    expected = simulate(*arguments.values(), cone=CONE)[0]
    arguments |= {"A": tensor([[1.0]]), "B": tensor([[0.1]]), "D": tensor([[0.1, -0.1, 0]]), "G": 0 * arguments["G"]}
    x_next = simulate(*arguments.values())[0]
    assert_near(x_next, expected)
    assert_same(x_next == 0, expected == 0)


def test_both_sides_of_a_branch_have_the_gradients_of_differences():
    # Pulled with .99 and 1.01 times the friction that holds it, for a step.
    for pull in (0.99, 1.01):
        arguments = sliding_block(pull=tensor([pull, 0.0]))
        zero = torch.zeros(2, dtype=torch.float64)
        f = lambda limit, x, u: simulate(*arguments[:8], torch.cat([zero, limit]), x, u, cone=CONE)[0]
        inputs = leaves([tensor([1.0]), tensor([0.0]), arguments[10]])
        assert gradcheck(f, inputs, eps=1e-7, check_forward_ad=True)
        assert gradgradcheck(f, inputs, eps=1e-7)
        slope = torch.autograd.grad(f(*inputs)[0].sum(), inputs)
        assert_near(slope[2][0], tensor([0.0 if pull < 1 else 0.1]))


@pytest.mark.parametrize("size", [(1, 1, 1), (2, 1, 3), (2, 2, 5), (0, 1, 2), (2, 0, 2), (1, 1, 0)], ids=str)
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
def test_derivatives_are_those_of_differences(size, batch):
    arguments = leaves(random_system(*size, *batch, steps=3, seed=1))
    f = outputs(simulate)
    assert gradcheck(f, arguments, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    assert gradgradcheck(f, arguments, check_fwd_over_rev=True, check_batched_grad=True)


@pytest.mark.parametrize("ties", TIES)
def test_second_derivatives_and_forward_mode_are_those_of_the_loop(ties):
    arguments = random_system(2, 2, 3, 2, steps=3, seed=3)
    options = {"ties": ties, "cone": [2, -1, -1]}
    for order in (lambda f: jacfwd(f, argnums=(0, 3, 7, 9)), lambda f: hessian(f, argnums=(2, 8, 10)),
                  lambda f: jacfwd(jacfwd(f, argnums=7), argnums=5)):
        assert_near(order(loss(simulate, **options))(*arguments), order(loss(loop, **options))(*arguments))


@pytest.mark.parametrize("steps", [3, 6])
def test_a_trajectory_that_is_not_solved_ends_and_leaves_the_others_alone(steps):
    arguments = breaking_system(steps)
    x_next, z, w, status, residual = simulate(*arguments)
    solved = (status == 0)
    assert solved[1].all() and solved[0, :3].all()
    for x in (x_next[..., 0], z[..., 0], w[..., 0], residual):
        assert_same(x.isnan(), ~solved)
    if steps == 3:
        return
    assert status[0, 3] in UNSOLVED and (status[0, 4:] == BAD_INPUT).all()
    inputs = leaves(arguments)
    x_next = simulate(*inputs)[0]
    # What does not depend on the steps that failed has a gradient, also in what all trajectories share.
    known = torch.autograd.grad(x_next[solved].square().sum(), inputs)
    only = lambda *a: [loop(*a[:10], a[10][:1, :3])[0][0], loop(*a[:10], a[10][1:])[0][0]]
    expected = gradients(lambda *a: torch.cat(only(*a)).square().sum(), arguments)
    assert_near(known, expected)
    inputs = leaves(arguments)
    unknown = torch.autograd.grad(simulate(*inputs)[0].sum(), inputs)
    assert all(g.isnan().any() for g in (unknown[7], unknown[8], unknown[10][0])) and not unknown[10][1].isnan().any()


@pytest.mark.parametrize("size", [(2, 2, 3), (2, 2, 6)], ids=str)
@pytest.mark.parametrize("name", ["x", "u", "q", "M"])
def test_numbers_that_are_not_finite_end_their_trajectory_alone(name, size):
    arguments = random_system(*size, 3, seed=4)
    expected = simulate(*arguments)
    for bad in (NAN, torch.inf):
        broken = [a.clone() for a in arguments]
        broken[NAMES.index(name)][1].reshape(-1)[-1] = bad
        x_next, z, w, status, residual = simulate(*broken)
        first = 6 if name == "u" else 0
        assert (status[1, first:] == BAD_INPUT).all() and x_next[1, first:].isnan().all() and z[1, first:].isnan().all()
        for a, b in zip((x_next, z, w, status, residual), expected):
            assert_same(a[[0, 2]], b[[0, 2]])


@pytest.mark.parametrize("size", [(1, 1, 3), (4, 2, 4), (2, 2, 7)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_no_bit_depends_on_threads_batch_or_place(size, dtype):
    arguments = random_system(*size, 600, steps=20, dtype=dtype)
    f = loss(simulate)
    with_gradients = lambda a: (*simulate(*a), *gradients(f, a))
    expected = with_gradients(arguments)
    threads = torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            assert_same(with_gradients(arguments), expected)
            shared = [a[0] if name not in "xu" else a for name, a in zip(NAMES, arguments)]
            alike = [a.expand(600, *a.shape) if name not in "xu" else a for name, a in zip(NAMES, shared)]
            assert_same(simulate(*shared), simulate(*[a.contiguous() for a in alike]))
            if count == 1:
                sums = gradients(f, shared)
            assert_same(gradients(f, shared), sums)
    finally:
        torch.set_num_threads(threads)
    for part in (slice(0, 1), slice(1, 4), slice(3, 300), slice(599, 600)):
        some = [a[part] for a in arguments]
        assert_same(with_gradients(some), tuple(x[part] for x in expected))


def test_all_batch_dimensions_broadcast_and_strides_do_not_matter():
    arguments = random_system(2, 1, 3, 4, 3, seed=5)
    batches = [(4, 1), (3,), (1, 3), (), (4, 3), (1, 1), (3,), (4, 1), (1, 3), (4, 3), (3,)]
    some = []
    for a, core, batch in zip(arguments, CORE_DIMS, batches):
        first = tuple(slice(None) if size > 1 else slice(0, 1) for size in ((1, 1) + batch)[-2:])
        some.append(a[first].reshape(*batch, *a.shape[-core:]))
    wide = [a.expand(4, 3, *a.shape[-core:]) for a, core in zip(some, CORE_DIMS)]
    odd = [a.movedim(0, -1).contiguous().movedim(-1, 0) for a in wide]
    expected = simulate(*[a.contiguous() for a in wide])
    assert_same(simulate(*some), expected)
    assert_same(simulate(*odd), expected)
    assert_near(gradients(loss(simulate), some), gradients(loss(loop), some))
    assert all(x.movedim(2, 0).is_contiguous() for x in expected)


def test_a_mapped_function_is_the_batched_one():
    arguments = random_system(2, 1, 3, 4, seed=6)
    assert_same(vmap(simulate)(*arguments), simulate(*arguments))
    last = [a.movedim(0, -1) for a in arguments]
    assert_same(vmap(simulate, in_dims=-1)(*last), simulate(*arguments))
    only_x = [a if name == "x" else a[0] for name, a in zip(NAMES, arguments)]
    in_dims = tuple(0 if name == "x" else None for name in NAMES)
    assert_same(vmap(simulate, in_dims)(*only_x), simulate(*only_x))
    per_element = vmap(grad(loss(simulate), argnums=(7, 10)), in_dims)(*only_x)
    expected = [grad(loss(simulate), argnums=(7, 10))(*[a[i] if name == "x" else a for name, a in zip(NAMES, only_x)])
                for i in range(4)]
    assert_near(per_element, tuple(torch.stack(each) for each in zip(*expected)))
    one = [a[0] for a in arguments]
    assert_near(jacrev(loss(simulate), argnums=(0, 7))(*one), jacfwd(loss(simulate), argnums=(0, 7))(*one))
    of_x = lambda x: simulate(*one[:9], x, one[10])[0]
    assert_near(jacrev(of_x)(one[9]), jacfwd(of_x)(one[9]))


def test_nothing_to_do_is_done():
    for batch, steps in [((0,), 3), ((2,), 0), ((), 0)]:
        arguments = [a[..., :steps, :] if name == "u" else a for name, a in zip(NAMES, random_system(2, 1, 3, *batch))]
        x_next, z, w, status, residual = simulate(*arguments)
        assert x_next.shape == (*batch, steps, 2) and z.shape == w.shape == (*batch, steps, 3)
        assert status.shape == residual.shape == (*batch, steps)
        assert all((g == 0).all() for g in gradients(loss(simulate), arguments))


def test_a_tolerance_that_is_not_reached_ends_the_trajectory():
    arguments = random_system(2, 1, 3, 4, seed=7)
    assert_same(simulate(*arguments, tolerance=1e-6), simulate(*arguments))
    tight = simulate(*arguments, tolerance=1e-14)
    expected = loop(*arguments, tolerance=1e-14)
    assert_same(tight[3], expected[3])


def calls():
    yield "simulate_lcs", random_system(2, 1, 3, 4, seed=8), {"ties": "active", "cone": [2, -1, -1]}


def test_meta_tensors_have_the_shapes_and_strides_of_the_results():
    check_meta(calls())
    for operator, arguments, options in calls():
        meta = getattr(lcp, operator)(*[a.to("meta") if isinstance(a, torch.Tensor) else a for a in arguments], **options)
        real = getattr(lcp, operator)(*arguments, **options)
        assert [x.stride() for x in meta] == [x.stride() for x in real]


def test_the_operators_pass_the_checks_of_torch_library():
    for operator, arguments, options in calls():
        torch.library.opcheck(getattr(lcp, operator).default, leaves(arguments), options)


def test_a_compiled_rollout_has_the_same_values_and_gradients():
    arguments = random_system(2, 1, 3, 4, seed=9)
    f = loss(simulate)
    g = torch.compile(f, fullgraph=True, backend="aot_eager")
    assert_same(g(*arguments), f(*arguments))
    assert_near(gradients(g, arguments), gradients(f, arguments))


def test_compiled_autograd_export_and_checkpoints_have_the_same_results():
    arguments = random_system(2, 1, 3, 4, seed=9)
    options = {"cone": [2, -1, -1], "ties": "midpoint"}
    f = loss(simulate, **options)
    expected = gradients(f, arguments)
    with compiled_autograd._enable(torch.compile(backend="aot_eager")):
        assert_near(gradients(f, arguments), expected)
    assert_near(gradients(lambda *a: checkpoint(f, *a, use_reentrant=False), arguments), expected)

    class Model(torch.nn.Module):
        def forward(self, *a):
            return simulate(*a, **options)

    exported = torch.export.export(Model(), tuple(arguments)).module()
    assert_same(exported(*arguments), simulate(*arguments, **options))


def test_gradients_in_float32_are_those_in_float64():
    for size in [(2, 1, 3), (2, 1, 6)]:
        arguments = random_system(*size, 4, seed=11)
        single = gradients(loss(simulate), [a.float() for a in arguments])
        for a, b in zip(single, gradients(loss(simulate), arguments)):
            assert a.dtype == torch.float32 and (a - b).abs().max() < 1e-3 * b.abs().max()


def test_torchscript_and_autocast():
    @torch.jit.script
    def f(A, B, D, G, d, E, H, M, q, x, u):
        return torch.ops.lcp.simulate_lcs(A, B, D, G, d, E, H, M, q, x, u, ties="active")

    arguments = random_system(2, 1, 3, 4, seed=10)
    file = io.BytesIO()
    torch.jit.save(f, file)
    file.seek(0)
    assert_same(tuple(torch.jit.load(file)(*arguments)), tuple(simulate(*arguments, ties="active")))
    with torch.autocast("cpu", torch.bfloat16):
        low = simulate(*[a.bfloat16() for a in arguments])
    assert low[0].dtype == torch.float32


@pytest.mark.parametrize(
    "change, message",
    [
        ({"A": torch.zeros(2, 3)}, r"A must be \[..., k, k\]; got \[2, 3\]"),
        ({"E": torch.zeros(3, 3).double()}, r"E must be \[..., n, k\] with A's k = 2 and M's n = 3|E must be \[..., n, k\]"),
        ({"u": torch.zeros(2).double()}, r"u must be \[..., T, m\]"),
        ({"q": torch.zeros(3)}, "q must have A's dtype"),
        ({"x": torch.zeros(5, 2).double()}, "must broadcast"),
        ({"M": torch.zeros(3, 3).double().to_sparse()}, "M must be a dense tensor"),
        ({"ties": "none"}, 'ties must be "inactive", "active" or "midpoint"; got "none"'),
        ({"cone": [1]}, r"cone must have one number for each of M's n = 3 pairs; got \[1\]"),
        ({"cone": [-2, 3, 0]}, r"cone must be of -1..n - 1 with M's n = 3"),
        ({"tolerance": 0.0}, "tolerance must be finite and > 0; got 0"),
    ],
)
def test_mistakes_are_named(change, message):
    arguments = dict(zip(NAMES, random_system(2, 1, 3, 4)))
    tensors = [change.get(name, a) for name, a in arguments.items()]
    options = {name: value for name, value in change.items() if name not in NAMES}
    with pytest.raises(RuntimeError, match=message):
        simulate(*tensors, **options)
