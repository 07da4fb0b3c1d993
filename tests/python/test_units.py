"""Units of rows and columns change neither which pairs are tied nor a derivative.

w = M z + q in the units 2^r of its rows and 2^-c of z has the matrix 2^r M 2^c. The problems are P-matrices of integers
with planted ties, so that all numbers are exact in every unit.
"""

import pytest
import torch

pytestmark = pytest.mark.usefixtures("library")

SIZES = (2, 3, 4, 5, 6, 8, 12, 17, 24)


def planted(count, n, units, dtype, ties=True):
    """M, q, the solution z, the states of its pairs (0 nonbasic, 1 basic, 2 tied), and the units of rows and columns."""
    double = torch.float64
    device = torch.get_default_device()
    with torch.device("cpu"):  # whose powers of two are exact, and which draws the same problems for every device
        M = torch.randint(-3, 4, (count, n, n)).to(double)
        M -= torch.diag_embed(M.diagonal(dim1=1, dim2=2))
        M += torch.diag_embed(M.abs().sum(2) + torch.randint(1, 4, (count, n)))
        states = torch.randint(0, 3 if ties else 2, (count, n))
        z = torch.where(states == 1, torch.randint(1, 20, (count, n)), 0).to(double)
        w = torch.where(states == 0, torch.randint(1, 20, (count, n)), 0).to(double)
        q = w - (M @ z[..., None])[..., 0]
        r = 2.0 ** torch.randint(-units, units + 1, (count, n)).to(double)
        c = 2.0 ** torch.randint(-units, units + 1, (count, n)).to(double)
        M = r[:, :, None] * M * c[:, None, :]
    M, q, z, r, c = (x.to(device, dtype) for x in (M, r * q, z / c, r, c))
    return M, q, z, states.to(device), r, c


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("units", [0, 12])
def test_ties_do_not_depend_on_units(dtype, units):
    torch.manual_seed(0)
    for n in SIZES:
        M, q, z, states, r, c = planted(2000, n, units, dtype)
        _, _, status, basis = torch.ops.lcp._solve_with_basis(M, q, 0, needs_basis=True)
        assert not status.any()
        assert torch.equal(basis, states.to(torch.int8)), n
        _, margin, _, _, ties = torch.ops.lcp.certify(M, q, z)
        assert torch.equal(ties, states == 2), n
        assert torch.equal(margin == 0, (states == 2).any(-1)), n
        dM = torch.randn(M.shape).to(dtype) * M.abs()
        dq = torch.randn(q.shape).to(dtype) * r
        dz, dw, status = torch.ops.lcp.directional_derivative(M, q, z, dM, dq)
        assert not status.any(), n
        assert dz.isfinite().all()


@pytest.mark.parametrize(("dtype", "units"), [(torch.float64, 12), (torch.float64, 34), (torch.float32, 12)])
def test_derivatives_do_not_depend_on_units(dtype, units):
    torch.manual_seed(1)
    for n in SIZES:
        M, q, z, states, r, c = planted(1000, n, units, dtype, ties=False)
        g_z, g_w = torch.randn(q.shape).to(dtype), torch.randn(q.shape).to(dtype)

        def gradient(M, q, r, c, g_z=g_z, g_w=g_w):
            M, q = M.clone().requires_grad_(), q.clone().requires_grad_()
            z, w, status = torch.ops.lcp.solve(M, q)
            assert not status.any()
            of_M, of_q = torch.autograd.grad((g_z * (c * z) + g_w * (w / r)).sum(), (M, q))
            return c * z, of_M * r[:, :, None] * c[:, None, :], of_q * r

        one = torch.ones_like(q)
        plain = M / r[:, :, None] / c[:, None, :]
        tolerance = 1e-9 if dtype == torch.float64 else 1e-4
        if units == 34:
            tolerance = 1e-5  # where the columns' units hide those of a row, its z is within the tolerance of the rest
        for given, expected in zip(gradient(M, q, r, c), gradient(plain, q / r, one, one), strict=True):
            torch.testing.assert_close(given, expected, rtol=tolerance, atol=tolerance * expected.abs().max().item())


def test_a_large_definite_problem_differentiates_as_torch_does():
    torch.manual_seed(2)
    n = 700
    A = torch.randn(n, n, dtype=torch.float64)
    M = A @ A.T / n + 0.1 * torch.eye(n, dtype=torch.float64)
    q = torch.randn(n, dtype=torch.float64, requires_grad=True)
    z, _, status = torch.ops.lcp.solve(M, q)
    assert status == 0
    (given,) = torch.autograd.grad(z.sum(), q)
    active = z > 0
    assert active.sum() > 256  # so that M_aa is factored by blocks
    expected = torch.zeros_like(q)
    expected[active] = -torch.linalg.solve(M[active][:, active].T, torch.ones(active.sum(), dtype=torch.float64))
    torch.testing.assert_close(given, expected, rtol=1e-10, atol=1e-10)
