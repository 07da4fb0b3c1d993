"""Problems for both solvers, and derivatives to compare.

The problems are pairs (H, h): lcp::solve has M = H and q = h, lcp::solve_mixed the blocks [A B; C M] = H, (p, q) = h.
"""
import contextlib
import itertools
import math

import pytest
import torch
from torch.func import jvp
from torch.testing import assert_close

lcp = torch.ops.lcp

N = 5  # unknowns
K = 2  # so many of them belong to solve_mixed's equations
SOLVERS = ["solve", "solve_mixed"]
TIES = ["inactive", "active", "midpoint"]
# But for warnings that PyTorch's own code causes. torch.jit is deprecated: each version says so in another way.
WARNINGS_ARE_ERRORS = pytest.mark.filterwarnings("error", "ignore:`torch.jit", "ignore:The .grad attribute")
OPTIONS = [{"ties": ties} for ties in TIES] + [{"kappa": 0.1}]
NAN = math.nan
INFINITY = math.inf


# Problems


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def generator(seed):
    """Draws the same numbers on every device."""
    return {"generator": torch.Generator("cpu").manual_seed(seed), "device": "cpu"}


def normal(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, **generator(seed)).to(torch.get_default_device())


def integers(low, high, *shape, seed=0):
    return torch.randint(low, high + 1, shape, **generator(seed)).double().to(torch.get_default_device())


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
    """The blocks A, B, C, M, p, q of a mixed problem."""
    blocks = H[..., :k, :k], H[..., :k, k:], H[..., k:, :k], H[..., k:, k:], h[..., :k], h[..., k:]
    return tuple(x.contiguous() for x in blocks)


def split_solve(H, h, **options):
    return lcp.solve_mixed(*split(H, h), **options)


def values(solver, **options):
    """A function of (H, h) that returns the differentiable results of the solver."""
    if solver == "solve":
        return lambda H, h: lcp.solve(H, h, **options)[:2]
    if solver == "_solve_with_basis":
        return lambda H, h: lcp._solve_with_basis(H, h, K, **options)[:2]
    return lambda H, h: split_solve(H, h, **options)[:3]


def loss(solver, **options):
    """A function of (H, h) whose value has derivatives of every order in all results."""
    return lambda H, h: sum((x.sin() + x * x).sum() for x in values(solver, **options)(H, h))


def free(solver):
    return 0 if solver == "solve" else K


def basis(v, y, equations=0):
    """The complementary basis of a solution whose ties are exactly 0, in the encoding of the derivatives."""
    equation = torch.arange(v.shape[-1]) < equations
    basic = equation | (v > 0)
    return torch.where(basic, 1, torch.where((v == 0) & (y == 0), 2, 0)).to(torch.int8)


def results(solver, v, y):
    """v and y of the whole H, in the form of the results of `values`."""
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
    """v and y with y_i = 0 for active i and v_i = 0 for the others, computed by PyTorch's own operators."""
    rows = torch.where(active[..., None], H, torch.eye(H.shape[-1], dtype=H.dtype))
    v = -torch.linalg.solve(rows, torch.where(active, h, 0))
    return v, torch.where(active, 0, times(H, v) + h)


def piecewise(solver, ties, active, tied):
    """The same values as `values`, computed so that autograd gives the gradients that `ties` promises."""

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
    pack = lambda x: (x.detach().cpu().numpy().copy(), x.device)
    return torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: torch.from_numpy(saved[0]).to(saved[1]))


def autocast():
    return torch.autocast(torch.get_default_device().type, torch.bfloat16)


def saved_as_clones():
    return torch.autograd.graph.saved_tensors_hooks(torch.clone, torch.clone)


def to_meta(arguments):
    return torch.utils._pytree.tree_map(lambda x: x.to("meta") if isinstance(x, torch.Tensor) else x, arguments)


def check_meta(calls):
    """calls: of each an operator, its arguments and its options."""
    for operator, arguments, options in calls:
        f = getattr(lcp, operator)
        assert_same(f(*to_meta(arguments), **to_meta(options)), to_meta(f(*arguments, **options)))


def check_meta_strides(calls):
    for operator, arguments, _ in calls:
        meta = getattr(lcp, operator)(*to_meta(arguments))
        assert [x.stride() for x in meta] == [x.stride() for x in getattr(lcp, operator)(*arguments)]


def check_operators(calls):
    """What torch.library.opcheck checks, of each call."""
    for operator, arguments, options in calls:
        torch.library.opcheck(getattr(lcp, operator).default, arguments, options)
