"""The derivatives of a solve, certificates of them, and the radius in which they hold."""
import itertools
import math

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap
from torch.testing import assert_close

from support import (
    INFINITY, K, N, NAN, OPTIONS, SOLVERS, TIES, WARNINGS_ARE_ERRORS, assert_near, assert_same, backward_often, basis,
    forward, free, gradients, integers, lcp, leaves, loss, normal, piecewise, problems, results, split, split_solve,
    tensor, tied_problems, times, values,
)

pytestmark = [pytest.mark.usefixtures("library"), WARNINGS_ARE_ERRORS]


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
    z_0 = lcp._solve_with_basis(H, h, free(solver))[0]
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
    z_0 = lcp._solve_with_basis(H, h, equations)[0]
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
    """Each linear map of the derivatives, its transpose, and the arguments in which both are differentiable."""
    H, h, v, y, tied = tied_problems(2, free=K, seed=4)
    assert tied.any()
    for equations, tied_active in itertools.product([0, K], [False, True]):
        yield (
            lambda H, r, b=basis(v, y, equations), t=tied_active: lcp._tangent(H, b, r, t),
            lambda H, g, f, b=basis(v, y, equations), t=tied_active: (lcp._adjoint(H, b, g, f, t),),
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
    """Two rows appear twice: M_aa is singular where a pair shares its z, and a copy is tied where it does not."""
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
    dz, dw = lcp._tangent(H, basis(z, w), r, False)
    assert_near(lcp._tangent(M, basis(z_2, w_2), r[:, twice], False), (dz[:, twice] * share, dw[:, twice]))
    g = normal(10, 7, seed=6)
    t = lcp._adjoint(M, basis(z_2, w_2), g, torch.zeros_like(g), False)
    added = torch.zeros_like(z).index_add(1, twice, g * share)
    assert_near(t, lcp._adjoint(H, basis(z, w), added, torch.zeros_like(z), False)[:, twice] * share)


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
    """For each pair the larger of the sizes of z_i and w_i, relative to the terms of the rows."""
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
    rows, columns = (2 ** integers(-9, 9, 50, N, seed=seed).cpu() for seed in (5, 6))  # a GPU's powers are not exact
    rows, columns = rows.to(M.device), columns.to(M.device)
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
        assert lcp.certify(M, q - M[:, 2] * z[2], z)[4].tolist() == [False, False, tied]
        assert lcp.certify(M, q, z)[4].tolist() == [False, False, True]  # the error of a z that is refined


def test_the_certificate_of_nothing_is_perfect():
    residual, margin, condition, rank, ties = lcp.certify(torch.zeros(2, 0, 0), torch.zeros(2, 0), torch.zeros(2, 0))
    assert residual.tolist() == [0, 0] and margin.tolist() == [INFINITY] * 2
    assert condition.tolist() == [1, 1] and rank.tolist() == [0, 0] and ties.shape == (2, 0)


# How far a gradient reaches


def test_z_is_affine_up_to_the_radius_and_its_active_set_changes_beyond():
    M, q, z, w, tied = tied_problems(200)
    dq = integers(-2, 2, 200, N, seed=8)
    radius = lcp.gradient_radius(M, q, z, dq)
    dz, dw = lcp._tangent(M, basis(z, w), dq, False)
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
        ({"B": torch.ones(3, 2)}, r"B must be \[..., k, n\] with A's k = 2 and M's n = 3; got \[3, 2\]"),
        ({"C": torch.ones(3)}, r"C must be \[..., n, k\] with A's k = 2 and M's n = 3; got \[3\]"),
        ({"M": torch.ones(3, 2)}, r"M must be \[..., n, n\]; got \[3, 2\]"),
        ({"p": torch.ones(3)}, r"p must be \[..., k\] with A's k = 2; got \[3\]"),
        ({"q": torch.ones(3).double()}, "q must have A's dtype, Float; got Double"),
        ({"q": torch.ones(3, device="meta")}, r"q must be on A's device, \S+; got meta"),
        ({"guess": torch.ones(2)}, r"guess must be \[..., n\] with M's n = 3; got \[2\]"),
        ({"B": torch.ones(4, 2, 3), "M": torch.ones(5, 3, 3)}, r"B \[4, 2, 3\] must broadcast; got \[5\] and \[4\]"),
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
