"""The operators on a GPU against those on the CPU. Without a GPU, or with a library without kernels for it, these tests
are skipped."""

import cuda_problems
import pytest
import torch

lcp = torch.ops.lcp
KINDS = [cuda_problems.positive, cuda_problems.anything, cuda_problems.degenerate]
TOLERANCE = {torch.double: 1e-9, torch.float: 2e-3}


@pytest.fixture(autouse=True)
def gpu(library):
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    if not torch._C._dispatch_has_kernel_for_dispatch_key("lcp::solve", "CUDA"):
        pytest.skip("the library was configured without TORCHLCP_CUDA")


def assert_same(on_gpu, on_cpu, tolerance):
    torch.testing.assert_close(on_gpu.cpu(), on_cpu, rtol=tolerance, atol=tolerance, equal_nan=True)


def assert_solves(M, q, z, w, status, tolerance):
    solved = status == 0
    M, q, z, w = (x.double() for x in (M, q, z, w))
    residual = torch.minimum(z, (M @ z.unsqueeze(-1)).squeeze(-1) + q).abs().amax(-1)
    assert (residual <= tolerance * q.abs().amax(-1))[solved].all()
    assert ((z >= 0) & (w >= 0) & (z * w == 0)).all(-1)[solved].all()
    assert z.isnan().all(-1)[~solved].all()


@pytest.mark.parametrize("dtype", [torch.double, torch.float], ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 24, 32, 33])
@pytest.mark.parametrize("problems", KINDS, ids=lambda kind: kind.__name__)
def test_statuses_and_solutions_are_those_of_the_cpu(problems, n, dtype):
    M, q = (x.to(dtype) for x in problems(2000 if n <= 6 else 200, n))
    z, w, status = lcp.solve(M, q)
    z_gpu, w_gpu, status_gpu = lcp.solve(M.cuda(), q.cuda())
    if problems is cuda_problems.degenerate and n > 10:  # where the ladder may end without an answer
        assert ((status_gpu.cpu() == status) | (status_gpu.cpu() == 0) | (status == 0)).all()
    else:
        assert status_gpu.cpu().tolist() == status.tolist()
    assert_solves(M.cuda(), q.cuda(), z_gpu, w_gpu, status_gpu, 1e-9 if dtype == torch.double else 1e-4)
    if problems is cuda_problems.positive:  # one solution
        assert_same(z_gpu, z, TOLERANCE[dtype])
        assert_same(w_gpu, w, TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [torch.double, torch.float], ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 8, 13, 24, 32, 33])
def test_gradients_are_those_of_the_cpu(n, dtype):
    M, q = (x.to(dtype) for x in cuda_problems.positive(300, n))
    g = torch.randn(2, 300, n, dtype=dtype)

    def gradients(device, M):
        M, x = M.to(device).requires_grad_(), q.to(device).requires_grad_()
        z, w, _ = lcp.solve(M, x)
        return torch.autograd.grad((z, w), (M, x), tuple(g.to(device)))

    for matrix in (M, M[0]):
        for on_gpu, on_cpu in zip(gradients("cuda", matrix), gradients("cpu", matrix), strict=True):
            assert_same(on_gpu, on_cpu, TOLERANCE[dtype] * max(1.0, on_cpu.abs().max().item()))


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_derivatives_are_those_of_differences(n):
    M, q = (x.cuda().requires_grad_() for x in cuda_problems.positive(3, n))

    def solve(M, q):
        z, w, _ = lcp.solve(M, q)
        return z, w

    assert torch.autograd.gradcheck(solve, (M, q), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(solve, (M, q))


def test_redundant_contacts_have_the_gradients_of_the_cpu():
    M, q = cuda_problems.friction(500)

    def gradients(device):
        M_there, x = M.to(device).requires_grad_(), q.to(device).requires_grad_()
        z, w, _ = lcp.solve(M_there, x)
        return z, torch.autograd.grad((z, w), (M_there, x), (torch.sin(z).detach(), torch.cos(w).detach()))

    (z_gpu, on_gpu), (z_cpu, on_cpu) = gradients("cuda"), gradients("cpu")
    same = (z_gpu.cpu() - z_cpu).abs().amax(-1) < 1e-9  # of redundant forces both are right
    assert same.float().mean() > 0.9
    for a, b in zip(on_gpu, on_cpu, strict=True):
        assert_same(a.cpu()[same], b[same], 1e-6)


@pytest.mark.parametrize("n", [2, 4, 9])
@pytest.mark.parametrize("ties", ["inactive", "active", "midpoint"])
def test_singular_and_tied_gradients_are_those_of_the_cpu(n, ties):
    M, q = cuda_problems.degenerate(500, n)

    def gradient(device):
        M_there, x = M.to(device).requires_grad_(), q.to(device).requires_grad_()
        z, w, status = lcp.solve(M_there, x, ties=ties)
        z.where(status.unsqueeze(-1) == 0, 0).sum().backward()
        return M_there.grad, x.grad, z

    (M_gpu, q_gpu, z_gpu), (M_cpu, q_cpu, z_cpu) = gradient("cuda"), gradient("cpu")
    same = (z_gpu.cpu() - z_cpu).abs().nan_to_num().amax(-1) < 1e-9  # where there are several solutions both are right
    assert_same(q_gpu.cpu()[same], q_cpu[same], 1e-8)
    assert_same(M_gpu.cpu()[same], M_cpu[same], 1e-8)


def test_bad_numbers_have_the_status_of_the_cpu():
    M, q = cuda_problems.positive(64, 3)
    M[3, 1, 2], q[7, 0], q[11, 2] = float("nan"), float("inf"), float("nan")
    z, _, status = lcp.solve(M.cuda(), q.cuda())
    assert status.cpu().tolist() == lcp.solve(M, q)[2].tolist()
    assert sorted(status.nonzero().flatten().tolist()) == [3, 7, 11]


def test_layouts_and_broadcasts():
    M, q = (x.cuda() for x in cuda_problems.positive(60, 3))
    expected = lcp.solve(M, q)
    strided = M.mT.contiguous().mT
    for found in (lcp.solve(strided, q), lcp.solve(M, q.unsqueeze(0)), lcp.solve(M.view(5, 12, 3, 3), q.view(5, 12, 3))):
        assert found[0].reshape(60, 3).equal(expected[0])
    shared = lcp.solve(M[0], q)
    assert shared[0].equal(lcp.solve(M[0].expand(60, 3, 3).contiguous(), q)[0])
    assert lcp.solve(M[:0], q[:0])[0].shape == (0, 3)
    grid = lcp.solve(M[:4, None], q[:5])
    assert grid[0].equal(lcp.solve(M[:4, None].expand(4, 5, 3, 3).contiguous(), q[:5].expand(4, 5, 3).contiguous())[0])


@pytest.mark.parametrize("n", [3, 6, 12])
def test_bits_depend_on_neither_place_nor_neighbours(n):
    M, q = (x.cuda() for x in cuda_problems.anything(1000, n))
    z = lcp.solve(M, q)[0]
    order = torch.randperm(1000, device="cuda")
    assert lcp.solve(M[order], q[order])[0].nan_to_num().equal(z[order].nan_to_num())
    assert lcp.solve(M[517], q[517])[0].nan_to_num().equal(z[517].nan_to_num())


def test_a_guess_chooses_among_solutions():
    M, q = cuda_problems.anything(2000, 3)
    guess = torch.rand_like(q) * (torch.rand_like(q) < 0.5)
    z, _, status = lcp.solve(M, q, guess=guess)
    z_gpu, _, status_gpu = lcp.solve(M.cuda(), q.cuda(), guess=guess.cuda())
    assert status_gpu.cpu().equal(status)
    assert_same(z_gpu, z, 1e-9)


def test_what_has_no_kernel_runs_on_the_cpu():
    M, q = cuda_problems.positive(20, 4)
    sizes = torch.arange(20) % 5
    for keywords in ({"sizes": sizes}, {"method": "lemke"}, {"max_pivots": 50}, {"kappa": 1e-3}):
        on_gpu = {key: x.cuda() if isinstance(x, torch.Tensor) else x for key, x in keywords.items()}
        assert_same(lcp.solve(M.cuda(), q.cuda(), **on_gpu)[0], lcp.solve(M, q, **keywords)[0], 1e-9)
    residuals = [x.cpu() for x in lcp.certify(M.cuda(), q.cuda(), lcp.solve(M, q)[0].cuda())]
    assert len(residuals) > 0


def test_streams_and_graphs():
    M, q = (x.cuda() for x in cuda_problems.positive(5000, 3))
    expected = lcp.solve(M, q)[0]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        z = lcp.solve(M, q)[0]
    stream.synchronize()
    assert z.equal(expected)

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured, _, status = lcp.solve(M, q)
    q.mul_(2)
    graph.replay()
    assert (status == 0).all()
    assert_same(captured, 2 * expected.cpu(), 1e-12)


def test_transforms():
    M, q = (x.cuda() for x in cuda_problems.positive(8, 3))
    rows = torch.func.vmap(lambda M, q: lcp.solve(M, q)[0])(M, q)
    assert_same(rows, lcp.solve(M, q)[0].cpu(), 1e-12)
    with torch.autocast("cuda"):
        assert lcp.solve(M.half(), q.half())[0].dtype == torch.float


CONTACTS = [
    (lambda *x: lcp.solve_friction(*x), cuda_problems.bodies),
    (lambda *x: lcp.solve_contact(*x), cuda_problems.compliant),
]


@pytest.mark.parametrize("dtype", [torch.double, torch.float], ids=str)
@pytest.mark.parametrize("contacts, number", [(1, 1), (2, 1), (4, 1), (8, 2), (10, 5), (11, 1), (4, 6)])
@pytest.mark.parametrize("solve, problems", CONTACTS, ids=["friction", "compliant"])
def test_contacts_have_the_solutions_of_the_cpu(solve, problems, contacts, number, dtype):
    inputs = [x.to(dtype) for x in problems(300, contacts, number)]
    v, gamma, status, _ = solve(*inputs)
    v_gpu, gamma_gpu, status_gpu, iterations = solve(*(x.cuda() for x in inputs))
    assert status_gpu.cpu().equal(status)
    assert (status == 0).all()
    assert iterations.max() > 0 or (problems is cuda_problems.bodies and contacts == 1)
    same = (v_gpu.cpu() - v).abs().amax(-1) < 1e-6  # Coulomb's law may have several solutions
    assert same.all() or (problems is cuda_problems.bodies and same.double().mean() > 0.9)
    assert (gamma_gpu.cpu()[same, 2::3] >= 0).all()


@pytest.mark.parametrize("contacts, number", [(1, 1), (3, 1), (8, 2)])
@pytest.mark.parametrize("solve, problems", CONTACTS, ids=["friction", "compliant"])
def test_gradients_of_contacts_are_those_of_the_cpu(solve, problems, contacts, number):
    inputs = problems(300, contacts, number)

    def gradients(device):
        there = [x.to(device).requires_grad_() for x in inputs]
        v, gamma, _, _ = solve(*there)
        point = torch.cat([v, gamma], -1).detach()
        return point, torch.autograd.grad((v, gamma), there, (torch.sin(v).detach(), torch.cos(gamma).detach()))

    (point_gpu, on_gpu), (point_cpu, on_cpu) = gradients("cuda"), gradients("cpu")
    same = (point_gpu.cpu() - point_cpu).abs().amax(-1) < 1e-8
    assert same.float().mean() > 0.9
    for a, b in zip(on_gpu, on_cpu, strict=True):
        scale = b.flatten(1).abs().amax(-1).clamp(min=1)
        error = (a.cpu() - b).flatten(1).abs().amax(-1) / scale
        assert (error[same] < 1e-6).float().mean() > 0.99  # near a border the last bits decide


@pytest.mark.parametrize("contacts", [4, 8])
def test_derivatives_of_redundant_contacts_are_those_of_the_cpu(contacts):
    """At the same solution: which of them redundant contacts have is often at a border of states."""
    A, v_free, J, b, mu = cuda_problems.bodies(300, contacts, gaps=False)
    v, gamma, u, _, _ = lcp._friction_point(A, v_free, J, b, mu)
    inputs = (A, J, mu, v, gamma, u, torch.sin(v), torch.cos(gamma), torch.sin(3 * u))
    on_gpu = lcp._friction_adjoint(*(x.cuda() for x in inputs))
    for a, b in zip(on_gpu, lcp._friction_adjoint(*inputs), strict=True):
        error = (a.cpu() - b).abs().amax(-1) / b.abs().amax(-1).clamp(min=1)
        assert (error < 1e-8).float().mean() > 0.97  # the others slide by 1e-12 m/s, which is rounding


@pytest.mark.parametrize("solve, problems", CONTACTS, ids=["friction", "compliant"])
def test_derivatives_of_contacts_are_those_of_differences(solve, problems):
    inputs = [x.cuda().requires_grad_() for x in problems(2, 2)]
    points = lambda *x: solve(*x)[:2]
    symmetric = lambda A, *x: points((A + A.mT) / 2, *x)
    assert torch.autograd.gradcheck(symmetric, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(symmetric, inputs)


@pytest.mark.parametrize("solve, problems", CONTACTS, ids=["friction", "compliant"])
def test_contacts_bits_depend_on_neither_place_nor_neighbours(solve, problems):
    inputs = [x.cuda() for x in problems(1000, 5)]
    v = solve(*inputs)[0]
    order = torch.randperm(1000, device="cuda")
    assert solve(*(x[order] for x in inputs))[0].equal(v[order])
    assert solve(*(x[517] for x in inputs))[0].equal(v[517])
    shared = [x if x.dim() == 2 else x[:1].expand_as(x) for x in inputs]
    assert solve(*shared)[0].equal(solve(*(x.contiguous() for x in shared))[0])


@pytest.mark.parametrize("solve, problems", CONTACTS, ids=["friction", "compliant"])
def test_contacts_that_cannot_be_solved_have_the_status_of_the_cpu(solve, problems):
    inputs = problems(64, 3)
    A, v_free, J, mu = inputs[0], inputs[1], inputs[2], inputs[-1]
    A[3, 1, 1] = -1  # not positive definite
    A[5, 0, 1] = 7  # not symmetric
    v_free[7, 2], J[11, 4, 5], mu[13, 1], mu[17, 0] = float("nan"), float("inf"), -1, float("nan")
    v, _, status, _ = solve(*(x.cuda() for x in inputs))
    assert status.cpu().equal(solve(*inputs)[2])
    assert status.nonzero().flatten().tolist() == [3, 5, 7, 11, 13, 17]
    assert v.isnan().all(-1).nonzero().flatten().tolist() == [3, 5, 7, 11, 13, 17]


@pytest.mark.parametrize("solve, problems", CONTACTS, ids=["friction", "compliant"])
def test_graphs_of_contacts(solve, problems):
    inputs = [x.cuda() for x in problems(500, 1)]
    expected = solve(*inputs)[0]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        v, _, status, _ = solve(*inputs)
    graph.replay()
    assert (status == 0).all()
    assert v.equal(expected)


def test_a_guess_starts_the_friction_solver():
    inputs = cuda_problems.bodies(500, 4)
    gamma = lcp.solve_friction(*inputs)[1]
    iterations = lcp.solve_friction(*(x.cuda() for x in inputs), guess=gamma.cuda())[3]
    assert (iterations == 0).float().mean() > 0.9
