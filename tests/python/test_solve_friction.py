"""Rigid contact with friction: what lcp::solve_friction promises, in all states and through all of PyTorch."""
import io
import itertools
import math

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, vmap

from friction_problems import STATES, box_on_ground, flat_bodies, problem, solve
from runs import variants
from support import (
    NAN, WARNINGS_ARE_ERRORS, assert_near, assert_same, autocast, check_meta, gradients, lcp, leaves, normal, tensor,
    times,
)

pytestmark = [pytest.mark.usefixtures("library"), WARNINGS_ARE_ERRORS]

NAMES = ["A", "v_free", "J", "b", "mu"]


def loss(*arguments):
    v, gamma = solve(*arguments)
    return (v.sin() + v * v).sum() + (gamma.cos() + gamma * gamma).sum()


EVERY = [[], *([x] for x in STATES), STATES]


@pytest.mark.parametrize("states", EVERY)
def test_the_solution_is_the_one_that_the_problem_was_made_of(states):
    arguments, v, gamma = problem(states, 50)
    result = lcp.solve_friction(*arguments)
    assert not result[2].any()
    assert_near(result[:2], (v, gamma))


@pytest.mark.parametrize("states", EVERY)
def test_derivatives_are_those_of_differences(states):
    arguments = leaves(problem(states, 2, seed=3)[0])
    exact = lambda *x: solve(*x, tolerance=1e-14)
    assert gradcheck(exact, arguments, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    if len(states) < 2:
        assert gradgradcheck(exact, arguments, check_fwd_over_rev=True, check_batched_grad=True)


def test_second_derivatives_where_contacts_meet():
    arguments = leaves(problem(STATES, seed=3, n=4)[0])
    assert gradgradcheck(lambda *x: solve(*x, tolerance=1e-14)[0], arguments)


def test_hessians_are_the_same_in_every_mode():
    arguments = tuple(problem(STATES, seed=7)[0])
    every = tuple(range(5))
    expected = hessian(loss, every)(*arguments)
    for outer, inner in itertools.product([jacrev, jacfwd], repeat=2):
        for row, other in zip(outer(inner(loss, every), every)(*arguments), expected):
            assert_near(row, other)


def test_without_friction_normals_alone_push():
    arguments, _, _ = problem(["slide", "apart"], 2, seed=2)
    arguments[4] = torch.zeros_like(arguments[4])
    gamma = lcp.solve_friction(*arguments)[1].unflatten(-1, (2, 3))
    assert not gamma[..., :2].any() and (gamma[..., 2] >= 0).all()
    *rest, mu = arguments
    exact = lambda *x: solve(*x, mu, tolerance=1e-14)
    assert gradcheck(exact, leaves(rest), check_forward_ad=True)
    assert gradgradcheck(exact, leaves(rest), check_fwd_over_rev=True)


@pytest.mark.parametrize("v_free, expected", [
    ([0.2, 0, -1, 0, 0, 0], [0, 0, 0, 0, 0, 0]), ([1.2, 0, -1, 0, 0, 0], [0.7, 0, 0, 0, 0, 0]),
    ([1.2, 0, 0.1, 0, 0, 0], [1.2, 0, 0.1, 0, 0, 0])])
def test_redundant_contacts_have_one_motion(v_free, expected):
    """v is differentiable though the corners may share the load in many ways; the derivative of gamma is the least."""
    arguments = box_on_ground(v_free)
    v, gamma, status, _ = lcp.solve_friction(*arguments)
    assert status == 0
    assert_near(v, tensor(expected).double())
    A, free, J, b, mu = leaves(arguments)
    motion = lambda A, free, mu: lcp.solve_friction(A, free, J.detach(), b.detach(), mu, tolerance=1e-14)[0]
    if v_free != [1.2, 0, -1, 0, 0, 0]:  # a slide of many corners in one direction is an edge for turning
        assert gradcheck(motion, (A, free, mu), check_forward_ad=True)
        assert gradgradcheck(motion, (A, free, mu))
    else:
        slope = torch.autograd.grad(motion(A, free, mu)[0], (free, mu))
        assert_near(slope[0], tensor([1, 0, 0.5, 0, 0, 0]))
        assert_near(slope[1].sum(), tensor(-1.0))
    total = lambda *x: lcp.solve_friction(*x)[1].unflatten(-1, (4, 3))[:, 2].sum()  # the weight
    weight = torch.autograd.grad(total(A, free, J, b, mu), free)[0]
    assert_near(weight, tensor([0, 0, 0 if v_free[2] > 0 else -1, 0, 0, 0.0]))


def test_where_v_may_change_by_itself_its_derivative_is_one_that_obeys_the_law():
    """u_t = .3 + (c - mu) gamma_n, u_n = (1 - c mu) gamma_n = 0: whatever gamma_n is, the contact slides [Painleve]."""
    W, mu = torch.eye(3, dtype=torch.float64), tensor([2.0])
    W[0, 2] = W[2, 0] = 0.5
    one, free = torch.eye(3, dtype=torch.float64), tensor([0.3, 0, 0])
    start = tensor([-0.1, 0, 0.05])
    motion = lambda v: lcp.solve_friction(torch.linalg.inv(W), v, one, torch.zeros(3).double(), mu, guess=start)
    v, gamma, status, _ = motion(free)
    assert status == 0
    assert_near(gamma, start)
    assert not lcp.certify_friction(torch.linalg.inv(W), free, one, torch.zeros(3).double(), mu, v, gamma)[3]
    # With du_n = 0 and dgamma_t = -mu dgamma_n, any dgamma_n is a solution, and 0 the least, unless v_free pushes.
    dv = lambda *change: torch.func.jvp(lambda x: motion(x)[0], (free,), (tensor(change),))[1]
    assert_near(dv(1, 0, 0), tensor([1.0, 0, 0]))
    assert dv(0, 0, 1).isfinite().all()  # no change of gamma keeps the contact closed
    free.requires_grad_()
    kernel = torch.autograd.grad(motion(free)[0][0], free)[0]
    assert_near(kernel, torch.stack([dv(*axis)[0] for axis in torch.eye(3).tolist()]))
    assert_near(kernel, torch.autograd.grad(motion(free)[0][0], free, create_graph=True)[0])


def test_in_other_coordinates_a_sparse_problem_is_dense_and_has_the_same_solution():
    """Thirty bodies, each on a contact of its own: most entries of A and J are 0, unless the coordinates are mixed."""
    states = STATES * 10
    each = [problem([state], seed=20 * k, n=3)[0] for k, state in enumerate(states)]
    A, J = (torch.block_diag(*(x[k] for x in each)) for k in (0, 2))
    v_free, b, mu = (torch.cat([x[k] for x in each]) for k in (1, 3, 4))
    Q = torch.linalg.qr(normal(90, 90))[0]  # v = Q' of the new velocities

    def mixed(A, v_free, J, b, mu):
        v, gamma = solve(Q @ A @ Q.mT, Q @ v_free, J @ Q.mT, b, mu, tolerance=1e-14)
        return Q.mT @ v, gamma

    sparse = lambda *x: solve(*x, tolerance=1e-14)
    arguments = [A, v_free, J, b, mu]
    assert_near(sparse(*arguments), mixed(*arguments))
    total = lambda f: lambda *x: sum(y.sin().sum() for y in f(*x))
    for x, y in zip(gradients(total(sparse), arguments), gradients(total(mixed), arguments)):
        assert_near(x, y)


def test_a_box_that_slides_and_spins_on_its_corners_has_a_gradient():
    """The split of the load among the corners changes the torque of their friction, so that v is not unique."""
    inputs = leaves(box_on_ground([1.2, 0, -1, 0, 0, 0.2]))
    v, gamma, status, _ = lcp.solve_friction(*inputs)
    assert status == 0 and not lcp.certify_friction(*inputs, v, gamma)[3]
    assert all(g.isfinite().all() for g in torch.autograd.grad(v.sum(), inputs))


def test_the_kernel_of_the_derivative_has_the_values_of_its_formula():
    boxes = [box_on_ground(v) for v in ([0.2, 0, -1, 0, 0, 0], [1.2, 0, -1, 0.3, 0.1, 0.2], [0.1, 0, 1, 2, 0, 0])]
    stacked = [torch.stack(x) for x in zip(*boxes)]
    A, v_free, J, b, mu = boxes[0]  # it sticks on four corners; a fifth contact, at an upper one, is open
    axes = torch.eye(3, dtype=torch.float64)
    upper = torch.cat([axes, torch.linalg.cross(tensor([0.5, 0.5, 0.5]).expand(3, 3), axes)], 1)
    beside = [A, v_free, torch.cat([J, upper]), torch.cat([b, tensor([0.0, 0, 0.1])]), torch.cat([mu, mu[:1]])]
    cases = [problem(STATES, 20, seed=6)[0], problem(["slide"] * 3, 20, seed=6, n=3)[0], stacked, beside]
    for arguments in cases:
        inputs = leaves(arguments)
        kernel = torch.autograd.grad(loss(*inputs), inputs)
        formula = torch.autograd.grad(loss(*inputs), inputs, create_graph=True)
        for x, y in zip(kernel, formula):
            torch.testing.assert_close(x, y.detach(), rtol=1e-7, atol=1e-8)


def test_certificates_tell_what_is_known():
    arguments, v, gamma = problem(STATES, 20)
    residual, margin, rank, unique = lcp.certify_friction(*arguments, v, gamma)
    assert (residual <= 1e-12).all() and (0 < margin).all() and margin.isfinite().all()
    assert (rank == 9).all() and unique.all()
    off = lcp.certify_friction(*arguments, v + 1e-3, gamma)
    assert (off[0] > 1e-5).all()
    scaled = [arguments[0] * 2**20, arguments[1] / 2**10, arguments[2], arguments[3] / 2**10, arguments[4]]
    assert_same(lcp.certify_friction(*scaled, v / 2**10, gamma * 2**10), (residual, margin, rank, unique))
    box = box_on_ground([0.2, 0, -1, 0, 0, 0])
    residual, margin, rank, unique = lcp.certify_friction(*box, *solve(*box))
    assert residual < 1e-12 and rank == 6 and unique  # the corners share the load in many ways, and none moves the box
    one = torch.eye(3, dtype=torch.float64)
    for friction, distance in [(0.5, 0.1 / math.sqrt(1.25)), (0.3, 0.1)]:  # it sticks within .4 < mu, and slides at .1
        at = one, tensor([0.4, 0, -1]), one, torch.zeros(3).double(), tensor([friction])
        assert_near(lcp.certify_friction(*at, *solve(*at))[1], tensor(distance))
    none = lcp.certify_friction(one, one[0], one[:0], one[0, :0], one[0, :0], one[0], one[0, :0])
    assert none[0] == 0 and none[1] == math.inf and none[2] == 0 and none[3]
    bad = lcp.certify_friction(-one, one[0], one, one[0], one[0, :1], one[0], one[0])
    assert bad[0].isnan() and bad[1].isnan() and bad[2] == 0 and not bad[3]


def one_contact(v_free, mu=tensor([0.5])):
    one = torch.eye(3, dtype=torch.float64)
    return solve(one, v_free, one, torch.zeros(3).double(), mu, tolerance=1e-14)


# For each border of two states: a v_free of one contact on it, the way across, and the declared side.
BORDERS = {"slide | stick": ([0.5, 0, -1], [1.0, 0, 0], -1), "slide | apart": ([0.3, 0, 0], [0, 0, 1.0], 1),
           "stick | apart": ([0.0, 0, 0], [0, 0, 1.0], 1)}


@pytest.mark.parametrize("create_graph", [False, True], ids=["kernel", "formula"])
def test_the_sign_of_round_off_does_not_choose_a_derivative(create_graph):
    """A redundant support that carries nothing has a normal velocity of 0 but for round-off."""
    A, v_free, J, b, mu = flat_bodies(1500, 4)

    def gradient(mu):
        mu = mu.requires_grad_()
        v, gamma, status, _ = lcp.solve_friction(A, v_free, J, b, mu)
        assert not status.any()
        normals = [x.detach().unflatten(-1, (4, 3))[..., 2] for x in (gamma, times(J, v))]
        return v.detach(), *normals, torch.autograd.grad(v.square().sum(), mu, create_graph=create_graph)[0].detach()

    results = [gradient(mu * (1 + k * 1e-15)) for k in range(4)]
    v, load, speed, g = results[0]
    unsure = torch.zeros(1500, dtype=torch.bool)
    for other_v, other_load, other_speed, other in results[1:]:
        same = (v - other_v).abs().amax(-1) < 1e-14  # where v is not unique, it may move with the round-off
        rounded = (load == 0) & (other_load == 0) & (speed < 0).logical_xor(other_speed < 0)
        unsure |= same & rounded.any(-1)
        assert_near(g[same], other[same])
    assert unsure.sum() > 10


@pytest.mark.parametrize("border", BORDERS)
def test_on_both_sides_of_a_border_the_derivatives_are_those_of_differences(border):
    on, across, _ = BORDERS[border]
    for side in (-1e-3, 1e-3):
        inputs = leaves([tensor(on) + side * tensor(across), tensor([0.5])])
        assert gradcheck(one_contact, inputs, check_forward_ad=True)
        assert gradgradcheck(one_contact, inputs, check_fwd_over_rev=True)


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
@pytest.mark.parametrize("border", BORDERS)
def test_on_a_border_the_derivative_is_that_of_the_declared_side(border, jacobian):
    on, across, side = BORDERS[border]
    slope = jacobian(lambda v: one_contact(v)[0])
    assert_near(slope(tensor(on)), slope(tensor(on) + 1e-3 * side * tensor(across)))
    assert (slope(tensor(on)) - slope(tensor(on) - 1e-3 * side * tensor(across))).abs().max() > 0.1


def test_statuses_are_those_of_what_was_given():
    arguments, v, _ = problem(STATES, 8)

    def broken(k, value):
        x = arguments[k].clone()
        x[3].view(-1)[0] = value
        return [x if i == k else y for i, y in enumerate(arguments)]

    cases = [(0, NAN), (0, -1.0), (1, float("inf")), (2, NAN), (3, NAN), (4, -0.1), (4, NAN)]
    expected = solve(*arguments)
    others = [0, 1, 2, 4, 5, 6, 7]
    for k, value in cases:
        inputs = leaves(broken(k, value))
        v, gamma, status, iterations = lcp.solve_friction(*inputs)
        assert status.tolist() == [0, 0, 0, 4, 0, 0, 0, 0]
        assert v[3].isnan().all() and gamma[3].isnan().all()
        assert_same((v[others], gamma[others]), tuple(x[others] for x in expected))
        # A loss that leaves the bad one out is not poisoned; one that does not is, in that element alone.
        whole = gradients(lambda *x: sum((y[others] ** 2).sum() for y in solve(*x)), inputs)
        assert all(g.isfinite().all() and not g[3].any() for g in whole)
        lost = gradients(lambda *x: sum(y.sum() for y in solve(*x)), inputs)
        assert all(g[3].isnan().all() and g[others].isfinite().all() for g in lost)
    few = lcp.solve_friction(*arguments, max_iterations=1)
    assert (few[2] == 3).any() and set(few[2].tolist()) <= {0, 3}
    walls = torch.cat([torch.eye(3), -torch.eye(3)]).double()
    one, two = torch.eye(3).double(), torch.ones(2).double()
    between = lcp.solve_friction(one, one[0], walls, -torch.ones(6).double(), two)
    assert between[2] == 2 and between[0].isnan().all()


def test_a_guess_changes_the_way_not_the_end():
    arguments, v, gamma = problem(STATES, 20)
    cold, warm = lcp.solve_friction(*arguments), lcp.solve_friction(*arguments, guess=gamma)
    assert_near(warm[:2], cold[:2])
    assert not warm[3].any() and (cold[3] > 0).all()
    assert_same(lcp.solve_friction(*arguments, guess=torch.full_like(gamma, NAN)), cold)


def test_bits_depend_neither_on_batch_nor_position_nor_layout_nor_threads():
    arguments = problem(STATES, 64, seed=1)[0]
    total = lambda *x: sum((y * y).sum() for y in solve(*x))
    expected, slopes = lcp.solve_friction(*arguments), gradients(total, arguments)
    for k in [0, 17, 63]:
        alone = [x[k] for x in arguments]
        assert_same(lcp.solve_friction(*alone), tuple(x[k] for x in expected))
        assert_same(gradients(total, alone), tuple(x[k] for x in slopes))
    spaced = [torch.stack([x, torch.full_like(x, NAN)], -1)[..., 0] for x in arguments]
    assert_same(lcp.solve_friction(*spaced), expected)
    threads = torch.get_num_threads()
    try:
        for count in [1, 2, 3]:
            torch.set_num_threads(count)
            assert_same(lcp.solve_friction(*arguments), expected)
            assert_same(gradients(total, arguments), slopes)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("shared", NAMES)
def test_derivatives_of_what_a_batch_shares(shared):
    arguments = problem(["slide"], 2, seed=5)[0]
    arguments = [x[:1] if name == shared else x for name, x in zip(NAMES, arguments)]
    exact = lambda *x: solve(*x, tolerance=1e-14)
    assert gradcheck(exact, leaves(arguments), check_forward_ad=True)


def test_single_precision_is_double_precision_rounded():
    arguments = [x.float() for x in problem(STATES, 20)[0]]
    total = lambda *x: sum((y * y).sum() for y in solve(*x, tolerance=1e-10))
    exact = [x.double() for x in arguments]
    single, double = (lcp.solve_friction(*x, tolerance=1e-10) for x in (arguments, exact))
    assert single[0].dtype == torch.float32 and not single[2].any()
    assert_same(single[:2], tuple(x.float() for x in double[:2]))
    for x, y in zip(gradients(total, arguments), gradients(total, exact)):
        assert (x - y).abs().max() <= 1e-4 * y.abs().max()


@pytest.mark.parametrize("dtype, tolerance, other", [(torch.float64, 1e-10, 1e-7), (torch.float32, 1e-7, 1e-10)])
def test_the_tolerance_follows_the_dtype(dtype, tolerance, other):
    arguments = [x.to(dtype) for x in problem(STATES * 2, 200, n=6)[0]]
    default, same, not_same = (lcp.solve_friction(*arguments, tolerance=t) for t in (None, tolerance, other))
    assert_same(default, same)
    assert (default[3] != not_same[3]).any()


def test_vmap_is_the_loop():
    torch._C._functorch._set_vmap_fallback_enabled(False)
    try:
        arguments = problem(STATES, 5, seed=4)[0]
        assert_same(vmap(solve)(*arguments), solve(*arguments))
        slopes = vmap(grad(loss, argnums=tuple(range(5))))(*arguments)
        for x, y in zip(slopes, gradients(loss, arguments)):
            assert_near(x, y)
    finally:
        torch._C._functorch._set_vmap_fallback_enabled(True)


@pytest.mark.parametrize("change, message", [
    (dict(A=torch.ones(3, 4)), r"A must be \[..., n, n\]"),
    (dict(J=torch.ones(4, 3)), r"J must be \[..., 3 c, n\] with A's n = 3; got \[4, 3\]"),
    (dict(b=torch.ones(2)), r"b must be \[..., 3 c\] with J's c = 1; got \[2\]"),
    (dict(mu=torch.ones(1)), "mu must have A's dtype"),
    (dict(guess=torch.ones(1).double()), r"guess must be \[..., 3 c\] with J's c = 1; got \[1\]"),
    (dict(tolerance=-1.0), "tolerance must be finite and > 0; got -1"),
    (dict(max_iterations=-1), "max_iterations must be >= 0; got -1")])
def test_mistakes_are_named(change, message):
    one = torch.eye(3, dtype=torch.float64)
    right = dict(A=one, v_free=one[0], J=one, b=one[0], mu=one[0, :1])
    with pytest.raises(RuntimeError, match=message):
        lcp.solve_friction(**{**right, **change})


def calls():
    """For each operator, arguments over a batch of two."""
    (A, v_free, J, b, mu), v, gamma = problem(STATES, 2)
    yield "solve_friction", (A, v_free, J, b, mu), {}
    yield "solve_friction", (A, v_free, J, b, mu), {"guess": gamma, "kappa": 0.1, "tolerance": 1e-8, "max_iterations": 50}
    u = lcp._friction_point(A, v_free, J, b, mu)[2]
    yield "_friction_point", (A, v_free, J, b, mu), {}
    yield "_friction_adjoint", (A, J, mu, v, gamma, u, v_free, b, gamma), {}
    yield "_friction_adjoint", (A, J, mu, v, 1 + gamma * gamma, 1 + u * u, v_free, b, gamma), {"smooth": True}
    yield "_friction_path", (A, v_free, J, b, mu, gamma, u), {"kappa": 0.1}
    yield "certify_friction", (A, v_free, J, b, mu, v, gamma), {}
    yield "_least_norm", (A, v), {"tolerance": 1e-11}
    yield "friction_problem", (A, v_free, J, b, mu), {"directions": 6, "angle": 0.1}
    yield "friction_motion", (A, v_free, J, normal(2, 18).abs()), {}


def test_every_operator_passes_opcheck():
    for operator, arguments, options in calls():
        inputs = [x.clone().requires_grad_() for x in arguments]
        torch.library.opcheck(getattr(lcp, operator).default, inputs, options)


def test_meta_tensors_have_the_shapes_of_the_results():
    check_meta(calls())


def test_autocast_solves_in_float32():
    half = [x.bfloat16() for x in problem(STATES, 2)[0]]
    with autocast():
        result = lcp.solve_friction(*half)
    assert_same(result, lcp.solve_friction(*(x.float() for x in half)))


@pytest.mark.parametrize("consistent", [True, False])
def test_least_norm_is_the_pseudo_inverse_and_so_is_its_derivative(consistent):
    L, R = normal(4, 2, seed=1), normal(2, 4, seed=2)
    right = normal(2, seed=3) if consistent else normal(4, seed=3)

    def f(L, R, right):  # N = L R has rank 2
        return lcp._least_norm(L @ R, times(L, right) if consistent else right, tolerance=1e-9)

    assert_near(f(L, R, right), times(torch.linalg.pinv(L @ R), times(L, right) if consistent else right))
    assert gradcheck(f, leaves([L, R, right]), check_forward_ad=True)
    assert gradgradcheck(f, leaves([L, R, right]))


class Solver(torch.nn.Module):
    def forward(self, A, v_free, J, b, mu):
        v, gamma, status, iterations = torch.ops.lcp.solve_friction(A, v_free, J, b, mu)
        return (v.sin() + v * v).sum() + (gamma.cos() + gamma * gamma).sum()


def test_torchscript_is_saved_loaded_and_differentiated():
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Solver()), file)
    file.seek(0)
    loaded = torch.jit.load(file)
    for batch in [(3,), (3,), (2, 2), (0,)]:
        arguments = problem(STATES, *batch)[0]
        assert_near(loaded(*arguments), loss(*arguments))
        assert_near(gradients(loaded, arguments), gradients(loss, arguments))


def test_an_exported_program_has_the_same_gradients_for_any_batch():
    batch = torch.export.Dim("batch", min=1)
    exported = torch.export.export(Solver(), tuple(problem(STATES, 3)[0]), dynamic_shapes=[{0: batch}] * 5)
    for size in [3, 5]:
        arguments = problem(STATES, size)[0]
        assert_near(exported.module()(*arguments), loss(*arguments))
        assert_near(gradients(exported.module(), arguments), gradients(loss, arguments))


@pytest.mark.parametrize("backend", variants("aot_eager", "inductor"))
def test_a_compiled_function_has_the_same_gradients(backend):
    torch._dynamo.reset()
    compiled = torch.compile(loss, backend=backend, fullgraph=True, dynamic=True)
    for batch in [4, 5]:
        arguments = problem(STATES, batch)[0]
        assert_near(gradients(compiled, arguments), gradients(loss, arguments))
    torch._dynamo.reset()
