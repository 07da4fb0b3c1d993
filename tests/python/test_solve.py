"""The operator from Python."""
import pytest
import torch
from support import generator
from torch.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.usefixtures("library")

N = 4


def problems(*batch, n=N, seed=0):
    """P-matrices, nonsymmetric, and q away from ties."""
    draws = generator(seed)
    normal = lambda *shape: torch.randn(*shape, dtype=torch.float64, **draws).to(torch.get_default_device())
    while True:
        A, S, q = normal(*batch, n, n), normal(*batch, n, n), normal(*batch, n)
        M = A.mT @ A + torch.eye(n, dtype=torch.float64) + S - S.mT
        z, w, status = torch.ops.lcp.solve(M, q)
        assert (status == 0).all()
        if torch.maximum(z, w).min() > 1e-2:
            return M.requires_grad_(), q.requires_grad_()


def z_and_w(M, q):
    return torch.ops.lcp.solve(M, q)[:2]


def derivatives_hold(M, q):
    assert gradcheck(z_and_w, (M, q), check_forward_ad=True)
    assert gradgradcheck(z_and_w, (M, q), check_fwd_over_rev=True)


@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_derivatives(batch):
    derivatives_hold(*problems(*batch))


def test_derivatives_of_a_shared_matrix_and_a_shared_vector():
    M, q = problems(3)
    derivatives_hold(M[0].detach().requires_grad_(), q)
    derivatives_hold(M, q[0].detach().requires_grad_())
    derivatives_hold(M[:, None].detach().requires_grad_(), q[None].detach().requires_grad_())


def test_derivatives_of_views():
    M, q = problems(3)
    transposed = M.detach().mT.contiguous().requires_grad_()
    assert gradcheck(lambda A, b: z_and_w(A.mT, b), (transposed, q))
    assert gradcheck(lambda A, b: z_and_w(A[0].expand(3, N, N), b[1].expand(3, N)), (M, q))


def test_derivatives_on_both_sides_of_stick_and_slide():
    def v_next(v, c, limit):
        zero, one = torch.zeros_like(c), torch.ones_like(c)
        rows = [[c, -c, one], [-c, c, one], [-one, -one, zero]]
        M = torch.stack([torch.stack(row, -1) for row in rows], -2)
        z, _, status = torch.ops.lcp.solve(M, torch.stack([v, -v, limit], -1))
        assert (status == 0).all()
        return v + c * (z[..., 0] - z[..., 1])

    v = torch.tensor([-2.0, -0.51, -0.49, -0.1, 0.1, 0.49, 0.51, 2.0], dtype=torch.float64, requires_grad=True)
    c = torch.ones_like(v).detach().requires_grad_()
    limit = torch.full_like(v, 0.5).detach().requires_grad_()
    assert gradcheck(v_next, (v, c, limit))
    slides = (v.detach().abs() > 0.5).double()
    assert torch.allclose(torch.autograd.grad(v_next(v, c, limit).sum(), v)[0], slides)


@pytest.mark.parametrize("op", ["solve", "_tangent", "_adjoint", "_sum_outer"])
def test_opcheck(op):
    M, q = problems(3)
    z, _, _, states = (x.detach() for x in torch.ops.lcp._solve_with_basis(M, q, 0))
    g = torch.randn_like(z).requires_grad_()
    arguments = {
        "solve": (M, q),
        "_tangent": (M, states, g, False),
        "_adjoint": (M, states, g, g.detach().requires_grad_(), False),
        "_sum_outer": (g, z.requires_grad_(), [N, N]),
    }[op]
    torch.library.opcheck(getattr(torch.ops.lcp, op).default, arguments)


@pytest.mark.parametrize("equations", [0, 2])
def test_the_basis_is_found_only_where_it_is_needed(equations):
    M, q = problems(3)
    solve = torch.ops.lcp._solve_with_basis
    with torch.no_grad():
        assert (solve(M, q, equations)[3] == -1).all()
        asked = solve(M, q, equations, needs_basis=True)[3]
    assert (asked >= 0).all() and torch.equal(solve(M, q, equations)[3], asked)


def test_internal_derivatives():
    M, q = problems(3)
    z, _, _, states = (x.detach() for x in torch.ops.lcp._solve_with_basis(M, q, 0))
    g, h = (torch.randn_like(z).requires_grad_() for _ in range(2))
    for op, inputs in [
        (lambda M, g: torch.ops.lcp._tangent(M, states, g, False), (M, g)),
        (lambda M, g, h: torch.ops.lcp._adjoint(M, states, g, h, False), (M, g, h)),
        (lambda g, h: torch.ops.lcp._sum_outer(g, h, [N, N]), (g, h)),
        (lambda g, h: torch.ops.lcp._sum_outer(g, h, [1, N, N]), (g, h)),
        (lambda g, h: torch.ops.lcp._sum_outer(g, h, [3, N, N]), (g, h)),
    ]:
        assert gradcheck(op, inputs, check_forward_ad=True)
        assert gradgradcheck(op, inputs)


def test_torchscript():
    @torch.jit.script
    def step(M: torch.Tensor, q: torch.Tensor):
        z, w, status = torch.ops.lcp.solve(M, q, method="lemke", max_pivots=50)
        return z, w, status

    M, q = problems(3)
    for scripted, eager in zip(step(M, q), torch.ops.lcp.solve(M, q, method="lemke", max_pivots=50)):
        assert torch.equal(scripted, eager)


def test_errors_name_the_argument():
    M, q = torch.eye(3), torch.ones(3)
    for call, message in [
        (lambda: torch.ops.lcp.solve(M[:2], q), r"M must be \[..., n, n\]; got \[2, 3\]"),
        (lambda: torch.ops.lcp.solve(M, q.double()), "q must have M's dtype, Float; got Double"),
        (lambda: torch.ops.lcp.solve(M, q, ties="both"), 'ties must be "inactive", "active" or "midpoint"; got "both"'),
        (lambda: torch.ops.lcp.solve(M, q, guess=q[:2]), r"guess must be \[..., n\] with M's n = 3; got \[2\]"),
        (lambda: torch.ops.lcp.solve(M, q, kappa=-1e-3), "kappa must be finite and >= 0; got -0.001"),
        (lambda: torch.ops.lcp.solve(M, q, method="dantzig"), 'method must be "auto", .*; got "dantzig"'),
    ]:
        with pytest.raises(RuntimeError, match=message):
            call()


def test_an_unsolved_element_keeps_to_itself():
    M = torch.eye(2, dtype=torch.float64).repeat(3, 1, 1)
    M[1] *= -1
    M.requires_grad_()
    q = -torch.ones(3, 2, dtype=torch.float64)
    z, w, status = torch.ops.lcp.solve(M, q)
    assert status.tolist() == [0, 2, 0]
    assert z.isnan().any(-1).tolist() == w.isnan().any(-1).tolist() == [False, True, False]
    (gradient,) = torch.autograd.grad(z[::2].sum(), M, retain_graph=True)
    assert torch.equal(gradient[1], torch.zeros(2, 2, dtype=torch.float64))
    (gradient,) = torch.autograd.grad(z.sum(), M)
    assert gradient.isnan().any(-1).any(-1).tolist() == [False, True, False]
