"""Rows beside the contacts of lcp::solve_friction: stops, dry friction and equations, through all of PyTorch."""
import math

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, vmap

from friction_problems import STATES, problem
from support import NAN, WARNINGS_ARE_ERRORS, assert_near, assert_same, check_meta, gradients, lcp, leaves, normal, tensor, times

pytestmark = [pytest.mark.usefixtures("library"), WARNINGS_ARE_ERRORS]

INF = math.inf
# Of each kind of row: lower, upper, the impulse and the velocity.
KINDS = {
    "holds": (-1.0, 1.5, 0.4, 0.0),
    "slips": (-1.0, 1.5, 1.5, -0.6),
    "slips back": (-1.0, 1.5, -1.0, 0.7),
    "stop": (0.0, INF, 0.8, 0.0),
    "off the stop": (0.0, INF, 0.0, 0.5),
    "other stop": (-INF, 0.0, -0.3, 0.0),
    "equation": (-INF, INF, -0.9, 0.0),
}
NAMES = ["A", "v_free", "J", "b", "mu", "H", "offset", "lower", "upper"]


def with_rows(states, kinds, *batch, seed=0):
    """A problem with rows of these kinds, and its solution, which is chosen first."""
    n = 3 * len(states) + len(kinds) + 1
    (A, v_free, J, b, mu), v, gamma = problem(states, *batch, seed=seed, n=n)
    H = normal(*batch, len(kinds), n, seed=seed + 10)
    lower, upper, h, s = (tensor(x).expand(*batch, -1).clone() for x in zip(*(KINDS[kind] for kind in kinds), strict=True))
    v_free = v_free - torch.linalg.solve(A, times(H.mT, h))
    return [A, v_free, J, b, mu, H, s - times(H, v), lower, upper], v, torch.cat([gamma, h], -1)


def run(*x, **options):
    return lcp.solve_friction(*x[:5], **dict(zip(NAMES[5:], x[5:])), **options)


def solve(*x, **options):
    return run(*x, **options)[:2]


def loss(*x):
    v, gamma = solve(*x)
    return (v.sin() + v * v).sum() + (gamma.cos() + gamma * gamma).sum()


EVERY = [([], list(KINDS)), (STATES, list(KINDS)), *(([state], [kind]) for state, kind in zip(STATES * 3, KINDS))]


@pytest.mark.parametrize("states, kinds", EVERY)
def test_the_solution_is_the_one_that_the_problem_was_made_of(states, kinds):
    x, v, gamma = with_rows(states, kinds, 50)
    result = run(*x)
    assert not result[2].any()
    assert_near(result[:2], (v, gamma))


@pytest.mark.parametrize("states, kinds", EVERY[2:])
def test_derivatives_are_those_of_differences(states, kinds):
    x = leaves(with_rows(states, kinds, seed=1)[0])
    finite = [bound.requires_grad_(bool(bound.isfinite().all())) for bound in x[7:]]
    exact = lambda *x: solve(*x, tolerance=1e-14)
    arguments = (*x[:7], *finite)
    assert gradcheck(exact, arguments, check_forward_ad=all(y.requires_grad for y in arguments), check_batched_grad=True)
    assert gradgradcheck(exact, arguments, check_batched_grad=True)


def test_the_kernel_of_the_derivative_has_the_values_of_its_formula():
    x = with_rows(STATES, list(KINDS), 3)[0]
    for a, b in zip(gradients(loss, x), torch.autograd.grad(loss(*(y := leaves(x))), y, create_graph=True), strict=True):
        assert_near(a, b.detach())
    along = [normal(*y.shape, seed=k) for k, y in enumerate(x)]
    along = [torch.where(y.isfinite(), d, 0) for y, d in zip(x, along)]
    _, tangent = torch.func.jvp(loss, tuple(x), tuple(along))
    assert_near(tangent, sum((g * d).sum() for g, d in zip(gradients(loss, x), along)))


def test_hessians_are_the_same_in_every_mode():
    x = with_rows(["slide"], ["holds", "slips"], seed=2)[0]
    f = lambda v_free: loss(x[0], v_free, *x[2:])
    expected = hessian(f)(x[1])
    for other in (jacrev(jacrev(f)), jacfwd(jacrev(f))):
        assert_near(other(x[1]), expected)


def test_vmap_is_the_loop():
    torch._C._functorch._set_vmap_fallback_enabled(False)
    try:
        x = with_rows(STATES, list(KINDS), 4, seed=4)[0]
        assert_same(vmap(solve)(*x), solve(*x))
        for a, b in zip(vmap(grad(loss, argnums=tuple(range(9))))(*x), gradients(loss, x)):
            assert_near(a, b)
    finally:
        torch._C._functorch._set_vmap_fallback_enabled(True)


def test_rows_broadcast_and_elements_do_not_touch():
    x = with_rows(STATES, list(KINDS), 4, seed=5)[0]
    one = [*x[:5], *(y[:1] for y in x[5:7]), *(y[0] for y in x[7:])]
    together = run(*one)
    for k in range(4):
        alone = run(*(y[k] for y in x[:5]), *(y[0] for y in x[5:]))
        assert_same(tuple(y[k] for y in together), alone)
    bad = [y.clone() for y in x]
    bad[7][1, 0], bad[8][2, 3] = NAN, -1.0
    bad[5][3, 0, 0] = INF
    result = run(*bad)
    assert result[2].tolist() == [0, 4, 4, 4]
    assert_same(tuple(y[0] for y in result), tuple(y[0] for y in run(*x)))
    (gradient,) = torch.autograd.grad(run(x[0], free := leaves([x[1]])[0], *x[2:5], *bad[5:])[0][:2].sum(), free)
    assert gradient[0].isfinite().all() and gradient[1].isnan().all() and not gradient[2:].any()


def test_certificates_know_rows():
    x, v, gamma = with_rows(STATES, list(KINDS), 5)
    rows = dict(zip(NAMES[5:], x[5:]))
    residual, margin, rank, unique = lcp.certify_friction(*x[:5], v, gamma, **rows)
    assert residual.max() < 1e-12 and (margin > 1e-3).all() and (rank == 9 + 7).all() and unique.all()
    off = gamma.clone()
    off[..., 9] += 0.01  # the row that holds: the momentum is off
    assert (lcp.certify_friction(*x[:5], v, off, **rows)[0] > 1e-5).all()
    at_bound = [*x]
    at_bound[8] = at_bound[8].clone()
    at_bound[8][..., 0] = gamma[..., 9] + 1e-9
    assert (lcp.certify_friction(*at_bound[:5], v, gamma, **dict(zip(NAMES[5:], at_bound[5:])))[1] < 1e-6).all()


def test_a_guess_and_single_precision():
    x, v, gamma = with_rows(STATES, list(KINDS), 20)
    assert not run(*x, guess=gamma)[3].any() and (run(*x)[3] > 0).all()
    single = run(*(y.float() for y in x))
    assert not single[2].any() and (single[0] - v).abs().max() < 1e-3


def test_equations_that_contradict_each_other_have_no_solution():
    one = torch.eye(3).double()
    rows = dict(H=torch.stack([one[0], 2 * one[0]]), lower=tensor([-INF, -INF]), upper=tensor([INF, INF]))
    call = lambda **other: lcp.solve_friction(one, one[0], one, one[0] * 0, one[0, :1], **{**rows, **other})[2].item()
    assert call(offset=tensor([1.0, 2.0])) == 0 and call(offset=tensor([1.0, 3.0])) == 2
    assert call(offset=tensor([1.0, 3.0]), upper=tensor([1.0, INF])) == 0


@pytest.mark.parametrize("change, message", [
    (dict(H=torch.ones(2, 4).double()), r"H must be \[..., k, n\] with A's n = 3; got \[2, 4\]"),
    (dict(lower=torch.ones(3).double()), r"lower must be \[..., k\] with H's k = 2; got \[3\]"),
    (dict(lower=None), "lower and upper must be given with H"),
    (dict(H=None), "offset, lower and upper must be absent without H"),
    (dict(kappa=0.1), "kappa must be 0 where there are rows H; got 0.1"),
    (dict(sizes=torch.tensor(1)), "sizes must be absent where there are rows H"),
    (dict(guess=torch.ones(3).double()), r"guess must be .*; got \[3\]"),
    (dict(upper=torch.ones(2)), "upper must have A's dtype")])
def test_mistakes_are_named(change, message):
    one = torch.eye(3, dtype=torch.float64)
    right = dict(A=one, v_free=one[0], J=one, b=one[0], mu=one[0, :1], H=one[:2], lower=-one[0, :2], upper=one[0, :2])
    with pytest.raises(RuntimeError, match=message):
        lcp.solve_friction(**{**right, **change})


def calls():
    x, v, gamma = with_rows(STATES, list(KINDS), 2)
    A, v_free, J, b, mu, H, offset, lower, upper = x
    yield "solve_friction", (A, v_free, J, b, mu), dict(H=H, offset=offset, lower=lower, upper=upper, guess=gamma)
    J, b = torch.cat([J, H], -2), torch.cat([b, offset], -1)
    yield "_row_point", (A, v_free, J, b, mu, lower, upper), {}
    u = lcp._row_point(A, v_free, J, b, mu, lower, upper)[2]
    yield "certify_friction", (A, v_free, *x[2:4], mu, v, gamma), dict(zip(NAMES[5:], x[5:]))
    yield "_certify_rows", (A, v_free, J, b, mu, lower, upper, v, gamma), {}
    yield "_row_adjoint", (A, J, mu, lower, upper, v, gamma, u, v_free, b, gamma), {}


def test_every_operator_passes_opcheck():
    for operator, arguments, options in calls():
        inputs = [x.clone().requires_grad_() for x in arguments]
        torch.library.opcheck(getattr(lcp, operator).default, inputs, options)


def test_meta_tensors_have_the_shapes_of_the_results():
    check_meta(calls())
