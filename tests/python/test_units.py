"""Units of rows and columns change neither which pairs are tied nor a derivative.

w = M z + q in the units 2^r of its rows and 2^-c of z has the matrix 2^r M 2^c. The problems are P-matrices of integers
with planted ties, so that all numbers are exact in every unit.
"""

import pytest
import torch
from runs import LONG_TESTS

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


COUNT = 20_000 if LONG_TESTS else 1000  # problems of each size


def assert_few(wrong, units):
    """None of these elements, or one of 10 000 where the units differ by more than 15 decades."""
    assert wrong.sum() <= (len(wrong) // 10_000 if units > 12 else 0), f"{wrong.sum()} of {len(wrong)}"


def differ(given, expected, tolerance):
    """Which elements differ by more than this part of their largest entries."""
    wrong = torch.zeros(len(given[0]), dtype=torch.bool)
    for x, y in zip(given, expected, strict=True):
        dims = tuple(range(1, x.dim()))
        wrong |= ~((x - y).abs().amax(dims) <= tolerance * y.abs().amax(dims))
    return wrong


def gradients(problem, ties="inactive"):
    """z, and the gradients in M and q of random sums of z and w, in units of 1."""
    M, q, _, _, r, c = problem
    torch.manual_seed(2)
    g_z, g_w = torch.randn(q.shape).to(q.dtype), torch.randn(q.shape).to(q.dtype)
    M, q = M.clone().requires_grad_(), q.clone().requires_grad_()
    z, w, status = torch.ops.lcp.solve(M, q, ties=ties)
    assert not status.any()
    of_M, of_q = torch.autograd.grad((g_z * (c * z) + g_w * (w / r)).sum(), (M, q))
    return c * z, of_M * r[:, :, None] * c[:, None, :], of_q * r


def without_units(problem):
    M, q, z, states, r, c = problem
    one = torch.ones_like(q)
    return M / r[:, :, None] / c[:, None, :], q / r, c * z, states, one, one


UNITS = [(torch.float64, 12), (torch.float64, 20), (torch.float32, 12)]


@pytest.mark.parametrize(("dtype", "units"), [*UNITS, (torch.float64, 0), (torch.float32, 0)])
def test_ties_do_not_depend_on_units(dtype, units):
    torch.manual_seed(0)
    for n in SIZES:
        M, q, z, states, _, _ = planted(COUNT, n, units, dtype)
        _, _, status, basis = torch.ops.lcp._solve_with_basis(M, q, 0, needs_basis=True)
        assert not status.any()
        assert_few((basis != states.to(torch.int8)).any(-1), units)
        residual, margin, _, _, ties = torch.ops.lcp.certify(M, q, z)
        assert torch.equal(ties, states == 2), n
        assert torch.equal(margin == 0, (states == 2).any(-1)), n
        assert (residual <= 1e-12 if dtype == torch.float64 else residual <= 1e-4).all()


@pytest.mark.parametrize(("dtype", "units"), UNITS)
@pytest.mark.parametrize("ties", ["inactive", "active", "midpoint"])
def test_gradients_at_ties_do_not_depend_on_units(dtype, units, ties):
    torch.manual_seed(3)
    for n in SIZES:
        problem = planted(COUNT, n, units, dtype)
        expected = gradients(without_units(problem), ties)
        assert_few(differ(gradients(problem, ties), expected, 1e-9 if dtype == torch.float64 else 1e-4), units)


@pytest.mark.parametrize(("dtype", "units"), UNITS)
def test_directional_derivatives_do_not_depend_on_units(dtype, units):
    torch.manual_seed(4)
    for n in SIZES:
        problem = planted(COUNT, n, units, dtype)
        M, q, z, _, r, c = problem
        dM, dq = torch.randn(M.shape).to(dtype) * M.abs(), torch.randn(q.shape).to(dtype) * r
        dz, dw, status = torch.ops.lcp.directional_derivative(M, q, z, dM, dq)
        plain_M, plain_q, plain_z, _, _, _ = without_units(problem)
        expected = torch.ops.lcp.directional_derivative(plain_M, plain_q, plain_z, dM / r[:, :, None] / c[:, None, :], dq / r)
        assert not status.any() and not expected[2].any(), n
        assert_few(differ((c * dz, dw / r), expected[:2], 1e-9 if dtype == torch.float64 else 1e-3), units)


@pytest.mark.parametrize(("dtype", "units"), [(torch.float64, 12), (torch.float32, 12), (torch.float32, 20)])
def test_derivatives_do_not_depend_on_units(dtype, units):
    torch.manual_seed(1)
    for n in SIZES:
        problem = planted(COUNT, n, units, dtype, ties=False)
        wrong = differ(gradients(problem), gradients(without_units(problem)), 1e-9 if dtype == torch.float64 else 1e-4)
        assert not wrong.any(), f"{wrong.sum()} of {len(wrong)} with n = {n}"


def test_over_twenty_decades_a_derivative_is_right_or_the_certificate_says_that_it_jumps():
    torch.manual_seed(1)
    for n in SIZES:
        problem = planted(COUNT, n, 34, torch.float64, ties=False)
        # Where the columns' units hide those of a row, its z is within the tolerance of the rest.
        wrong = differ(gradients(problem), gradients(without_units(problem)), 1e-3)
        M, q = problem[:2]
        margin = torch.ops.lcp.certify(M, q, torch.ops.lcp.solve(M, q)[0])[1]
        assert wrong.sum() <= len(wrong) // 2000 and (margin[wrong] == 0).all(), f"{wrong.sum()} of {len(wrong)}, n = {n}"


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
