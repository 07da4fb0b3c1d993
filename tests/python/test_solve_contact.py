"""Compliant contact: what lcp::solve_contact and its companions promise, in all regions and through all of PyTorch."""
import io
import itertools

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, vmap

from runs import variants
from support import (
    NAN, WARNINGS_ARE_ERRORS, assert_near, assert_same, autocast, check_meta, gradients, lcp, leaves, normal, tensor,
    times,
)

pytestmark = [pytest.mark.usefixtures("library"), WARNINGS_ARE_ERRORS]

NAMES = ["A", "v_free", "J", "v_hat", "R", "mu"]
REGIONS = ["none", "slide", "stick"]
BODIES = 4  # velocities


def project(y, R, mu):
    """P(y) of contacts [..., 3], by its formulas."""
    slip, ratio = y[..., :2].norm(dim=-1), R[..., 0] / R[..., 2]
    slides = (y[..., 2] + mu * ratio * slip) / (1 + mu**2 * ratio)
    sliding = torch.cat([(mu * slides / slip)[..., None] * y[..., :2], slides[..., None]], -1)
    none, stick = y[..., 2] <= -mu * ratio * slip, slip <= mu * y[..., 2]
    return torch.where(none[..., None], 0, torch.where(stick[..., None], y, sliding))


def problem(regions, *batch, seed=0, n=BODIES):
    """A problem whose contacts are in these regions, well within: v is chosen first, and v_hat and v_free after it."""
    c = len(regions)
    B = normal(*batch, n, n, seed=seed)
    A = B @ B.mT / n + torch.eye(n, dtype=torch.float64)
    J, v = normal(*batch, 3 * c, n, seed=seed + 1), normal(*batch, n, seed=seed + 2)
    R = (0.02 + 0.05 * normal(*batch, c, 2, seed=seed + 3).abs())[..., [0, 0, 1]]
    mu = 0.3 + 0.5 * normal(*batch, c, seed=seed + 4).abs().clamp(max=1)
    turn = normal(*batch, c, seed=seed + 5)
    y_n = {"none": -2.0, "slide": 0.2, "stick": 2.0}
    y_t = {"none": 0.3, "slide": 3.0, "stick": 0.3}
    height, slip = (tensor([table[x] for x in regions]) for table in (y_n, y_t))
    height = height.where(height > 0, height * (1 + mu * R[..., 0] / R[..., 2]))
    height, slip = torch.broadcast_tensors(height, slip * mu)
    y = torch.stack([slip * turn.cos(), slip * turn.sin(), height], -1)
    gamma = project(y, R, mu).flatten(-2)
    v_hat = times(J, v) + (R * y).flatten(-2)
    v_free = v - torch.linalg.solve(A, times(J.mT, gamma))
    return [A, v_free, J, v_hat, R.flatten(-2), mu], v, gamma


def solve(*arguments, **options):
    return lcp.solve_contact(*arguments, **options)[:2]


def loss(*arguments):
    v, gamma = solve(*arguments)
    return (v.sin() + v * v).sum() + (gamma.cos() + gamma * gamma).sum()


@pytest.mark.parametrize("regions", [[], *([x] for x in REGIONS), REGIONS])
def test_the_solution_is_the_one_that_the_problem_was_made_of(regions):
    arguments, v, gamma = problem(regions, 50)
    result = lcp.solve_contact(*arguments)
    assert not result[2].any()
    assert_near(result[:2], (v, gamma))
    residual, margin, condition = lcp.certify_contact(*arguments, v)
    assert (residual <= 1e-12).all() and (condition >= 1).all()
    assert (margin.isinf() if not regions else (0.001 < margin) & (margin <= 1)).all()


@pytest.mark.parametrize("regions", [[], *([x] for x in REGIONS), REGIONS])
def test_derivatives_are_those_of_differences(regions):
    arguments = leaves(problem(regions, 2, seed=3, n=3)[0])
    exact = lambda *x: solve(*x, tolerance=1e-15)
    assert gradcheck(exact, arguments, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    assert gradgradcheck(exact, arguments, check_fwd_over_rev=True, check_rev_over_rev=True, check_batched_grad=True)


@pytest.mark.parametrize("shared", NAMES)
def test_derivatives_of_what_a_batch_shares(shared):
    arguments = problem(["slide", "stick"], 2, seed=5, n=3)[0]
    arguments = [x[:1] if name == shared else x for name, x in zip(NAMES, arguments)]
    exact = lambda *x: solve(*x, tolerance=1e-15)
    assert gradcheck(exact, leaves(arguments), check_forward_ad=True)
    assert gradgradcheck(exact, leaves(arguments))


def test_hessians_are_the_same_in_every_mode():
    arguments = tuple(problem(REGIONS, seed=7)[0])
    every = tuple(range(6))
    expected = hessian(loss, every)(*arguments)
    for outer, inner in itertools.product([jacrev, jacfwd], repeat=2):
        for row, other in zip(outer(inner(loss, every), every)(*arguments), expected):
            assert_near(row, other)


def test_third_derivatives_are_differences_of_the_second():
    arguments = problem(["slide"], seed=8, n=3)[0]
    direction = [normal(*x.shape, seed=k) for k, x in enumerate(arguments)]
    direction[0] = direction[0] + direction[0].mT
    direction[4] = direction[4][[0, 0, 2]] * 1e-2
    curve = lambda s: loss(*(x + s * d for x, d in zip(arguments, direction)))
    second, h = grad(grad(curve)), 1e-5
    difference = (second(tensor(h)) - second(tensor(-h))) / (2 * h)
    torch.testing.assert_close(grad(second)(tensor(0.0)), difference, rtol=1e-6, atol=1e-6)


def one_contact(mu=0.5):
    """n = 3, A = J = 1, R = 1: y = v_free for v_hat = 0, less the impulse."""
    one = torch.eye(3, dtype=torch.float64)
    return lambda v_free: lcp.solve_contact(one, v_free, one, torch.zeros(3).double(), torch.ones(3).double(),
                                            tensor([mu]))[0]


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_on_an_edge_the_derivative_is_that_of_the_declared_side(jacobian):
    # y = -v, and v_free = v - gamma: 2 v on the edge of stick, v on that of none.
    v = jacobian(one_contact())
    assert_near(v(tensor([-1.0, 0, -2])), torch.eye(3).double() / 2)  # stick | slide
    assert_near(v(tensor([0.0, 0, 0])), torch.eye(3).double())  # none | stick
    assert_near(v(tensor([-2.0, 0, 1])), torch.eye(3).double())  # none | slide
    # Without friction there is no stick.
    frictionless = torch.diag(tensor([1.0, 1, 0.5]))
    assert_near(jacobian(one_contact(0.0))(tensor([0.0, 0, -2])), frictionless)


def test_impulses_are_continuous_over_the_edges():
    v = one_contact()
    for edge, step in [([-1.0, 0, -2], [1.0, 0, 0]), ([-2.0, 0, 1], [0, 0, 1.0]), ([0.0, 0, 0], [0, 0, 1.0])]:
        for h in [1e-3, 1e-6, 1e-9]:
            change = v(tensor(edge) + h * tensor(step)) - v(tensor(edge) - h * tensor(step))
            assert change.abs().max() <= 3 * h


def test_statuses_are_those_of_what_was_given():
    arguments, v, _ = problem(REGIONS, 8)

    def broken(k, change):
        x = arguments[k].clone()
        change(x)
        return [x if i == k else y for i, y in enumerate(arguments)]

    def bad(x, value):
        x[3].view(-1)[0] = value

    cases = [(0, NAN), (0, -1.0), (0, 1e3), (1, float("inf")), (2, NAN), (3, NAN), (4, 0.0), (4, -1.0), (4, NAN),
             (5, -0.1), (5, NAN)]
    expected = solve(*arguments)
    for k, value in cases:
        inputs = leaves(broken(k, lambda x: bad(x, value)))
        v, gamma, status, iterations = lcp.solve_contact(*inputs)
        if (k, value) == (0, 1e3):
            assert not status.any()  # it is still positive definite
            continue
        assert status.tolist() == [0, 0, 0, 4, 0, 0, 0, 0]
        others = [0, 1, 2, 4, 5, 6, 7]
        assert v[3].isnan().all() and gamma[3].isnan().all()
        assert_same((v[others], gamma[others]), tuple(x[others] for x in expected))
        # A loss that leaves the bad one out is not poisoned; one that does not is, in that element alone.
        whole = gradients(lambda *x: sum((y[others] ** 2).sum() for y in solve(*x)), inputs)
        assert all(g.isfinite().all() and not g[3].any() for g in whole)
        lost = gradients(lambda *x: sum(y.sum() for y in solve(*x)), inputs)
        assert all(g[3].isnan().all() and g[others].isfinite().all() for g in lost)
    few = lcp.solve_contact(*arguments, max_iterations=1)
    assert (few[2] == 3).any() and set(few[2].tolist()) <= {0, 3}
    assert (few[0].isnan().all(-1) == (few[2] == 3)).all()
    unequal = broken(4, lambda x: x.mul_(tensor([1.0, 1.01, 1.0] * 3)))
    assert (lcp.solve_contact(*unequal)[2] == 4).all()


def test_second_derivatives_beside_a_bad_neighbour_are_those_of_an_element_alone():
    arguments = problem(REGIONS, 3, seed=2)[0]
    arguments[0][1, 0, 0] = NAN
    others = [0, 2]

    def second(*inputs):
        inputs = leaves(inputs)
        first = torch.autograd.grad(sum((x[k] ** 3).sum() for x in solve(*inputs) for k in range(len(x))
                                        if not x[k].isnan().any()), inputs, create_graph=True)
        return torch.autograd.grad(sum((g * g).sum() for g in first), inputs)

    together = second(*arguments)
    alone = second(*(x[others] for x in arguments))
    for x, y in zip(together, alone):
        assert_near(x[others], y)
        assert not x[1].any()


def test_a_guess_changes_the_way_not_the_end():
    arguments, v, gamma = problem(REGIONS, 20)
    cold, warm = lcp.solve_contact(*arguments), lcp.solve_contact(*arguments, guess=v)
    assert_near(warm[:2], cold[:2])
    assert not warm[3].any() and (cold[3] > 0).all()
    assert_same(lcp.solve_contact(*arguments, guess=torch.full_like(v, NAN)), cold)


def test_bits_depend_neither_on_batch_nor_position_nor_layout_nor_threads():
    arguments = problem(REGIONS, 64, seed=1)[0]
    total = lambda *x: sum((y * y).sum() for y in solve(*x))
    expected, slopes = lcp.solve_contact(*arguments), gradients(total, arguments)
    for k in [0, 17, 63]:
        alone = [x[k] for x in arguments]
        assert_same(lcp.solve_contact(*alone), tuple(x[k] for x in expected))
        assert_same(gradients(total, alone), tuple(x[k] for x in slopes))
    spaced = [torch.stack([x, torch.full_like(x, NAN)], -1)[..., 0] for x in arguments]
    assert_same(lcp.solve_contact(*spaced), expected)
    threads = torch.get_num_threads()
    try:
        for count in [1, 2, 3]:
            torch.set_num_threads(count)
            assert_same(lcp.solve_contact(*arguments), expected)
            assert_same(gradients(total, arguments), slopes)
    finally:
        torch.set_num_threads(threads)


def test_single_precision_is_double_precision_rounded():
    arguments = [x.float() for x in problem(REGIONS, 20)[0]]
    total = lambda *x: sum((y * y).sum() for y in solve(*x))
    exact = [x.double() for x in arguments]
    single, double = lcp.solve_contact(*arguments), lcp.solve_contact(*exact)
    assert single[0].dtype == torch.float32 and not single[2].any()
    assert_same(single[:2], tuple(x.float() for x in double[:2]))
    for x, y in zip(gradients(total, arguments), gradients(total, exact)):
        assert (x - y).abs().max() <= 1e-5 * y.abs().max()


def calls():
    """For each operator, arguments over a batch of two."""
    (A, v_free, J, v_hat, R, mu), v, gamma = problem(REGIONS, 2)
    y = (v_hat - times(J, v)) / R
    yield "solve_contact", (A, v_free, J, v_hat, R, mu), {}
    yield "solve_contact", (A, v_free, J, v_hat, R, mu), {"guess": v, "tolerance": 1e-8, "max_iterations": 50}
    yield "_contact_point", (A, v_free, J, v_hat, R, mu), {}
    yield "certify_contact", (A, v_free, J, v_hat, R, mu, v), {}
    yield "_contact_adjoint", (A, J, R, mu, v, y, v_free, v_hat, gamma), {}
    yield "_contact_inverse", (A, J, torch.eye(3).double().repeat(2, 3, 1), v), {}
    yield "add_equality", (A, v_free, J, v_hat, R), {}
    yield "equality_impulses", (J, v_hat, R, v), {}
    yield "contact_dual", (A, v_free, J, v_hat, R), {}
    yield "delassus_diagonal", (A, J), {}
    yield "contact_parameters", (mu - 0.5, 1e3 * mu, mu, 1 / mu, 0.01), {"beta": 0.5}


def test_every_operator_passes_opcheck():
    for operator, arguments, options in calls():
        inputs = [x.clone().requires_grad_() if isinstance(x, torch.Tensor) else x for x in arguments]
        torch.library.opcheck(getattr(lcp, operator).default, inputs, options)


def test_meta_tensors_have_the_shapes_of_the_results():
    check_meta(calls())


def test_vmap_is_the_loop():
    torch._C._functorch._set_vmap_fallback_enabled(False)
    try:
        for operator, arguments, options in calls():
            tensors = [x for x in arguments if isinstance(x, torch.Tensor)]
            rest = arguments[len(tensors) :]
            constants = {name: x for name, x in options.items() if name != "guess"}
            f = lambda *x: getattr(lcp, operator)(*x, *rest, **constants)
            each = [f(*(x[k] for x in tensors)) for k in range(2)]
            together = vmap(f)(*tensors)
            if isinstance(together, torch.Tensor):
                assert_same(together, torch.stack(each))
            else:
                assert_same(tuple(together), tuple(map(torch.stack, zip(*each))))
        arguments = problem(REGIONS, 3)[0]
        per_element = vmap(grad(loss, tuple(range(6))))(*arguments)
        assert_near(per_element, gradients(loss, arguments))
        shared = vmap(lambda v_free: solve(arguments[0][0], v_free, *(x[0] for x in arguments[2:])))(arguments[1])
        assert_same(shared, solve(arguments[0][0], arguments[1], *(x[0] for x in arguments[2:])))
    finally:
        torch._C._functorch._set_vmap_fallback_enabled(True)


def test_autocast_solves_in_float32():
    arguments = [x.float() for x in problem(REGIONS, 2)[0]]
    half = [x.bfloat16() for x in arguments]
    with autocast():
        result = lcp.solve_contact(*half)
    assert_same(result, lcp.solve_contact(*(x.float() for x in half)))


class Solver(torch.nn.Module):
    def forward(self, A, v_free, J, v_hat, R, mu):
        v, gamma, status, iterations = torch.ops.lcp.solve_contact(A, v_free, J, v_hat, R, mu)
        return (v.sin() + v * v).sum() + (gamma.cos() + gamma * gamma).sum()


def test_torchscript_is_saved_loaded_and_differentiated():
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Solver()), file)
    file.seek(0)
    loaded = torch.jit.load(file)
    for batch in [(3,), (3,), (2, 2), (0,)]:
        arguments = problem(REGIONS, *batch)[0]
        assert_near(loaded(*arguments), loss(*arguments))
        assert_near(gradients(loaded, arguments), gradients(loss, arguments))


def test_an_exported_program_has_the_same_gradients_for_any_batch():
    batch = torch.export.Dim("batch", min=1)
    exported = torch.export.export(Solver(), tuple(problem(REGIONS, 3)[0]), dynamic_shapes=[{0: batch}] * 6)
    for size in [3, 5]:
        arguments = problem(REGIONS, size)[0]
        assert_near(exported.module()(*arguments), loss(*arguments))
        assert_near(gradients(exported.module(), arguments), gradients(loss, arguments))


@pytest.mark.parametrize("backend", variants("aot_eager", "inductor"))
def test_a_compiled_function_has_the_same_gradients(backend):
    torch._dynamo.reset()
    compiled = torch.compile(loss, backend=backend, fullgraph=True, dynamic=True)
    for batch in [4, 5]:
        arguments = problem(REGIONS, batch)[0]
        assert_near(gradients(compiled, arguments), gradients(loss, arguments))
    torch._dynamo.reset()


def test_equalities_fold_into_the_free_motion():
    (A, v_free, J, v_hat, R, _), _, _ = problem(REGIONS, 3)
    total, v = lcp.add_equality(A, v_free, J, v_hat, R)
    assert_near(total, A + J.mT @ (J / R[..., None]))
    assert_near(times(total, v), times(A, v_free) + times(J.mT, v_hat / R))
    pull = (v_hat - times(J, v)) / R
    assert_near(times(A, v - v_free), times(J.mT, pull))
    stiff = lcp.add_equality(A, v_free, J[:, :2], v_hat[:, :2], torch.full((2,), 1e-12, dtype=torch.float64))[1]
    assert (times(J[:, :2], stiff) - v_hat[:, :2]).abs().max() <= 1e-9
    inputs = leaves([A, v_free, J[:, :2], v_hat[:, :2], R[:1, :2]])
    assert gradcheck(lcp.add_equality, inputs, check_forward_ad=True)
    assert gradgradcheck(lcp.add_equality, inputs)
    assert_same(lcp.add_equality(A, v_free, J[:, :0], v_hat[:, :0], R[:, :0])[0], A)
    assert lcp.add_equality(-A, v_free, J[:, :0], v_hat[:, :0], R[:, :0])[1].isnan().all()


def test_springs_and_dampers_are_equalities():
    """With R = 1 / (dt (dt k + d)) and v_hat = -k s R dt they are those of an implicit step."""
    mass, dt, k, d, stretch = tensor([2.0, 3.0]), 0.01, 4e3, 5.0, 0.02
    v_free, J = tensor([0.3, -1.0]), tensor([[-1.0, 1.0]])  # between two bodies on a line
    rate = torch.tensor([dt * k + d], dtype=torch.float64)
    v = lcp.add_equality(torch.diag(mass), v_free, J, -k * stretch / rate, 1 / (dt * rate))[1]
    force = -k * (stretch + dt * times(J, v)) - d * times(J, v)  # at the end of the step
    assert_near(mass * (v - v_free), dt * times(J.mT, force))
    assert (lcp.equality_impulses(J, -k * stretch / rate, 1 / (dt * rate), v) - dt * force).abs() < 1e-12


def corners_of_a_box(count):
    """A and J of a cube of 1 kg and 1 m that stands on so many of its corners."""
    A = torch.diag(tensor([1.0] * 3 + [1 / 6] * 3))
    rows = []
    for x, y in list(itertools.product((-0.5, 0.5), repeat=2))[:count]:
        rows.append(torch.cat([torch.eye(3, dtype=torch.float64), tensor([[0, -0.5, -y], [0.5, 0, x], [y, -x, 0]])], 1))
    return A, torch.cat(rows)


@pytest.mark.parametrize("corners, primal, dual", [(4, 8.5, 14.3), (2, None, 10.4), (1, None, None)])
def test_the_primal_is_well_conditioned_where_contacts_hold_the_body(corners, primal, dual):
    """Else it is not: as R falls, H grows in the directions that contacts hold, and not in the others."""
    A, J = corners_of_a_box(corners)
    v_free, v_hat, mu = tensor([0, 0, -0.1, 0, 0, 0]), torch.zeros(len(J), dtype=torch.float64), tensor([0.5] * corners)
    for R in (1e-2, 1e-4, 1e-6):
        compliance = torch.full_like(v_hat, R)
        v = solve(A, v_free, J, v_hat, compliance, mu)[0]
        H = lcp.certify_contact(A, v_free, J, v_hat, compliance, mu, v)[2].item()
        W = torch.linalg.cond(J @ torch.linalg.solve(A, J.mT) + torch.diag(compliance)).item()
        assert H == pytest.approx(primal, rel=0.01) if primal else H > 1 / R
        assert W == pytest.approx(dual / R, rel=0.02) if dual else W < 6


def test_the_impulses_of_equalities_balance_the_momentum():
    """Beside those of contacts: both change the momentum of the bodies that add_equality was given."""
    (A, v_free, J, v_hat, R, mu), _, _ = problem(REGIONS, 3)
    joint, target = normal(2, 4, seed=5), normal(2, seed=6)
    for compliance in (1.0, 1e-6):
        R_joint = torch.full((2,), compliance, dtype=torch.float64)
        motion = lcp.add_equality(A, v_free, joint, target, R_joint)
        v, gamma, status, _ = lcp.solve_contact(*motion, J, v_hat, R, mu, tolerance=1e-14)
        assert (status == 0).all()
        impulses = lcp.equality_impulses(joint, target, R_joint, v)
        momentum = times(A, v - v_free)
        torch.testing.assert_close(times(J.mT, gamma) + times(joint.mT, impulses), momentum, rtol=1e-6, atol=1e-7)
        torch.testing.assert_close(times(joint, v) + R_joint * impulses, target.expand_as(impulses), rtol=1e-9, atol=1e-9)
    assert gradcheck(lcp.equality_impulses, leaves([joint, target, R_joint + 1, v]), check_forward_ad=True)
    assert gradgradcheck(lcp.equality_impulses, leaves([joint, target, R_joint + 1, v]))


def test_the_impulses_solve_the_dual_and_are_the_slack_of_the_primal():
    """sigma = gamma: both problems have this solution, and their least values differ in sign only."""
    (A, v_free, J, v_hat, R, mu), _, _ = problem(REGIONS, 3)
    v, gamma, _, _ = lcp.solve_contact(A, v_free, J, v_hat, R, mu, tolerance=1e-14)
    H, r = lcp.contact_dual(A, v_free, J, v_hat, R)
    assert_near(H, J @ torch.linalg.solve(A, J.mT) + torch.diag_embed(R).expand_as(H))

    def cone(x, friction):
        """How far each contact's x is within |x_t| <= friction x_n, in x's units."""
        return (friction * x[..., 2::3] - torch.hypot(x[..., 0::3], x[..., 1::3])).min()

    slack = times(H, gamma) + r
    assert cone(gamma, mu) > -1e-12 and cone(slack, 1 / mu) > -1e-9  # gamma in C, slack in C*
    assert (gamma * slack).sum(-1).abs().max() < 1e-9
    assert_near(slack, times(J, v) - v_hat + R * gamma)
    assert_near(v, v_free + torch.linalg.solve(A, times(J.mT, gamma)[..., None])[..., 0])

    def primal(v, sigma):
        return ((v - v_free) * times(A, v - v_free)).sum(-1) / 2 + (R * sigma * sigma).sum(-1) / 2

    def dual(gamma):
        return (gamma * (times(H, gamma) / 2 + r)).sum(-1)

    assert_near(primal(v, gamma), -dual(gamma))
    # Of points near it that fulfil the constraints none is better, in v, sigma or gamma.
    for seed in range(20):
        dv, ds = 0.1 * normal(*v.shape, seed=3 * seed), 0.1 * normal(*gamma.shape, seed=3 * seed + 1)
        inside = times(J, v + dv) - v_hat + R * (gamma + ds)
        lifted = torch.zeros_like(gamma)  # sigma_n that puts the constraint into C* again
        lifted[..., 2::3] = (mu * torch.hypot(inside[..., 0::3], inside[..., 1::3]) - inside[..., 2::3]).clamp(min=0)
        assert (primal(v + dv, gamma + ds + lifted / R) > primal(v, gamma)).all()
        other = gamma + ds
        other[..., 2::3] += (torch.hypot(other[..., 0::3], other[..., 1::3]) / mu - other[..., 2::3]).clamp(min=0)
        assert (dual(other) > dual(gamma)).all()
    inputs = leaves([A, v_free, J, v_hat, R])
    assert gradcheck(lcp.contact_dual, inputs, check_forward_ad=True)
    assert gradgradcheck(lcp.contact_dual, inputs)


def test_parameters_are_those_of_a_spring_and_a_damper():
    (A, _, J, _, _, mu), _, _ = problem(REGIONS, 5)
    w = lcp.delassus_diagonal(A, J)
    W = J @ torch.linalg.solve(A, J.mT)
    blocks = [W[..., k : k + 3, k : k + 3] for k in (0, 3, 6)]
    assert_near(w, torch.stack([x.diagonal(dim1=-2, dim2=-1).mean(-1) for x in blocks], -1))
    assert gradcheck(lcp.delassus_diagonal, leaves([A, J]), check_forward_ad=True)
    gap, k, tau, dt = tensor([0.01, -0.01, -0.02]), tensor([100.0, 1e3, 2e3]), tensor([0.0, 0.1, 0.02]), 0.01
    v_hat, R = lcp.contact_parameters(gap, k, tau, w, dt)
    v_n = tensor([-2.0, -0.5, 0.7])
    impulse = ((v_hat[..., 2::3] - v_n) / R[..., 2::3]).clamp(min=0)
    assert_near(impulse, (dt * k * (-(gap + dt * v_n) - tau * v_n)).clamp(min=0).expand_as(impulse))
    assert_near(R[..., 0::3], 1e-3 * w)
    assert_same(R[..., 0::3], R[..., 1::3])
    stiff = lcp.contact_parameters(gap, 1e12 * k, tau, w, dt)[1]
    assert_near(stiff[..., 2::3], w / (4 * torch.pi**2))
    rigid = lcp.contact_parameters(gap, 1e12 * k, tau, w, dt, beta=0.0)[1]
    assert_near(rigid[..., 2::3], (1 / (1e12 * k * dt * (dt + tau))).expand_as(w))
    f = lambda *x: lcp.contact_parameters(*x, 0.01)
    assert gradcheck(f, leaves([gap, k, tau, w[0]]), check_forward_ad=True)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"A": torch.ones(3, 4)}, r"A must be \[..., n, n\]; got \[3, 4\]"),
        ({"A": torch.eye(4).int()}, "A must be float32 or float64; got Int"),
        ({"J": torch.ones(4, 4).double()}, r"J must be \[..., 3 c, n\] with A's n = 4; got \[4, 4\]"),
        ({"J": torch.ones(9, 4)}, "J must have A's dtype, Double; got Float"),
        ({"v_free": torch.ones(5).double()}, r"v_free must be \[..., n\] with A's n = 4; got \[5\]"),
        ({"v_hat": torch.ones(3).double()}, r"v_hat must be \[..., 3 c\] with J's c = 3; got \[3\]"),
        ({"mu": torch.ones(9).double()}, r"mu must be \[..., c\] with J's c = 3; got \[9\]"),
        ({"R": torch.ones(2, 9).double()}, r"the batch dimensions of A \[3, 4, 4\] and R \[2, 9\] must broadcast"),
        ({"mu": torch.ones(3).double().to_sparse()}, "mu must be a dense tensor; got layout Sparse"),
        ({"guess": torch.ones(3).double()}, r"guess must be \[..., n\] with A's n = 4"),
        ({"tolerance": 0.0}, "tolerance must be finite and > 0; got 0"),
        ({"max_iterations": -1}, "max_iterations must be >= 0; got -1"),
    ],
)
def test_errors_name_the_argument_what_came_and_what_should(change, message):
    arguments = dict(zip(NAMES, problem(REGIONS, 3)[0])) | change
    with pytest.raises(RuntimeError, match=message):
        lcp.solve_contact(**arguments)


@pytest.mark.parametrize(
    "f, message",
    [
        (lambda x: lcp.add_equality(x, x[0], x[:, :1], x[0], x[0]), r"J must be \[..., e, n\] with A's n = 2"),
        (lambda x: lcp.add_equality(x, x[0], x, x[0, :1], x[0]), r"v_hat must be \[..., e\] with J's e = 2"),
        (lambda x: lcp.equality_impulses(x, x[0], x[0], x[0, :1]), r"v must be \[..., n\] with J's n = 2"),
        (lambda x: lcp.contact_dual(x, x[0], x, x[0], x[0]), r"J must be \[..., 3 c, n\]"),
        (lambda x: lcp.contact_parameters(x, x, x, x, 0.0), "dt must be finite and > 0; got 0"),
        (lambda x: lcp.contact_parameters(x, x, x, x, 0.1, sigma=0.0), "sigma must be finite and > 0; got 0"),
        (lambda x: lcp.contact_parameters(x, x, x, x, 0.1, beta=-1.0), "beta must be finite and >= 0; got -1"),
        (lambda x: lcp.contact_parameters(x, x.float(), x, x, 0.1), "stiffness must have gap's dtype"),
        (lambda x: lcp.delassus_diagonal(x, x), r"J must be \[..., 3 c, n\]"),
    ],
)
def test_errors_of_the_other_operators_name_the_argument(f, message):
    with pytest.raises(RuntimeError, match=message):
        f(torch.ones(2, 2).double())
