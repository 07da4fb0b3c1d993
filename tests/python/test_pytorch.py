"""What PyTorch offers around an operator, and what the derivatives of a solve promise, for both solvers.

The problems are pairs (H, h): lcp::solve has M = H and q = h, lcp::solve_mixed the blocks [A B; C M] = H, (p, q) = h.
"""
import contextlib
import io
import itertools
import math

import pytest
import torch
from torch._dynamo import compiled_autograd
from torch._dynamo.utils import counters
from torch._inductor.utils import fresh_cache
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

# Warnings are errors, but for those that PyTorch gives to itself.
pytestmark = pytest.mark.filterwarnings("error", "ignore:`torch.jit:DeprecationWarning", "ignore:The .grad attribute")
lcp = torch.ops.lcp

N = 5  # unknowns
K = 2  # of them, those of solve_mixed's equations
SOLVERS = ["solve", "solve_mixed"]
TIES = ["inactive", "active", "midpoint"]
OPTIONS = [{"ties": ties} for ties in TIES] + [{"kappa": 0.1}]
NAN = math.nan
INFINITY = math.inf


# Problems


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def normal(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def integers(low, high, *shape, seed=0):
    return torch.randint(low, high + 1, shape, generator=torch.Generator().manual_seed(seed)).double()


def times(H, x):
    return (H @ x[..., None])[..., 0]


def problems(*batch, seed=0):
    """Positive definite, not symmetric; no ties."""
    for seed in itertools.count(100 * seed, 3):
        A, S, h = normal(*batch, N, N, seed=seed), normal(*batch, N, N, seed=seed + 1), normal(*batch, N, seed=seed + 2)
        H = A.mT @ A + torch.eye(N, dtype=torch.float64) + S - S.mT
        if all((torch.maximum(z, w) > 1e-2).all() for z, w in (lcp.solve(H, h)[:2], split_solve(H, h)[1:3])):
            return H, h


def tied_problems(batch, n=N, free=0, seed=0):
    """As `problems`, of small integers: the solution v, y is exact, with active, inactive and tied pairs at random."""
    A, S = integers(-2, 2, batch, n, n, seed=seed), integers(-2, 2, batch, n, n, seed=seed + 1)
    H = A.mT @ A + 2 * torch.eye(n, dtype=torch.float64) + S - S.mT
    role = integers(0, 2, batch, n, seed=seed + 2)
    role[:, :free] = 0
    v = torch.where(role == 0, integers(1, 3, batch, n, seed=seed + 3), 0.0)
    y = torch.where(role == 1, integers(1, 3, batch, n, seed=seed + 4), 0.0)
    return H, y - times(H, v), v, y, role == 2


def split(H, h, k=K):
    """A, B, C, M, p, q."""
    blocks = H[..., :k, :k], H[..., :k, k:], H[..., k:, :k], H[..., k:, k:], h[..., :k], h[..., k:]
    return tuple(x.contiguous() for x in blocks)


def split_solve(H, h, **options):
    return lcp.solve_mixed(*split(H, h), **options)


def values(solver, **options):
    """(H, h) to what is differentiable of the solver's results."""
    if solver == "solve":
        return lambda H, h: lcp.solve(H, h, **options)[:2]
    if solver == "_solve_blocks":
        return lambda H, h: lcp._solve_blocks(H, h, K, **options)[:2]
    return lambda H, h: split_solve(H, h, **options)[:3]


def loss(solver, **options):
    """A number with derivatives of every order in all results."""
    return lambda H, h: sum((x.sin() + x * x).sum() for x in values(solver, **options)(H, h))


def free(solver):
    return 0 if solver == "solve" else K


def results(solver, v, y):
    """v and y of the whole H as `values` has them."""
    return (v, y) if solver == "solve" else (v[..., :K], v[..., K:], y[..., K:])


# Derivatives


def leaves(arguments):
    return [x.detach().clone().requires_grad_() for x in arguments]


def gradients(f, arguments):
    inputs = leaves(arguments)
    return torch.autograd.grad(f(*inputs), inputs)


def assert_same(actual, expected):
    assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


def assert_near(actual, expected):
    assert_close(actual, expected, rtol=1e-9, atol=1e-9)


def piece(H, h, active):
    """v and y where v_i = 0 for i not active and y_i = 0 else, of PyTorch's own operators."""
    rows = torch.where(active[..., None], H, torch.eye(H.shape[-1], dtype=H.dtype))
    v = -torch.linalg.solve(rows, torch.where(active, h, 0))
    return v, torch.where(active, 0, times(H, v) + h)


def piecewise(solver, ties, active, tied):
    """What `values` is, if the gradients of `ties` are right."""

    def f(H, h):
        inactive = piece(H, h, active)
        if ties == "inactive":
            return results(solver, *inactive)
        other = piece(H, h, active | tied)
        return results(solver, *(other if ties == "active" else [(a + b) / 2 for a, b in zip(inactive, other)]))

    return f


def forward(f):
    """The derivative of a function of a number."""
    return lambda s: jvp(f, (s,), (torch.ones_like(s),))[1]


def backward_often(f, s, order):
    s = s.clone().requires_grad_()
    result = f(s)
    for _ in range(order):
        (result,) = torch.autograd.grad(result, s, create_graph=True)
    return result.detach()


@pytest.mark.parametrize("batch", [(), (2,), (2, 0)])
@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_derivatives_are_those_of_differences(solver, ties, batch):
    f = values(solver, ties=ties)
    arguments = leaves(problems(*batch))
    every_mode = dict(check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    assert gradcheck(f, arguments, **every_mode)
    assert gradgradcheck(f, arguments, check_fwd_over_rev=True, check_rev_over_rev=True, check_batched_grad=True)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("solver", SOLVERS)
def test_derivatives_of_any_order_at_ties_are_those_of_the_chosen_pieces(solver, ties):
    H, h, v, y, tied = (x[0] for x in tied_problems(1, free=free(solver), seed=4))
    assert tied.any() and (v[K:] > 0).any() and (y > 0).any()
    G, g = normal(N, N, seed=1), normal(N, seed=2)
    curve = lambda f: lambda s: sum(((1 + x) ** 4).sum() for x in f(H + s * G, h + s * g))
    actual, expected = curve(values(solver, ties=ties)), curve(piecewise(solver, ties, y + tied == 0, tied))
    start = tensor(0.0)
    for order in range(1, 4):
        derivative = backward_often(expected, start, order)
        assert_near(backward_often(actual, start, order), derivative)
        for modes in itertools.product([grad, forward], repeat=order):
            f = actual
            for mode in modes:
                f = mode(f)
            assert_near(f(start), derivative)


@pytest.mark.parametrize("solver", SOLVERS)
def test_hessians_are_the_same_in_every_mode(solver):
    arguments = problems(2)
    f = loss(solver, ties="midpoint")
    expected = hessian(f, (0, 1))(*arguments)
    for outer, inner in itertools.product([jacrev, jacfwd], repeat=2):
        assert_near(outer(inner(f, (0, 1)), (0, 1))(*arguments), expected)
    products = torch.autograd.functional.hvp(f, arguments, arguments)[1]
    assert_near(products, jvp(grad(f, (0, 1)), arguments, arguments)[1])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("ties, slope", [("inactive", 0.0), ("active", -0.5), ("midpoint", -0.25)])
def test_an_exact_tie_has_the_slope_that_ties_asks_for(ties, slope, dtype):
    one, zero, two = (torch.full((1, 1), value, dtype=dtype) for value in (1, 0, 2))
    q = torch.zeros(1, dtype=dtype)
    solve = lambda q: lcp.solve(two, q, ties=ties)[:2]
    mixed = lambda q: lcp.solve_mixed(one, zero, zero, two, torch.ones(1, dtype=dtype), q, ties=ties)[1:3]
    for f, jacobian in itertools.product([solve, mixed], [jacrev, jacfwd]):
        dz, dw = jacobian(f)(q)
        assert dz.item() == slope and dw.item() == 1 + 2 * slope


def test_kappa_has_the_slope_of_the_hyperbola():
    M, q = tensor([[2.0]]), torch.linspace(-3, 3, 13, dtype=torch.float64)
    for kappa in [1.0, 1e-2, 1e-4]:
        z = lambda q: lcp.solve(M, q[None], kappa=kappa)[0][0]
        assert_near(vmap(z)(q), (-q / 2).clamp(min=0))
        root = (q * q + 8 * kappa).sqrt()
        for first in [grad, forward]:
            assert_near(vmap(first(z))(q), (-1 + q / root) / 4)
            for second in [grad, forward]:
                assert_near(vmap(second(first(z)))(q), 2 * kappa / root**3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_kappa_gives_an_exact_solution_the_derivatives_of_the_path_point(solver):
    H, h = problems(2)
    smooth = values(solver, kappa=0.1)
    z_0 = lcp._solve_blocks(H, h, free(solver))[0]
    path = lambda H, h: results(solver, *lcp._path_point(H, h, z_0, free(solver), 0.1))
    assert_same(smooth(H, h), values(solver)(H, h))
    for jacobian in [jacrev, jacfwd]:
        assert_near(jacobian(smooth, (0, 1))(H, h), jacobian(path, (0, 1))(H, h))
    sums = lambda f: lambda H, h: sum(((i + 1) * x).sum() for i, x in enumerate(f(H, h)))
    for outer, inner in itertools.product([jacrev, jacfwd], repeat=2):
        second = lambda f: outer(inner(sums(f), (0, 1)), (0, 1))(H, h)
        assert_near(second(smooth), second(path))
    first = lambda H, h: torch.autograd.grad(sums(smooth)(H, h), (H, h), create_graph=True)
    assert gradcheck(first, leaves((H, h)))


@pytest.mark.parametrize("equations", [0, K])
def test_the_path_point_is_on_the_path_and_differentiable(equations):
    H, h = problems(2)
    z_0 = lcp._solve_blocks(H, h, equations)[0]
    f = lambda H, h: lcp._path_point(H, h, z_0, equations, 0.1)
    z, w = f(H, h)
    pairs = slice(equations, None)
    assert (z[:, pairs] > 0).all() and (w[:, :equations] == 0).all()
    assert_near(z[:, pairs] * w[:, pairs], torch.full_like(z[:, pairs], 0.1))
    assert_near(w, times(H, z) + h)
    assert gradcheck(f, leaves((H, h)), check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    assert gradgradcheck(f, leaves((H, h)), check_fwd_over_rev=True, check_batched_grad=True)


@pytest.mark.parametrize("solver", SOLVERS)
def test_gradients_in_float32_are_those_in_float64_rounded(solver):
    arguments = problems(3)
    for options in OPTIONS:
        exact = gradients(loss(solver, **options), arguments)
        rounded = gradients(loss(solver, **options), [x.float() for x in arguments])
        assert_close([x.double() for x in rounded], list(exact), rtol=1e-3, atol=1e-4)


def linear_maps():
    """Each linear map of the derivatives and its transpose, of a matrix and what else it is differentiable in."""
    H, h, v, y, tied = tied_problems(2, free=K, seed=4)
    assert tied.any()
    for equations, tied_active in itertools.product([0, K], [False, True]):
        yield (
            lambda H, r, e=equations, t=tied_active: lcp._tangent(H, v, y, r, e, t),
            lambda H, g, f, e=equations, t=tied_active: (lcp._adjoint(H, v, y, g, f, e, t),),
            (H,),
        )
    yield lcp._path_tangent, lcp._path_adjoint, (H, 1 + v, 1 + y)


def test_every_adjoint_is_the_transpose_of_its_tangent():
    dot = lambda x, y: sum((a * b).sum(-1) for a, b in zip(x, y))
    for tangent, adjoint, base in linear_maps():
        output = normal(2, N, seed=7), normal(2, N, seed=8)
        size = len(adjoint(*base, *output))
        given = [normal(2, N, seed=5 + k) for k in range(size)]
        assert_near(dot(tangent(*base, *given), output), dot(given, adjoint(*base, *output)))


def test_the_linear_maps_are_differentiable():
    for maps in linear_maps():
        *both, base = maps
        for f, count in zip(both, [len(both[1](*base, *[normal(2, N)] * 2)), 2]):
            arguments = leaves((*base, *[normal(2, N, seed=5 + k) for k in range(count)]))
            assert gradcheck(f, arguments, check_forward_ad=True, check_batched_grad=True)
            assert gradgradcheck(f, arguments, check_fwd_over_rev=True)


# Ties


@pytest.mark.parametrize("angle", torch.arange(0.1, 6.2, 0.5).tolist())
def test_at_a_tie_in_the_plane_each_choice_is_the_derivative_on_its_side(angle):
    M, q = tensor([[2.0, 1.0], [-1.0, 2.0]]), tensor([-2.0, 1.0])  # z = (1, 0), w = (0, 0)
    dq = tensor([math.cos(angle), math.sin(angle)])
    t = 2.0**-20
    difference = [(new - old) / t for new, old in zip(lcp.solve(M, q + t * dq)[:2], lcp.solve(M, q)[:2])]
    dz, dw, status = lcp.directional_derivative(M, q, tensor([1.0, 0.0]), torch.zeros_like(M), dq)
    assert status == 0
    assert_close([dz, dw], difference, rtol=1e-8, atol=1e-8)
    for ties in ["inactive", "active"]:
        tangent = torch.stack(jvp(lambda q: lcp.solve(M, q, ties=ties)[:2], (q,), (dq,))[1])
        agrees = torch.allclose(tangent, torch.stack([dz, dw]))
        assert agrees == (dw[1] > 0 if ties == "inactive" else dz[1] > 0)


def assert_one_sided(M, q, z, dM, dq, unique_z=True):
    """directional_derivative agrees with differences of the solution, in w alone where z is not unique."""
    *derivative, status = lcp.directional_derivative(M, q, z, dM, dq)
    assert (status == 0).all()

    def difference(t):
        z_t, w_t, status_t = lcp.solve(M + t * dM, q + t * dq)
        assert (status_t == 0).all()
        return (z_t - z) / t, (w_t - times(M, z) - q) / t

    t = 2.0**-13
    for k, (whole, half, exact) in enumerate(zip(difference(t), difference(t / 2), derivative)):
        if unique_z or k == 1:
            assert_close(2 * half - whole, exact, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_the_directional_derivative_is_one_sided_at_random_ties(n):
    M, q, z, _, tied = tied_problems(100, n)
    assert tied.any(-1).sum() > 20
    dq = integers(-2, 2, 100, n, seed=8)
    assert_one_sided(M, q, z, torch.zeros_like(M), dq)
    assert_one_sided(M, q, z, integers(-1, 1, 100, n, n, seed=7) / 4, dq)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_directional_derivative_is_one_sided_where_contacts_are_redundant(share):
    """Two rows are there twice: M_aa is singular where a pair shares its z, and a copy is tied where it does not."""
    M, q, z, w, _ = tied_problems(100, 3, seed=3)
    twice = torch.tensor([0, 1, 2, 0, 1])
    repeat = lambda x: x[:, twice] if x.dim() == 2 else x[:, twice][:, :, twice]
    z = repeat(z) * tensor([share, share, 1, 1 - share, 1 - share])
    dq = integers(-2, 2, 100, 3, seed=8)
    assert (lcp.certify(repeat(M), repeat(q), z)[3] < (z > 0).sum(-1)).any() == (share < 1)
    assert_one_sided(repeat(M), repeat(q), z, torch.zeros_like(repeat(M)), repeat(dq), unique_z=False)


def test_redundant_contacts_share_their_derivative():
    """Where M_aa is singular, the derivative is the shortest of those that solve the least-squares problem."""
    H, h = problems(10)
    z, w, _ = lcp.solve(H, h)
    twice, share = torch.tensor([0, 1, 2, 3, 4, 0, 1]), tensor([0.5, 0.5, 1, 1, 1, 0.5, 0.5])
    M, z_2, w_2, r = H[:, twice][:, :, twice], z[:, twice] * share, w[:, twice], normal(10, N, seed=5)
    dz, dw = lcp._tangent(H, z, w, r, 0, False)
    assert_near(lcp._tangent(M, z_2, w_2, r[:, twice], 0, False), (dz[:, twice] * share, dw[:, twice]))
    g = normal(10, 7, seed=6)
    t = lcp._adjoint(M, z_2, w_2, g, torch.zeros_like(g), 0, False)
    added = torch.zeros_like(z).index_add(1, twice, g * share)
    assert_near(t, lcp._adjoint(H, z, w, added, torch.zeros_like(z), 0, False)[:, twice] * share)


def test_a_choice_of_ties_is_one_sided_exactly_where_it_solves_the_problem_of_the_direction():
    M, q, z, w, tied = tied_problems(400, 8, seed=6)
    assert_same(lcp.certify(M, q, lcp.solve(M, q)[0])[4], tied)
    dq = integers(-2, 2, 400, 8, seed=8)
    dz, dw, status = lcp.directional_derivative(M, q, z, torch.zeros_like(M), dq)
    assert (status == 0).all()
    for ties in ["inactive", "active"]:
        z_t, w_t = jvp(lambda q: lcp.solve(M, q, ties=ties)[:2], (q,), (dq,))[1]
        solves = ((torch.minimum(z_t, w_t) > -1e-9) | ~tied).all(-1)
        assert_same(torch.isclose(z_t, dz, rtol=1e-6, atol=1e-9).all(-1), solves)
        assert solves.any() and not solves.all()


def test_without_ties_the_directional_derivative_is_the_one_in_forward_mode():
    M, q = problems(20)
    dM, dq = normal(20, N, N, seed=5), normal(20, N, seed=6)
    z = lcp.solve(M, q)[0]
    *derivative, status = lcp.directional_derivative(M, q, z, dM, dq)
    assert_near(derivative, jvp(values("solve"), (M, q), (dM, dq))[1])
    assert (status == 0).all()


def test_the_directional_derivative_is_nan_where_an_element_is_not_solved():
    M, q = problems(3)
    z = lcp.solve(M, q)[0]
    z[1], dq = NAN, torch.ones_like(q)
    dz, dw, status = lcp.directional_derivative(M, q, z, torch.zeros_like(M), dq)
    assert status.tolist() == [0, 4, 0]
    assert dz.isnan().any(-1).tolist() == dw.isnan().all(-1).tolist() == [False, True, False]
    assert lcp.directional_derivative(M, q, z, torch.zeros_like(M), NAN * dq)[2].tolist() == [4, 4, 4]


# The certificate


def sizes(M, q, z):
    """Of each pair, beside the terms of the rows: the larger of z_i and w_i."""
    terms = (M * z[..., None, :]).abs()
    scale = q.abs() + terms.sum(-1)
    return torch.maximum((terms / scale[..., None]).amax(-2), (times(M, z) + q).abs() / scale)


def test_certify_measures_what_it_says():
    M, q, z, w, tied = tied_problems(50)
    keep = ((z > 0).sum(-1) > 0) & (q != 0).all(-1)
    M, q, z, w, tied = (x[keep] for x in (M, q, z, w, tied))
    residual, margin, condition, rank, ties = lcp.certify(M, q, z)
    assert_same(residual, torch.zeros_like(residual))
    assert_near(margin, sizes(M, q, z).amin(-1))
    assert_same(rank, (z > 0).sum(-1))
    assert_same(ties, tied)
    assert_near(condition, torch.stack([torch.linalg.cond(A[a][:, a]) for A, a in zip(M, z > 0)]))

    off = z + integers(-2, 2, *z.shape, seed=9)
    assert_near(lcp.certify(M, q, off)[0], torch.minimum(off, times(M, off) + q).abs().amax(-1))
    near = lcp.certify(M, q, off, tolerance=0.1)[4]
    assert_same(near, sizes(M, q, off) <= 0.1)
    assert near.any()


def test_the_certificate_does_not_depend_on_units():
    M, q, z, _, _ = tied_problems(50)
    rows, columns = 2 ** integers(-9, 9, 50, N, seed=5), 2 ** integers(-9, 9, 50, N, seed=6)
    one = lcp.certify(M, q, z)
    other = lcp.certify(rows[:, :, None] * M * columns[:, None, :], rows * q, z / columns)
    for k in [1, 3, 4]:  # margin, rank, ties
        assert_same(other[k], one[k])


@pytest.mark.parametrize(
    "M, q, z, residual, margin, condition, rank, ties",
    [
        ([[2]], [-2], [1], 0, 0.5, 1, 1, [False]),
        ([[2]], [0], [0], 0, 0, 1, 0, [True]),
        ([[2]], [-2], [1.5], 1, 0.6, 1, 1, [False]),
        ([[2, 0], [0, 8]], [-2, -8], [1, 1], 0, 0.5, 4, 2, [False, False]),
        ([[1, 1], [1, 1]], [-2, -2], [1, 1], 0, 0.25, INFINITY, 1, [False, False]),
        ([[1, 1], [1, 1]], [-2, -2], [2, 0], 0, 0, 1, 1, [False, True]),
        ([[2]], [-2], [NAN], NAN, NAN, NAN, 0, [False]),
        ([[2]], [NAN], [1], NAN, NAN, NAN, 0, [False]),
        ([[NAN]], [-2], [1], NAN, NAN, NAN, 0, [False]),
    ],
)
def test_certificates_of_examples(M, q, z, residual, margin, condition, rank, ties):
    numbers = [tensor(x) for x in (residual, margin, condition)]
    certificate = lcp.certify(tensor(M), tensor(q), tensor(z))
    assert_close(list(certificate), [*numbers, torch.tensor(rank), torch.tensor(ties)], equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_z_that_is_round_off_in_all_its_rows_is_tied(dtype):
    M, q = torch.tensor([[8, -7, 8], [1, 2, 1], [1, 1, 4]], dtype=dtype), torch.tensor([-1, -3, -2], dtype=dtype)
    for roundings, tied in [(0, True), (1, True), (1000, False)]:
        z = torch.tensor([1, 1, roundings * torch.finfo(dtype).eps], dtype=dtype)
        assert lcp.certify(M, q, z)[4].tolist() == [False, False, tied]


def test_the_certificate_of_nothing_is_perfect():
    residual, margin, condition, rank, ties = lcp.certify(torch.zeros(2, 0, 0), torch.zeros(2, 0), torch.zeros(2, 0))
    assert residual.tolist() == [0, 0] and margin.tolist() == [INFINITY] * 2
    assert condition.tolist() == [1, 1] and rank.tolist() == [0, 0] and ties.shape == (2, 0)


# How far a gradient reaches


def test_z_is_affine_up_to_the_radius_and_its_active_set_changes_beyond():
    M, q, z, w, tied = tied_problems(200)
    dq = integers(-2, 2, 200, N, seed=8)
    radius = lcp.gradient_radius(M, q, z, dq)
    dz, dw = lcp._tangent(M, z, w, dq, 0, False)
    falls = (tied & (dw < -1e-12)).any(-1)
    assert_same(radius == 0, falls)
    assert falls.any() and radius.isinf().any()

    reach = radius.clamp(max=1e3)
    for part in [0.5, 1 - 1e-6]:
        there = lcp.solve(M, q + (part * reach)[:, None] * dq)[0]
        assert_close(there[~falls], (z + (part * reach)[:, None] * dz)[~falls], rtol=1e-9, atol=1e-9)
        assert_same((there > 1e-12)[~falls], (z > 0)[~falls])
    beyond = lcp.solve(M, q + (radius * (1 + 1e-6) + 1e-6)[:, None] * dq)[0]
    changes = ((beyond > 0) != (z > 0)).any(-1)
    assert changes[radius.isfinite()].all()


@pytest.mark.parametrize(
    "q, z, dq, radius",
    [
        (-2, 1, 1, 2),
        (-2, 1, -1, INFINITY),
        (-2, 1, 0, INFINITY),
        (2, 0, -1, 2),
        (0, 0, -1, 0),
        (0, 0, 1, INFINITY),
        (-2, NAN, 1, NAN),
    ],
)
def test_radii_of_examples(q, z, dq, radius):
    found = lcp.gradient_radius(tensor([[2]]), tensor([q]), tensor([z]), tensor([dq]))
    assert_same(found, tensor(radius))


# Mixed problems


def test_no_equations_leave_lcp_solve_and_no_pairs_a_linear_system():
    H, h = problems(3)
    g = lambda x: (x.sin() + x * x).sum()
    z_of = lambda H, h: g(lcp.solve_mixed(*split(H, h, 0))[1])
    x_of = lambda H, h: g(lcp.solve_mixed(*split(H, h, N))[0])
    assert_near(lcp.solve_mixed(*split(H, h, 0))[1:], lcp.solve(H, h))
    assert_near(lcp.solve_mixed(*split(H, h, N))[0], -torch.linalg.solve(H, h))
    assert_near(gradients(z_of, (H, h)), gradients(lambda H, h: g(lcp.solve(H, h)[0]), (H, h)))
    assert_near(gradients(x_of, (H, h)), gradients(lambda H, h: g(-torch.linalg.solve(H, h)), (H, h)))
    nothing = lcp.solve_mixed(*split(torch.zeros(3, 0, 0), torch.zeros(3, 0), 0))
    assert [x.shape for x in nothing] == [(3, 0)] * 3 + [(3,)] and (nothing[3] == 0).all()


def test_a_singular_A_is_solved_and_differentiated_where_the_whole_is_solvable():
    """min c'x over x <= g, e'x = 4: 0 = c + e y + z, 0 = 4 - e'x, w = g - x, unknowns (x, y) and z."""
    e, eye, zeros = torch.ones(3, 1, dtype=torch.float64), torch.eye(3, dtype=torch.float64), torch.zeros
    A = torch.cat([torch.cat([zeros(3, 3), e], 1), torch.cat([-e.mT, zeros(1, 1)], 1)])
    B, C = torch.cat([eye, zeros(1, 3)]), torch.cat([-eye, zeros(3, 1)], 1)
    problem = A, B, C, zeros(3, 3).double(), tensor([-2.0, -1.0, 0.0, 4.0]), tensor([1.0, 2.0, 3.0])
    x, z, w, status = lcp.solve_mixed(*problem)
    assert torch.linalg.matrix_rank(A) == 2 and status == 0
    assert_near([x, z, w], [tensor([1, 2, 1, 0]), tensor([2, 1, 0]), tensor([0, 0, 2])])
    f = lambda *problem: lcp.solve_mixed(*problem)[:3]
    assert gradcheck(f, leaves(problem), check_forward_ad=True)
    assert gradgradcheck(f, leaves(problem), check_fwd_over_rev=True)


def test_equations_that_repeat_a_complementary_row_are_solved():
    M, q, _, _, _ = tied_problems(100, 3, seed=3)
    twice = torch.tensor([0, 1, 2, 0, 1])  # the last two rows are the first two, which are equations
    H, h = M[:, twice][:, :, twice], q[:, twice]
    x, z, w, status = split_solve(H, h)
    v = torch.cat([x, z], -1)
    assert (status == 0).all()
    assert_near(times(H, v) + h, torch.cat([torch.zeros_like(x), w], -1))
    assert (torch.minimum(z, w) == 0).all()


@pytest.mark.parametrize("argument", range(6))
def test_each_argument_of_solve_mixed_broadcasts(argument):
    dominant = 4 * torch.eye(N, dtype=torch.float64) + 0.3 * normal(2, 3, N, N)  # whatever blocks are put together
    problem = list(split(dominant, normal(2, 3, N, seed=1)))
    problem[argument] = problem[argument][1, 1]
    full = list(problem)
    full[argument] = problem[argument].expand(2, 3, *problem[argument].shape)
    solved = lcp.solve_mixed(*problem)
    assert_same(solved, lcp.solve_mixed(*full))
    alone = [x if k == argument else x[1, 1] for k, x in enumerate(problem)]
    alone[argument] = problem[argument].expand(2, 3, *problem[argument].shape)
    assert_same(lcp.solve_mixed(*alone), lcp.solve_mixed(*(x.expand_as(y) for x, y in zip(alone, full))))

    f = lambda *problem: sum(x.sin().sum() for x in lcp.solve_mixed(*problem)[:3])
    shared, copies = gradients(f, problem), list(gradients(f, full))
    copies[argument] = copies[argument].sum((0, 1))
    assert_near(shared, copies)


@pytest.mark.parametrize(
    "A, B, C, M, p, q, options, status",
    [
        ([[0]], [[1]], [[-1]], [[1]], [-1], [0], {}, 0),
        ([[1]], [[0, 0]], [[0], [0]], [[0, 1], [0, 0]], [0], [-1, 1], {}, 1),  # feasible, yet no solution
        ([[0]], [[1]], [[0]], [[0]], [1], [0], {}, 2),  # z = -1
        ([[0]], [[0]], [[0]], [[1]], [1], [0], {}, 2),  # 1 = 0
        ([[1]], [[0]], [[1]], [[0]], [1], [0], {}, 2),  # w = x = -1
        ([[1]], [[0, 0]], [[0], [0]], [[2, 1], [1, 2]], [0], [-1, -1], {"max_pivots": 0}, 3),
        ([[1]], [[NAN]], [[0]], [[1]], [0], [0], {}, 4),
        ([[1]], [[0]], [[0]], [[1]], [INFINITY], [0], {}, 4),
    ],
)
def test_statuses_of_solve_mixed(A, B, C, M, p, q, options, status):
    *solution, found = lcp.solve_mixed(*map(tensor, (A, B, C, M, p, q)), **options)
    assert found == status
    assert all(x.isnan().all() == (status != 0) for x in solution)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"A": torch.ones(2, 1)}, r"A must be \[..., k, k\]; got \[2, 1\]"),
        ({"A": torch.ones(2, 2).half()}, "A must be float32 or float64; got Half"),
        ({"A": torch.eye(2).to_sparse()}, "A must be a dense tensor; got layout Sparse"),
        ({"B": torch.ones(3, 2)}, r"B must be \[..., k, n\] = .*2, 3.* with A's k and M's n; got \[3, 2\]"),
        ({"C": torch.ones(3)}, r"C must be \[..., n, k\] = .*3, 2.* with A's k and M's n; got \[3\]"),
        ({"M": torch.ones(3, 2)}, r"M must be \[..., n, n\]; got \[3, 2\]"),
        ({"p": torch.ones(3)}, r"p must be \[..., k\] = .*2.* with A's k and M's n; got \[3\]"),
        ({"q": torch.ones(3).double()}, "q must have A's dtype, Float; got Double"),
        ({"q": torch.ones(3, device="meta")}, "q must be on A's device, cpu; got meta"),
        ({"guess": torch.ones(2)}, r"guess must be \[..., n\] = .*3.* with A's k and M's n; got \[2\]"),
        ({"B": torch.ones(4, 2, 3), "M": torch.ones(5, 3, 3)}, r"M \[5, 3, 3\] must broadcast; got \[4\] and \[5\]"),
        ({"p": torch.ones(4, 2), "q": torch.ones(5, 3)}, r"q \[5, 3\] must broadcast; got \[4\] and \[5\]"),
        ({"C": torch.ones(4, 3, 2), "p": torch.ones(5, 2)}, r"p \[5, 2\] must broadcast; got \[4\] and \[5\]"),
        ({"M": torch.ones(4, 3, 3), "guess": torch.ones(5, 3)}, r"guess \[5, 3\] must broadcast; got \[4\] and \[5\]"),
        ({"ties": "both"}, 'ties must be "inactive", "active" or "midpoint"; got "both"'),
        ({"kappa": 0.1, "ties": "active"}, 'ties must be "inactive" where kappa > 0, .*; got "active"'),
        ({"kappa": NAN}, "kappa must be finite and >= 0; got nan"),
        ({"method": "dantzig"}, 'method must be "auto", .*; got "dantzig"'),
        ({"tolerance": 0.0}, "tolerance must be finite and > 0; got 0"),
        ({"max_pivots": -1}, "max_pivots must be >= 0; got -1"),
    ],
)
def test_errors_of_solve_mixed_name_the_argument_what_came_and_what_should(change, message):
    arguments = dict(zip("ABCMpq", split(torch.eye(N), torch.ones(N)))) | change
    with pytest.raises(RuntimeError, match=message):
        lcp.solve_mixed(**arguments)


@pytest.mark.parametrize(
    "operator, change, message",
    [
        ("certify", {"z": torch.ones(2)}, r"z must be \[..., n\] with M's n = 3; got \[2\]"),
        ("certify", {"tolerance": -1.0}, "tolerance must be finite and > 0; got -1"),
        ("directional_derivative", {"dM": torch.ones(2, 2)}, r"dM must be \[..., n, n\] with M's n = 3; got \[2, 2\]"),
        ("directional_derivative", {"dq": torch.ones(3).double()}, "dq must have M's dtype, Float; got Double"),
        ("gradient_radius", {"M": torch.eye(3).int()}, "M must be float32 or float64; got Int"),
        ("gradient_radius", {"q": torch.ones(2, 3), "dq": torch.ones(4, 3)}, r"dq \[4, 3\] must broadcast; got \[2\]"),
        ("gradient_radius", {"dq": torch.ones(3).to_sparse()}, "dq must be a dense tensor; got layout Sparse"),
    ],
)
def test_errors_of_the_other_operators_name_the_argument(operator, change, message):
    arguments = {"M": torch.eye(3), "q": torch.ones(3), "z": torch.zeros(3)}
    if operator != "certify":
        arguments |= {"dq": torch.ones(3)}
    if operator == "directional_derivative":
        arguments |= {"dM": torch.eye(3)}
    with pytest.raises(RuntimeError, match=message):
        getattr(lcp, operator)(**arguments | change)


# Elements and guesses


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_derivatives_beside_an_unsolved_neighbour_are_those_of_an_element_alone(solver, options):
    H, h = problems(3)
    H[1], h[1] = -torch.eye(N, dtype=torch.float64), -1
    f = values(solver, **options)
    inputs = leaves((H, h))
    outputs = f(*inputs)
    assert all(x[1].isnan().all() for x in outputs)
    weights = [normal(*x.shape, seed=k) for k, x in enumerate(outputs)]
    weigh = lambda outputs, keep: sum((x * y).index_select(0, keep).sum() for x, y in zip(outputs, weights))

    solved, every = torch.tensor([0, 2]), torch.arange(3)
    together = torch.autograd.grad(weigh(outputs, solved), inputs, create_graph=True)
    assert all((x[1] == 0).all() for x in together)
    for i in [0, 2]:
        alone = leaves((H[i], h[i]))
        total = sum((x * y[i]).sum() for x, y in zip(f(*alone), weights))
        assert_same([x[i] for x in together], list(torch.autograd.grad(total, alone)))
    everything = torch.autograd.grad(weigh(outputs, every), inputs, retain_graph=True)
    assert all(x.isnan().flatten(1).any(1).tolist() == [False, True, False] for x in everything)
    again = torch.autograd.grad(sum((x * x).sum() for x in together), inputs)
    assert all((x[1] == 0).all() and x.isfinite().all() for x in again)

    dH, dh = normal(3, N, N, seed=5), normal(3, N, seed=6)
    tangents = jvp(f, (H, h), (dH, dh))[1]
    assert all(x.isnan().all(-1).tolist() == [False, True, False] for x in tangents)
    assert_same([x[2] for x in tangents], list(jvp(f, (H[2], h[2]), (dH[2], dh[2]))[1]))
    dH[1], dh[1] = 0, 0
    assert all((x[1] == 0).all() for x in jvp(f, (H, h), (dH, dh))[1])


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_guess_changes_neither_solution_nor_gradients(solver, options):
    arguments = problems(20)
    z = values(solver)(*arguments)[-2]
    for guess in [z, 1.0 - (z > 0).double(), torch.full_like(z, NAN), torch.full_like(z, INFINITY), -z]:
        solve = lcp.solve if solver == "solve" else split_solve
        assert (solve(*arguments, guess=guess)[-1] == 0).all()
        assert_near(values(solver, guess=guess)(*arguments), values(solver)(*arguments))
        guessed = gradients(loss(solver, guess=guess, **options), arguments)
        assert_near(guessed, gradients(loss(solver, **options), arguments))


def test_a_guess_is_not_differentiated():
    M, q = problems(3)
    guess = torch.ones_like(q).requires_grad_()
    assert not lcp.solve(M, q, guess=guess)[0].requires_grad
    assert_same(jvp(lambda guess: lcp.solve(M, q, guess=guess)[0], (q,), (q,))[1], torch.zeros_like(q))


# torch.library


def calls():
    """For each operator and each of its paths, arguments over a batch of three."""
    H, h, v, y, tied = tied_problems(3, free=K, seed=4)
    first, second = normal(3, N, seed=5), normal(3, N, seed=6)
    for options in [*OPTIONS, {"method": "lemke", "tolerance": 1e-6, "max_pivots": 50, "guess": v}]:
        yield "solve", (H, h), options
        yield "_solve_blocks", (H, h, K), options | {"guess": v[:, K:]}
        yield "solve_mixed", split(H, h), options | {"guess": v[:, K:]}
    yield "certify", (H, h, v), {}
    yield "certify", (H, h, v), {"tolerance": 0.1}
    yield "directional_derivative", (H, h, v, H, first), {}
    yield "gradient_radius", (H, h, v, first), {}
    for equations, tied_active in [(0, False), (0, True), (K, False), (K, True)]:
        yield "_piece", (H, h, v, y, equations, tied_active), {}
        yield "_tangent", (H, v, y, first, equations, tied_active), {}
        yield "_adjoint", (H, v, y, first, second, equations, tied_active), {}
    for equations in [0, K]:
        yield "_path_point", (H, h, v, equations, 0.1), {}
    yield "_path_tangent", (H, 1 + v, 1 + y, first, second), {}
    yield "_path_adjoint", (H, 1 + v, 1 + y, first, second), {}
    for size in [(N, N), (3, N, N)]:
        yield "_sum_outer", (first, second, size), {}


def differentiable(arguments):
    return [x.clone().requires_grad_() if isinstance(x, torch.Tensor) else x for x in arguments]


def test_every_operator_passes_opcheck():
    for operator, arguments, options in calls():
        torch.library.opcheck(getattr(lcp, operator).default, differentiable(arguments), options)


def test_meta_tensors_have_the_shapes_of_the_results():
    to_meta = lambda x: x.to("meta") if isinstance(x, torch.Tensor) else x
    for operator, arguments, options in calls():
        f = getattr(lcp, operator)
        meta = f(*map(to_meta, arguments), **{name: to_meta(x) for name, x in options.items()})
        assert_same(meta, torch.utils._pytree.tree_map(to_meta, f(*arguments, **options)))


def test_what_is_not_differentiable_has_no_history():
    M, q = leaves(problems(3))
    z = lcp.solve(M, q)[0]
    assert not lcp.solve(M, q)[2].requires_grad
    others = [*lcp.certify(M, q, z), *lcp.directional_derivative(M, q, z, M, q), lcp.gradient_radius(M, q, z, q)]
    assert not any(x.requires_grad for x in others)
    numbers = lambda q: lcp.certify(M.detach(), q, z.detach())[:3]
    assert_same(jvp(numbers, (q.detach(),), (q.detach(),))[1], (torch.zeros(3).double(),) * 3)


# Modes of autograd


@contextlib.contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def anomaly_mode():
    with torch.autograd.set_detect_anomaly(True):
        yield


def saved_as_arrays():
    return torch.autograd.graph.saved_tensors_hooks(lambda x: x.detach().numpy().copy(), torch.from_numpy)


def saved_as_clones():
    return torch.autograd.graph.saved_tensors_hooks(torch.clone, torch.clone)


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("mode", [deterministic, anomaly_mode, saved_as_arrays, torch.autograd.graph.save_on_cpu])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_gradients_are_the_same_in_a_mode(solver, options, mode):
    arguments = problems(3)
    expected = gradients(loss(solver, **options), arguments)
    with mode():
        assert_same(gradients(loss(solver, **options), arguments), expected)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_checkpoint_gives_the_same_gradients(solver, reentrant):
    arguments = problems(3)
    inputs = leaves(arguments)
    checkpoint(loss(solver), *inputs, use_reentrant=reentrant).backward()
    assert_same([x.grad for x in inputs], list(gradients(loss(solver), arguments)))


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected in LcpSolve")
@pytest.mark.parametrize("solver, node", [("solve", "LcpSolveBackward"), ("solve_mixed", "LcpSolveMixedBackward")])
def test_anomaly_mode_names_the_solver_whose_gradient_is_nan(solver, node):
    H, h = -torch.eye(N, dtype=torch.float64), -torch.ones(N, dtype=torch.float64)
    total = lambda H, h: values(solver)(H, h)[-1].sum()
    with anomaly_mode(), pytest.raises(RuntimeError, match=f"Function '{node}' returned nan values in its 0th output"):
        gradients(total, (H, h))


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_gradients_nothing_is_recorded(solver):
    arguments = leaves(problems(3))
    with torch.no_grad():
        assert not any(x.requires_grad for x in values(solver)(*arguments))
    with torch.inference_mode():
        results = values(solver)(*arguments)
    assert all(x.is_inference() for x in results)
    assert_same(results, values(solver)(*(x.detach() for x in arguments)))


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_graph_is_used_once_and_inputs_are_not_to_change_under_it(solver):
    inputs = leaves(problems(3))
    total = loss(solver)(*inputs)
    torch.autograd.grad(total, inputs, retain_graph=True)
    torch.autograd.grad(total, inputs)
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        torch.autograd.grad(total, inputs)
    H, h = inputs[0] * 1, inputs[1]
    outputs = lcp.solve(H, h)
    H.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(outputs[0].sum(), inputs)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_forward_mode_takes_duals_of_either_argument(solver, options):
    H, h = problems(3)
    dH, dh = normal(3, N, N, seed=5), normal(3, N, seed=6)
    f = values(solver, **options)
    jacobians = jacrev(f, (0, 1))(H, h)
    expected = [sum(times(x.flatten(-y.dim()), y.flatten()) for x, y in zip(row, (dH, dh))) for row in jacobians]

    def tangents(*duals):
        return [forward_ad.unpack_dual(x).tangent for x in f(*duals)]

    with forward_ad.dual_level():
        one = tangents(forward_ad.make_dual(H, dH), h)
        other = tangents(H, forward_ad.make_dual(h, dh))
        both = tangents(forward_ad.make_dual(H, dH), forward_ad.make_dual(h, dh))
        assert all(x is None for x in tangents(H, h))
    assert_near([x + y for x, y in zip(one, other)], expected)
    assert_near(both, expected)


def test_autocast_solves_in_float32_what_comes_out_of_a_linear_layer():
    torch.manual_seed(0)
    linear = torch.nn.Linear(N, N)
    H, h = (x.float().requires_grad_() for x in problems(3))
    with torch.autocast("cpu", torch.bfloat16):
        M, q = H @ torch.eye(N), linear(h)
        assert M.dtype == q.dtype == torch.bfloat16
        z, w, status = lcp.solve(M, q, guess=q)
        mixed = split_solve(M, q)
        others = [*lcp.certify(M, q, z)[:3], *lcp.directional_derivative(M, q, z, M, q)[:2]]
        others.append(lcp.gradient_radius(M, q, z, q))
        exact = lcp.solve(M.double(), q.double())[0]
    assert_same((z, w, status), lcp.solve(M.float(), q.float()))
    assert_same(mixed, split_solve(M.float(), q.float()))
    assert {x.dtype for x in others} == {torch.float32} and exact.dtype == torch.float64
    total = z.sum() + sum(x.sum() for x in mixed[:3])
    for x in torch.autograd.grad(total, (H, h, linear.weight)):
        assert x.dtype == torch.float32 and x.isfinite().all() and x.any()


# torch.func


@pytest.fixture
def no_fallback():
    """torch.vmap raises where an operator has no rule for it, rather than to run it element by element."""
    torch._C._functorch._set_vmap_fallback_enabled(False)
    yield
    torch._C._functorch._set_vmap_fallback_enabled(True)


def one_by_one(f, in_dims, arguments):
    size = next(x.shape[d] for x, d in zip(arguments, in_dims) if d is not None)
    each = [f(*(x if d is None else x.select(d, i) for x, d in zip(arguments, in_dims))) for i in range(size)]
    return tuple(map(torch.stack, zip(*each)))


def test_vmap_of_every_operator_is_the_loop(no_fallback):
    for operator, arguments, options in calls():
        if operator == "_sum_outer" and len(arguments[2]) == 3:
            continue  # a batch dimension of its own
        guess = options.get("guess", arguments[1])
        constants = {name: x for name, x in options.items() if name != "guess"}
        tensors = [x for x in arguments if isinstance(x, torch.Tensor)]
        rest = arguments[len(tensors) :]

        def f(guess, *tensors):
            proposal = {"guess": guess} if "guess" in options else {}
            result = getattr(lcp, operator)(*tensors, *rest, **constants, **proposal)
            return result if isinstance(result, tuple) else (result,)

        in_dims = [0] * (1 + len(tensors))
        assert_same(vmap(f)(guess, *tensors), one_by_one(f, in_dims, [guess, *tensors]))


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0), (2, 1), (-1, -1)])
@pytest.mark.parametrize("solver", SOLVERS)
def test_vmap_takes_batches_of_any_rank_beside_the_mapped_dimension(solver, in_dims, no_fallback):
    solve = {"solve": lcp.solve, "solve_mixed": split_solve}[solver]
    batches = [lambda x: x, lambda x: x[:, 0], lambda x: x[:, 0, 0], lambda x: x[:, :1], lambda x: x[:, :, :1]]
    for some, others in itertools.product(batches, repeat=2):
        arguments, dims = [], []
        for x, batch, dim in zip(problems(3, 4, 2), (some, others), in_dims):
            x = batch(x)
            dims.append(None if dim is None else dim % x.dim())
            arguments.append(x[0] if dim is None else x.movedim(0, dim).contiguous())
        assert_same(vmap(solve, in_dims=in_dims)(*arguments), one_by_one(solve, dims, arguments))


@pytest.mark.parametrize("solver", SOLVERS)
def test_vmap_nests_chunks_guesses_and_may_be_empty(solver, no_fallback):
    H, h = problems(3, 2)
    solve = {"solve": lcp.solve, "solve_mixed": split_solve}[solver]
    expected = solve(H, h)
    guess = torch.ones_like(expected[-2])
    assert_same(vmap(vmap(solve))(H, h), expected)
    columns = vmap(vmap(solve, in_dims=(None, 0)), in_dims=(None, 1))(H[0, 0], h)
    assert_same(columns, tuple(x.movedim(0, 1) for x in solve(H[0, 0], h)))
    assert_same(vmap(solve, chunk_size=2)(H, h), expected)
    assert_same(vmap(vmap(lambda H, h, guess: solve(H, h, guess=guess)))(H, h, guess), solve(H, h, guess=guess))
    assert [x.shape for x in vmap(solve)(H[:0], h[:0])] == [x[:0].shape for x in expected]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_transforms_of_torch_func_agree_with_autograd(solver, options, no_fallback):
    arguments = problems(3)
    f = loss(solver, **options)
    expected = gradients(f, arguments)
    assert_same(grad(f, (0, 1))(*arguments), expected)
    assert_same(vjp(f, *arguments)[1](tensor(1.0)), expected)
    assert_same(vmap(grad(f, (0, 1)))(*arguments), expected)
    assert_near(jacrev(f, (0, 1))(*arguments), expected)
    assert_near(jacfwd(f, (0, 1))(*arguments), expected)
    tangent = sum((x * y).sum() for x, y in zip(expected, arguments))
    assert_near(jvp(f, arguments, arguments)[1], tangent)
    assert_near(vmap(lambda H, h: jvp(f, (H, h), (H, h))[1])(*arguments).sum(), tangent)
    block = hessian(f, (0, 1))(arguments[0][1], arguments[1][1])
    assert_near(torch.utils._pytree.tree_map(lambda x: x[1], vmap(hessian(f, (0, 1)))(*arguments)), block)


class Layer(torch.nn.Module):
    def __init__(self, H):
        super().__init__()
        self.H = torch.nn.Parameter(H.clone())

    def forward(self, h):
        return lcp.solve(self.H, h)[0]


def test_a_module_is_called_with_other_parameters_and_as_an_ensemble(no_fallback):
    H, h = problems(3)
    layers = [Layer(x) for x in H]
    total = lambda parameters, layer: functional_call(layer, parameters, (h,)).sin().sum()
    for layer in layers:
        (expected,) = torch.autograd.grad(layer(h).sin().sum(), layer.H)
        assert_same(grad(total)(dict(layer.named_parameters()), layer)["H"], expected)
    parameters, buffers = stack_module_state(layers)
    ensemble = vmap(lambda p, b, h: functional_call(layers[0], (p, b), (h,)), in_dims=(0, 0, None))
    assert_same(ensemble(parameters, buffers, h), torch.stack([layer(h) for layer in layers]))


def test_a_tensor_that_has_left_its_vmap_is_refused():
    H, h = problems(3)
    kept = []
    vmap(lambda h: kept.append(h) or h)(h)
    with pytest.raises(RuntimeError, match="lcp::solve got a tensor that has left its torch.vmap"):
        lcp.solve(H[0], kept[0])


# TorchScript and torch.export


def scripted(H: torch.Tensor, h: torch.Tensor):
    z, w, status = torch.ops.lcp.solve(H, h, ties="midpoint", method="lemke", max_pivots=50)
    x, y, v, mixed_status = torch.ops.lcp.solve_mixed(
        H[..., :2, :2], H[..., :2, 2:], H[..., 2:, :2], H[..., 2:, 2:], h[..., :2], h[..., 2:], kappa=0.1
    )
    return z.sin().sum() + (w * w).sum() + x.sin().sum() + (y * y).sum() + v.sin().sum()


def test_torchscript_is_saved_loaded_and_differentiated():
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(scripted), file)
    file.seek(0)
    loaded = torch.jit.load(file)
    for batch in [(3,), (3,), (3,), (2, 2), (0,)]:  # the first runs only observe
        arguments = problems(*batch)
        assert_same(loaded(*arguments), scripted(*arguments))
        assert_same(gradients(loaded, arguments), gradients(scripted, arguments))
    arguments = problems(3)
    assert_near(jvp(loaded, arguments, arguments)[1], jvp(scripted, arguments, arguments)[1])
    assert_same(vmap(loaded)(*arguments), vmap(scripted)(*arguments))
    assert_near(gradients(torch.jit.trace(scripted, problems(2)), arguments), gradients(scripted, arguments))


class Solver(torch.nn.Module):
    def __init__(self, solver, **options):
        super().__init__()
        self.values = values(solver, **options)

    def forward(self, H, h):
        return self.values(H, h)


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_exported_program_is_saved_loaded_and_differentiated_for_any_batch(solver):
    batch = torch.export.Dim("batch")
    module = Solver(solver, ties="midpoint")
    program = torch.export.export(module, problems(3), dynamic_shapes=({0: batch}, {0: batch}))
    assert f"lcp.{solver}.default" in [str(node.target) for node in program.graph.nodes]
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for arguments in [problems(3), problems(7)]:
        assert_same(list(loaded(*arguments)), list(module(*arguments)))
        total = lambda f: lambda H, h: sum((x.sin() + x * x).sum() for x in f(H, h))
        assert_same(gradients(total(loaded), arguments), gradients(total(module), arguments))
    with pytest.raises(AssertionError, match="Guard failed"):
        loaded(*problems(3, 2))


# torch.compile


@pytest.fixture
def compilers():
    """Compilers that know nothing of other tests and leave nothing behind."""
    torch._dynamo.reset()
    compiled_autograd.reset()
    counters.clear()
    alone = torch._inductor.config.patch(compile_threads=1, cpp_cache_precompile_headers=False)
    with fresh_cache(), alone:
        yield
    torch._dynamo.reset()


def graphs():
    return counters["stats"]["unique_graphs"]


def compiled(f, backend):
    return torch.compile(f, backend=backend, fullgraph=True, dynamic=True)


def both_solvers(*arguments, **options):
    return loss("solve", **options)(*arguments) + loss("solve_mixed", **options)(*arguments)


@pytest.mark.parametrize(
    "backend, options", [("eager", {}), *itertools.product(["aot_eager"], OPTIONS), ("inductor", {})]
)
def test_a_compiled_function_has_the_same_value_and_gradients_for_any_batch(backend, options, compilers):
    f = lambda H, h: both_solvers(H, h, **options)
    g = compiled(f, backend)
    for batch in [6, 7]:
        arguments = problems(batch)
        assert_near(gradients(g, arguments), gradients(f, arguments))
        assert_near(g(*leaves(arguments)).detach(), f(*arguments))
    assert graphs() == 1


def test_options_are_compiled_into_graphs_of_their_own(compilers):
    H, h, _, _, tied = tied_problems(6, seed=4)
    assert tied.any()
    g = compiled(lambda H, h, ties: loss("solve", ties=ties)(H, h), "aot_eager")
    for ties in TIES + TIES:
        f = loss("solve", ties=ties)
        assert_near(gradients(lambda H, h: g(H, h, ties), (H, h)), gradients(f, (H, h)))
    assert graphs() == len(TIES)


@pytest.mark.parametrize("transform", [vmap, lambda f: vmap(grad(f)), jacrev, jacfwd, hessian])
def test_transforms_of_torch_func_are_compiled(transform, compilers):
    f = transform(both_solvers)
    arguments = problems(6)
    assert_near(compiled(f, "aot_eager")(*arguments), f(*arguments))


def test_vmap_is_compiled_with_gradients(compilers):
    f = lambda H, h: vmap(both_solvers)(H, h).sum()
    g = compiled(f, "aot_eager")
    for batch in [6, 7]:
        arguments = problems(batch)
        assert_near(gradients(g, arguments), gradients(f, arguments))


def test_duals_and_autocast_are_compiled(compilers):
    torch.manual_seed(0)
    linear = torch.nn.Linear(N, N)

    def mixed_precision(H, h):
        with torch.autocast("cpu", torch.bfloat16):
            return lcp.solve(H @ torch.eye(N), linear(h))[0].sum()

    def tangent(H, h):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(both_solvers(forward_ad.make_dual(H, H), forward_ad.make_dual(h, h))).tangent

    arguments = problems(6)
    assert_near(compiled(tangent, "aot_eager")(*arguments), tangent(*arguments))
    arguments = [x.float() for x in arguments]
    assert_near(gradients(compiled(mixed_precision, "aot_eager"), arguments), gradients(mixed_precision, arguments))


# Compiled autograd


def compile_backward(backend, fullgraph=True):
    compiler = lambda graph: torch.compile(graph, backend=backend, fullgraph=fullgraph, dynamic=True)
    return compiled_autograd._enable(compiler, dynamic=True)


def compiled_gradients(f, arguments, backend, mode=contextlib.nullcontext, **options):
    inputs = leaves(arguments)
    with mode():
        total = f(*inputs)
    with compile_backward(backend, **options):
        return torch.autograd.grad(total, inputs)


@pytest.mark.parametrize(
    "backend, solver, options",
    [
        *itertools.product(["eager"], ["solve"], OPTIONS),
        *itertools.product(["aot_eager"], ["_solve_blocks"], OPTIONS),
        ("inductor", "solve", {}),
    ],
)
def test_compiled_autograd_gives_the_same_gradients_for_any_batch(backend, solver, options, compilers):
    f = loss(solver, **options)
    for batch in [6, 7]:
        arguments = problems(batch)
        assert_near(compiled_gradients(f, arguments, backend), gradients(f, arguments))
    assert counters["compiled_autograd"]["captures"] == 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_autograd_does_not_confuse_what_nodes_were_made_with(backend, compilers):
    H, h, _, _, _ = tied_problems(1, seed=4)
    weights = normal(2, N, seed=5)
    results = []
    kinds = [(0, "inactive"), (0, "active"), (1, "inactive"), (1, "active"), (2, "active")]
    for equations, ties in kinds + kinds:
        f = lambda H, h: sum((x * y).sum() for x, y in zip(lcp._solve_blocks(H, h, equations, ties=ties), weights))
        assert_near(compiled_gradients(f, (H, h), backend), gradients(f, (H, h)))
    assert counters["compiled_autograd"]["captures"] == len(kinds)


def often(f, inputs, backend, order):
    """The order-th derivative of a number, each by compiled autograd."""
    result = f(*inputs)
    for k in range(order):
        with compile_backward(backend) if backend else contextlib.nullcontext():
            result = torch.autograd.grad(result, inputs, create_graph=k < order - 1)
        result = result if k == order - 1 else sum((x.sin() * x).sum() for x in result)
    return result


@pytest.mark.parametrize("backend, order, options", [("eager", 3, {}), ("aot_eager", 2, {"kappa": 0.1})])
def test_compiled_autograd_differentiates_again(backend, order, options, compilers):
    f, inputs = lambda H, h: lcp.solve(H, h, **options)[0].square().sum(), leaves(problems(3))
    assert_near(often(f, inputs, backend, order), often(f, inputs, None, order))


@pytest.mark.parametrize(
    "mode, fullgraph",
    [(anomaly_mode, True), (deterministic, True), (saved_as_clones, True), (torch.autograd.graph.save_on_cpu, False)],
)
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_compiled_autograd_works_in_a_mode(mode, fullgraph, compilers):
    arguments, f = problems(3), lambda H, h: lcp.solve(H, h)[0].square().sum()
    assert_near(compiled_gradients(f, arguments, "eager", mode, fullgraph=fullgraph), gradients(f, arguments))


def test_compiled_autograd_works_with_a_checkpoint(compilers):
    arguments, f = problems(3), lambda H, h: lcp.solve(H, h)[0].square().sum()
    checkpointed = lambda H, h: checkpoint(f, H, h, use_reentrant=False)
    assert_near(compiled_gradients(checkpointed, arguments, "eager", fullgraph=False), gradients(f, arguments))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_whole_training_step_is_compiled(backend, compilers):
    def step(H, h):
        both_solvers(H, h).backward()

    arguments = problems(6)
    inputs = leaves(arguments)
    with torch._dynamo.config.patch(compiled_autograd=True):
        torch.compile(step, backend=backend)(*inputs)
    assert_near([x.grad for x in inputs], list(gradients(both_solvers, arguments)))
    assert counters["compiled_autograd"]["captures"] == 1


# What PyTorch itself does not do, with the same words for an operator of its own


def sine(H, h):
    return (h.sin() * h).sum() + (H.sin() * H).sum()


WHOSE = pytest.mark.parametrize("f", [lambda H, h: loss("solve")(H, h), sine], ids=["lcp", "PyTorch"])


@WHOSE
def test_pytorch_has_no_third_order_of_compiled_autograd_with_aot(f, compilers):
    with pytest.raises(RuntimeError, match="torch.compile does not currently support higher order gradients"):
        often(f, leaves(problems(3)), "aot_eager", 3)


@WHOSE
def test_pytorch_has_no_second_backward_of_a_compiled_function(f, compilers):
    inputs = leaves(problems(3))
    with torch._functorch.config.patch(donated_buffer=False):  # it asks for that first
        first = torch.autograd.grad(compiled(f, "aot_eager")(*inputs), inputs, create_graph=True)
    with pytest.raises(RuntimeError, match="aot_autograd does not currently support double backward"):
        torch.autograd.grad(first[0].sum(), inputs)


@WHOSE
def test_pytorch_has_no_compiled_autograd_of_a_tangent(f, compilers):
    inputs = leaves(problems(3))
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(f(*(forward_ad.make_dual(x, x.detach()) for x in inputs))).tangent
        with pytest.raises(NotImplementedError, match="compiled_args not implemented: torch::autograd::Identity"):
            with compile_backward("eager"):
                torch.autograd.grad(tangent, inputs)


@WHOSE
def test_pytorch_has_no_compiled_autograd_of_save_on_cpu_in_one_graph(f, compilers):
    with pytest.raises(torch._dynamo.exc.Unsupported, match="save_on_cpu.__init__.<locals>.unpack_from_cpu"):
        compiled_gradients(f, problems(3), "eager", torch.autograd.graph.save_on_cpu)


@WHOSE
def test_pytorch_has_no_transforms_of_a_compiled_function(f, compilers):
    for transform in [grad, vmap, jacrev]:
        match = r"Calling torch.func.\w+\(compiled_fn\) function from eager mode is not supported"
        with pytest.raises(torch._dynamo.exc.Unsupported, match=match):
            transform(compiled(f, "aot_eager"))(*problems(3))
