"""lcp::_rollout and its derivatives as operators; what they compute is also in tests/physics/*_walk_test.cpp."""
import itertools
import math
from collections import namedtuple

import pytest
import torch

from support import TIES, assert_near, assert_same, check_meta, check_meta_strides, check_operators, lcp, normal, tensor

pytestmark = pytest.mark.usefixtures("own_steps")

EVERY = 2**62 - 1  # the bits of all gradients

# step: the text, without the tolerance and ties. x: the inputs. inputs, results: how many of them are differentiable.
# status: the place of the status among the results. columns: those of the first result that are unique.
Rollout = namedtuple("Rollout", "step x inputs results status columns")


def directions_of(n):
    angle = 2 * math.pi / n * torch.arange(n).double()
    return torch.stack([angle.cos(), angle.sin()])


def system(name, parameters, x, u, D):
    # Behind these are a tripod's forces, which are not unique at rest, and a planar block's number of passes.
    return Rollout(name, [parameters, x, u, D], 3, 2, 4, slice(0, 6))


def planar_block(scheme, directions, *batch, steps, seed):
    """Blocks that slide, turn and come to rest. scheme: the passes, their tolerance, and whether they are relaxed."""
    parameters = tensor([1.0, 0.04, 0.4, 9.81]) * (1 + 0.1 * normal(*batch, 4, seed=seed))
    name = "planar_block_by_direction"
    if scheme:
        parameters = torch.cat([parameters, tensor(scheme).expand(*batch, 3)], -1)
        passes, tolerance, relaxed = scheme
        name = f"planar_block_by_fixed_point max_passes={passes} direction_tolerance={tolerance} relaxed={relaxed}"
    x = torch.cat([normal(*batch, 2, seed=seed + 1), torch.zeros(*batch, 6 if scheme else 4).double()], -1)
    return system(name, parameters, x, 3 * normal(*batch, steps, 2, seed=seed + 2), directions_of(directions))


def point_mass(level, *batch, steps, seed):
    """Masses of about 1 kg that fall, bounce, slide and stick."""
    parameters = tensor([1.0, 0.04, 0.4, 9.81, 0.5]) * (1 + 0.1 * normal(*batch, 5, seed=seed))
    x = torch.cat([normal(*batch, 1, seed=seed + 1), 0.2 * normal(*batch, 1, seed=seed + 2).abs(),
                   normal(*batch, 2, seed=seed + 3)], -1)
    D = tensor([[0.0, 1, -1, 0], [1, 0, 0, 0]])
    return system(f"point_mass_at_{level}", parameters, x, 2 * normal(*batch, steps, 2, seed=seed + 4), D)


def tripod(directions, *batch, steps, seed):
    """Blocks that slide, turn and come to rest."""
    D = torch.cat([directions_of(directions)] * 3 + [torch.zeros(2, 3).double()], 1)
    body = tensor([1.0, 2e-3, 0.01, 0.3, 9.81, 0.01, 0.045, 0, -0.03, 0.035, -0.03, -0.035])
    state = normal(*batch, 6, seed=seed + 1) * tensor([1.0, 1, 1, 0.3, 0.3, 4])
    u = 0.3 * normal(*batch, steps, 3, seed=seed + 2) * tensor([1.0, 1, 0.02])
    return system("tripod", body * (1 + 0.05 * normal(*batch, 12, seed=seed)),
                  torch.cat([state, torch.zeros(*batch, 9).double()], -1), u, D)


def particle(*batch, steps, seed):
    """Particles that fall, slide and stick on compliant ground."""
    parameters = tensor([1.0, 9.81, 0.4, 1e4, 0.02]) * (1 + 0.1 * normal(*batch, 5, seed=seed))
    x = normal(*batch, 6, seed=seed + 1) * tensor([1.0, 1, 0.02, 0.3, 0.3, 0.3])
    u = 2 * normal(*batch, steps, 3, seed=seed + 2)
    return Rollout("compliant_particle dt=0.01 sigma=0.001 beta=1", [parameters, x, u], 3, 2, 3, slice(0, 6))


def block(*batch, steps, seed):
    """Blocks that fall on their corners and sides, slide and rest on compliant ground."""
    parameters = tensor([2.0, 0.5, 0.4, 9.81, 0.4, 1e4, 0.02]) * (1 + 0.1 * normal(*batch, 7, seed=seed))
    x = tensor([0, 0.25, 0, 0, 0, 0]) + normal(*batch, 6, seed=seed + 1) * tensor([1.0, 0.02, 0.1, 0.5, 0.3, 1])
    u = normal(*batch, steps, 3, seed=seed + 2) * tensor([5.0, 5, 0.5])
    return Rollout("compliant_block dt=0.01 sigma=0.001 beta=1", [parameters, x, u], 3, 2, 3, slice(0, 6))


def lcs(*batch, steps, seed):
    """Blocks that are pulled, slide, and stick to what carries them, as a linear complementarity system."""
    c = 0.1
    exact = [tensor([[0.2]]), tensor([[0.03]]), tensor([[0.02, -0.02, 0]]), tensor([[0.5, -0.5, 0]]), tensor([0.0]),
             tensor([[1.0], [-1], [0]]), tensor([[c], [-c], [0]]), tensor([[c, -c, 1], [-c, c, 1], [-1, -1, 0]]),
             tensor([0.0, 0, 1])]
    some = [x * (1 + 0.05 * normal(*batch, *x.shape, seed=seed + k)) for k, x in enumerate(exact)]
    some += [normal(*batch, 1, seed=seed + 10), 1.5 * normal(*batch, steps, 1, seed=seed + 11)]
    return Rollout("lcs cone=2,2,-1", some, 11, 3, 4, slice(0, None))


def own_point_mass(*batch, steps, seed):
    """The point mass at velocities, as users write a step."""
    mass = point_mass("velocities", *batch, steps=steps, seed=seed)
    return mass._replace(step="test::point_mass", x=[*mass.x[:3], torch.zeros(2, 4).double()])


def own_spring(*batch, steps, seed):
    """Balls on springs that a wall stops."""
    parameters = tensor([5.0, 0.5, 0.7, 0.05]) * (1 + 0.1 * normal(*batch, 4, seed=seed))
    x = tensor([0.5, 0.2, 1.0, 0.3]) + 0.1 * normal(*batch, 4, seed=seed + 1)
    return system("test::spring", parameters, x, normal(*batch, steps, 1, seed=seed + 2), torch.zeros(2, 1).double())


LAWS = {"exact_cone": "", "polyhedral": " directions=5 angle=0.3", "compliant": " sigma=0.001 beta=1"}
BALLS = 8
# Where the state and u of a scene of rigid bodies stand, and how many inputs there are.
STATE, FORCES, RIGID_INPUTS = slice(30, 34), 36, 37


def is_rigid(rollout):
    return "rigid" in rollout.step


def is_system(rollout):
    return not any(kind in rollout.step for kind in ("rigid", "lcs", "compliant_"))


def place_of_u(rollout):
    return rollout.inputs - (3 if "closed_loop" in rollout.step else 1)


def rigid(formulation, structure, x):
    step = f"rigid formulation={formulation} dt=0.005 stabilization=1{LAWS[formulation]} {structure}"
    *parameters, position, orientation, velocity, angular_velocity, u = x
    none = torch.zeros(0).double()
    x = [*parameters, *[none] * (STATE.start - len(parameters)), position, orientation, velocity, angular_velocity, none, none, u]
    return Rollout(step, x, RIGID_INPUTS, 7, 10, slice(0, None))


def cube(formulation, *batch, steps, seed):
    """A cube of 1 kg and 10 cm that falls on the plane z = 0."""
    corners = torch.cartesian_prod(*[tensor([-0.05, 0.05])] * 3).flatten()
    state = [tensor([0.0, 0, 0.07]) + 0.02 * normal(*batch, 3, seed=seed).abs(), normal(*batch, 4, seed=seed + 1),
             normal(*batch, 3, seed=seed + 2), 3 * normal(*batch, 3, seed=seed + 3)]
    of_pairs = [torch.full((BALLS,), number).double() for number in (0.4, 0.2, 2e3, 0.02)]
    pairs = ",".join(f"0,{k},-1,0" for k in range(BALLS))
    return rigid(formulation, f"balls=8 plane_bodies=-1 touch_counts=0 touches= pairs={pairs}", [
        tensor([1.0]), torch.eye(3).double().flatten() / 600, tensor([0.3]), corners, torch.zeros(BALLS).double(),
        tensor([0.0, 0, 1]), tensor([0.0]), tensor([0.0, 0, -9.81]), *of_pairs, *state,
        0.1 * normal(*batch, steps, 6, seed=seed + 4)])


def balls(formulation, *batch, steps, seed):
    """Three balls that meet in the air, two of which have their centre of mass off their middle."""
    radii, mass = tensor([0.1, 0.12, 0.08]), tensor([1.0, 0.5, 0.8])
    inertia = (0.4 * mass * radii * radii)[:, None, None] * torch.eye(3).double()
    state = [tensor([0.0, 0, 0.3, 0.26, 0.02, 0.31, 0.5, -0.05, 0.33]), tensor([1.0, 0, 0, 0.1] * 3),
             tensor([1.5, 0, 0, -1, 0.1, 0, -0.5, 0.2, 0]), tensor([1.0, 2, 3, -1, 0, 2, 0.5, 0.1, 0.2])]
    of_pairs = [torch.full((6,), number).double() for number in (0.3, 0.6, 4e3, 0.01)]
    pairs = "0,0,-1,0,1,1,-1,0,2,2,-1,0,0,0,1,2,0,0,2,3,1,1,2,3"
    return rigid(formulation, f"balls=1,1,1 plane_bodies=-1 touch_counts=0 touches= pairs={pairs}", [
        mass, inertia.flatten(), tensor([0.3, 0.0, 0.1]), 0.01 * tensor([0.0, 0, 0, 1, 0, -1, 0, 1, 1]), radii,
        tensor([0.0, 0, 1]), tensor([0.0]), tensor([0.0, 0, -9.81]), *of_pairs,
        *(x + 1e-3 * normal(*batch, x.shape[-1], seed=seed + k) for k, x in enumerate(state)),
        0.1 * normal(*batch, steps, 18, seed=seed + 4)])


MAKERS = {
    "planar block": lambda *batch, **o: planar_block(None, 8, *batch, **o),
    "planar block, 5 passes": lambda *batch, **o: planar_block((5, 0, 0), 6, *batch, **o),
    "planar block, relaxed": lambda *batch, **o: planar_block((30, 1e-13, 1), 8, *batch, **o),
    "point mass at positions": lambda *batch, **o: point_mass("positions", *batch, **o),
    "point mass at velocities": lambda *batch, **o: point_mass("velocities", *batch, **o),
    "tripod, 4": lambda *batch, **o: tripod(4, *batch, **o),
    "tripod, 8": lambda *batch, **o: tripod(8, *batch, **o),
    "linear complementarity system": lcs,
    "own point mass": own_point_mass,
    "own spring": own_spring,
    "particle": particle,
    "block": block,
}
for law in LAWS:
    MAKERS[f"cube, {law}"] = lambda *batch, law=law, **o: cube(law, *batch, **o)
    MAKERS[f"balls, {law}"] = lambda *batch, law=law, **o: balls(law, *batch, **o)


def closed_loop(name, *batch, **options):
    """A rollout with a feedback of its own for each step."""
    rollout = MAKERS[name](*batch, **options)
    state, u = (rollout.x[STATE], rollout.x[FORCES]) if is_rigid(rollout) else rollout.x[rollout.inputs - 2:rollout.inputs]
    x = torch.cat(state if is_rigid(rollout) else [state], -1)
    numbers = x.shape[-1] - (state[1].shape[-1] // 4 if is_rigid(rollout) else 0)
    # No feedback reads what a system only reports.
    K = 0.2 * normal(*u.shape, numbers, seed=50) * (torch.arange(numbers) < (rollout.columns.stop or numbers))
    if is_rigid(rollout):
        K = K.unflatten(-2, (-1, 6)) * tensor([1.0, 1, 1, 0.01, 0.01, 0.01]).unsqueeze(-1)
        K = K.flatten(-3, -2)
    x_ref = x.unsqueeze(-2) + 0.1 * normal(*u.shape[:-1], x.shape[-1], seed=51)
    feedback = [K.flatten(-2), x_ref]
    return rollout._replace(step=f"closed_loop {rollout.step}", inputs=rollout.inputs + 2,
                            x=rollout.x[:rollout.inputs] + feedback + rollout.x[rollout.inputs:])


CLOSED = ["point mass at velocities", "tripod, 4", "linear complementarity system", "own spring", "particle",
          "cube, exact_cone", "cube, polyhedral", "balls, exact_cone"]
for name in CLOSED:
    MAKERS[f"{name}, closed loop"] = lambda *batch, name=name, **o: closed_loop(name, *batch, **o)
each_rollout = pytest.mark.parametrize("name", MAKERS)


def make(name, *batch, steps=25, seed=0):
    return MAKERS[name](*batch, steps=steps, seed=seed)


def text(rollout, ties="active", tolerance=1e-10):
    return f"{rollout.step} ties={ties} tolerance={tolerance}"


def saved(rollout):
    """How many numbers of each step derivatives need."""
    if is_rigid(rollout):
        of_pair = {"exact_cone": 0, "polyhedral": 5 + 2, "compliant": 3}
        return next((number for law, number in of_pair.items() if law in rollout.step), 0) * rollout.x[8].shape[-1]
    if is_system(rollout):
        return rollout.x[-1].shape[-1]
    return 0 if "compliant" in rollout.step else rollout.x[3].shape[-1]


def run(rollout, **options):
    return lcp._rollout(text(rollout, **options), rollout.x, saved(rollout))


def run_back(rollout, g=None, ties="active", wanted=EVERY):
    path = run(rollout, ties=ties)
    return lcp._rollout_adjoint(text(rollout, ties), rollout.x, path, g or path[:rollout.results], wanted)


def run_forward(rollout, d, ties="active"):
    return lcp._rollout_tangent(text(rollout, ties), rollout.x, run(rollout, ties=ties), d)


def directions(rollout, seed=9):
    """Tangents of the inputs, of their size."""
    return [normal(*x.shape, seed=seed + k) * x.nan_to_num(0).abs().mean().clamp_min(1e-2) for k, x in
            enumerate(rollout.x[:rollout.inputs])]


def weights(rollout, path):
    """Gradients of what is unique among the first results."""
    g = [torch.cos(1.7 * torch.arange(x.numel()) + 0.3).double().view(x.shape) for x in path[:rollout.results]]
    if is_system(rollout):
        g[0][..., rollout.columns.stop:] = 0
        g[1] = torch.zeros_like(g[1])
    return g


def product(xs, ys):
    return sum((x * y).sum() for x, y in zip(xs, ys))


def moved(rollout, k, i, step):
    x = [each.clone() for each in rollout.x]
    x[k].view(-1)[i] += step
    return rollout._replace(x=x)


def calls(names=MAKERS):
    for name in names:
        rollout = make(name, 2, steps=3)
        path, d = run(rollout), directions(rollout)
        step, x, g = text(rollout), rollout.x, path[:rollout.results]
        yield "_rollout", [step, x, 0], {}
        yield "_rollout_adjoint", [step, x, path, g, 2**rollout.inputs - 1], {}
        yield "_rollout_tangent", [step, x, path, d], {}


@each_rollout
def test_all_steps_are_solved_and_bodies_touch(name):
    rollout = make(name, 20)
    path = run(rollout)
    assert (path[rollout.status] == 0).all()
    if "compliant_" in rollout.step or is_rigid(rollout):
        gamma = path[rollout.results - 1].unflatten(-1, (-1, 3))
        assert (gamma[..., 2] > 0).any() and (gamma[..., 2] == 0).any()
    else:
        z, w, residual = path[1:4]
        assert (z >= 0).all() and (w >= 0).all() and (z * w == 0).all() and (residual < 1e-9).all()
    alone = lcp._rollout(text(rollout), rollout.x, 0)
    for one, other in zip(path, alone):
        if other.shape == one.shape:
            assert_same(one, other)
        else:
            assert one.shape[-1] == saved(rollout) and other.shape[-1] == 0


@each_rollout
def test_gradients_are_those_of_finite_differences(name):
    rollout = make(name, 2, steps=12)
    path = run(rollout, tolerance=1e-13)
    g = weights(rollout, path)
    found = lcp._rollout_adjoint(text(rollout), rollout.x, path, g, EVERY)
    scale = max(x.abs().max() for x in found[:1])
    for k, gradient in enumerate(found):
        for i in range(0, rollout.x[k].numel(), 1 + rollout.x[k].numel() // 8):
            if k == 0 and "fixed_point" in rollout.step and i % 7 >= 4:
                continue  # the scheme
            of_input = gradient.sum_to_size(rollout.x[k].shape).reshape(-1)[i]
            h = 1e-7 * max(1, abs(rollout.x[k].reshape(-1)[i].item()))
            ends = [product(run(moved(rollout, k, i, step), tolerance=1e-13), g) for step in (h, -h)]
            difference = (ends[0] - ends[1]) / (2 * h)
            assert abs(of_input - difference) < 2e-5 * (1 + abs(difference) + scale), (k, i)


@each_rollout
@pytest.mark.parametrize("ties", TIES)
def test_the_tangent_is_the_transpose_of_the_adjoint(name, ties):
    rollout = make(name, 20)
    d = directions(rollout)
    ends = run_forward(rollout, d, ties)
    g = [normal(*end.shape, seed=40 + k) for k, end in enumerate(ends)]
    gradients = run_back(rollout, g, ties)
    size = product([x.abs() for x in ends], [x.abs() for x in g])
    # A sliding direction that has not converged may change much by a little.
    rounding = 1e-6 if "fixed_point" in rollout.step else 1e-9
    assert abs(product(ends, g) - product(d, gradients)) < rounding * size
    assert any((end != 0).any() for end in ends)


@pytest.mark.parametrize("name", ["point mass at velocities", "own spring", "tripod, 4", "particle", "cube, exact_cone",
                                  "balls, compliant"])
def test_the_second_derivative_is_that_of_finite_differences(name):
    rollout = make(name, 2, steps=4)
    path, d = run(rollout, tolerance=1e-13), directions(rollout)
    g = weights(rollout, path)
    dg = [normal(*x.shape, seed=70 + k) if x.any() else torch.zeros_like(x) for k, x in enumerate(g)]
    step = text(rollout, tolerance=1e-13)
    found = lcp._rollout_adjoint_tangent(step, rollout.x, path, g, d, dg)
    h, ends = 5e-8, []
    for sign in (1, -1):
        x = [a + sign * h * b for a, b in zip(rollout.x, d)] + rollout.x[rollout.inputs:]
        of_g = [a + sign * h * b for a, b in zip(g, dg)]
        ends.append(lcp._rollout_adjoint(step, x, lcp._rollout(step, x, saved(rollout)), of_g, EVERY))
    for one, above, below in zip(found, *ends):
        difference = (above - below) / (2 * h)
        assert one.shape == difference.shape
        assert one.numel() == 0 or (one - difference).abs().max() < 1e-3 * (1 + difference.abs().max())


DERIVED = ["point mass at velocities", "linear complementarity system", "own point mass", "own spring", "tripod, 4", "particle",
           *(f"cube, {law}" for law in LAWS), "cube, smoothed", "tripod, 4, closed loop", "cube, exact_cone, closed loop"]


def loss_along(name, rows=slice(None)):
    """A number that depends on one parameter of all trajectories along a line."""
    rollout = make("cube, exact_cone" if name == "cube, smoothed" else name, 2, steps=2)
    step = text(rollout, tolerance=1e-12) + (" kappa=0.01" if name == "cube, smoothed" else "")
    own = STATE.start if is_rigid(rollout) else 1
    p = rollout.x[0] if is_rigid(rollout) else rollout.x[0][0]
    d = p * normal(*p.shape, seed=90)

    def loss(s):
        x = [p + s * d, *rollout.x[1:own], *(each[rows] for each in rollout.x[own:rollout.inputs]), *rollout.x[rollout.inputs:]]
        return (lcp._rollout(step, x, 0)[0][..., rollout.columns] ** 2).sum()

    return loss


def in_orders(loss, order):
    """Derivatives by forward and reverse mode of all orders of both."""
    along = lambda f: lambda s: torch.func.jvp(f, (s,), (torch.ones_like(s),))[1]
    for modes in itertools.product((along, torch.func.grad), repeat=order):
        f = loss
        for mode in modes:
            f = mode(f)
        yield f


@pytest.mark.parametrize("name", DERIVED)
def test_all_orders_of_modes_give_the_derivatives_by_what_trajectories_share(name):
    s, h = tensor(0.1), 1e-4
    loss, single = loss_along(name), [loss_along(name, slice(k, k + 1)) for k in range(2)]
    for order in (1, 2, 3):
        found = [f(s) for f in in_orders(loss, order)]
        expected = sum(next(in_orders(f, order))(s) for f in single)
        assert expected != 0
        for each in found:
            assert abs(each - expected) < 1e-7 * (1 + abs(expected))
        below = next(in_orders(loss, order - 1))
        difference = (below(s + h) - below(s - h)) / (2 * h)
        if name != "cube, smoothed":  # the derivative of which is not that of the value
            assert abs(found[0] - difference) < 1e-3 * abs(difference), (order, difference)
    some = torch.stack([s, s + 0.01])
    for f in in_orders(loss, 2):
        assert_near(torch.vmap(f)(some), torch.stack([f(each) for each in some]))


@pytest.mark.parametrize("name", DERIVED)
def test_derivatives_of_gradients_with_a_graph_are_the_same(name):
    s = tensor(0.1).requires_grad_()
    loss, found = loss_along(name), loss_along(name)(s)
    for order in (1, 2, 3):
        found, = torch.autograd.grad(found, s, create_graph=True)
        expected = list(in_orders(loss, order))[-1](tensor(0.1))
        assert abs(found.detach() - expected) < 1e-7 * (1 + abs(expected))


SMOOTHED = [name for name in MAKERS if name not in ("particle", "block") and "compliant" not in name]


@pytest.mark.parametrize("name", SMOOTHED)
@pytest.mark.parametrize("kappa", [1e-4, 1e-2])
def test_smoothed_derivatives_are_those_in_operators_of_tensors(name, kappa):
    rollout = make(name, 2, steps=8)
    if is_rigid(rollout):
        rollout.x[8][1:3] = 0  # contacts without friction
    if name == "point mass at positions":
        rollout.x[0][:, 4] = 0  # the restitution
    step, path, d = f"{text(rollout, 'inactive')} kappa={kappa}", run(rollout), directions(rollout)
    g = [normal(*x.shape, seed=40 + k) for k, x in enumerate(path[:rollout.results])]
    zero = lambda xs: [torch.zeros_like(x) for x in xs]
    for found, expected in (
            (lcp._rollout_adjoint(step, rollout.x, path, g, EVERY),
             lcp._rollout_adjoint_tangent(step, rollout.x, path, zero(g), zero(d), g)),
            (lcp._rollout_tangent(step, rollout.x, path, d),
             lcp._rollout_tangent_tangent(step, rollout.x, path, zero(d), zero(d), d))):
        assert any((x != 0).any() for x in found)
        for one, other in zip(found, expected):
            if other.numel() == 0:
                continue
            known = ~other.isnan()  # a trajectory with a step that has no point of the path has no tangent by tensors at all
            assert known.any() and (one - other)[known].abs().max() <= 1e-9 * other[known].abs().max()


@pytest.mark.parametrize("name", SMOOTHED)
def test_smoothed_derivatives_are_the_same_in_both_modes(name):
    if "passes" in name or "relaxed" in name:
        pytest.skip("differentiated by operators of tensors")
    rollout = make(name, 3, steps=4)
    rollout = rollout._replace(step=rollout.step + " kappa=0.01")
    if name == "point mass at positions":
        rollout.x[0][:, 4] = 0  # the restitution
    d = directions(rollout)
    ends = run_forward(rollout, d, "inactive")
    g = [normal(*end.shape, seed=40 + k) for k, end in enumerate(ends)]
    size = product([x.abs() for x in ends], [x.abs() for x in g])
    assert abs(product(ends, g) - product(d, run_back(rollout, g, "inactive"))) < 1e-9 * size
    u = FORCES if rollout.inputs == RIGID_INPUTS else rollout.inputs - 1
    rollout.x[u][1, 2, 0] = math.nan
    for one, end in zip(run_forward(rollout, d, "inactive"), ends):
        assert one[1, 2:].isnan().all()
        assert_near(one[[0, 2]], end[[0, 2]])
        assert_near(one[1, :2], end[1, :2])


def test_trajectories_that_differ_by_the_sign_of_a_zero_keep_their_bits():
    """Those that are the same are computed once."""
    rollout = make("cube, exact_cone", 3, steps=10)
    own = rollout.x[STATE]
    for x in own:
        x[1:] = x[0]
    rollout.x[FORCES] = torch.zeros(10, 6).double()
    own[0][:, 0] = tensor([0.0, -0.0, 0.0])
    own[2][:] = tensor([[0.0, 0, 0], [-0.0, -0.0, 0], [0, 0, 0]])
    bits = lambda path: [x.contiguous().view(torch.int64) for x in path if x.dtype == torch.float64]
    together = run(rollout)
    for k in range(3):
        alone = run(rollout._replace(x=[*rollout.x[:STATE.start], *(x[k] for x in own), *rollout.x[STATE.stop:]]))
        assert_same(bits([x[k] for x in together]), bits(alone))


@each_rollout
def test_the_older_vmap_gives_the_rows_of_a_jacobian(name):
    rollout = make(name, 2, steps=3)
    p = rollout.x[0].clone().requires_grad_()
    x_next = lcp._rollout(text(rollout), [p, *rollout.x[1:]], 0)[0]
    rows = normal(4, *x_next.shape, seed=60)
    batched, = torch.autograd.grad(x_next, p, rows, is_grads_batched=True, retain_graph=True)
    assert_near(batched, torch.stack([torch.autograd.grad(x_next, p, row, retain_graph=True)[0] for row in rows]))
    f = lambda p: lcp._rollout(text(rollout), [p, *rollout.x[1:]], 0)[0]
    for strategy in ("reverse-mode", "forward-mode"):
        found = torch.autograd.functional.jacobian(f, rollout.x[0], vectorize=True, strategy=strategy)
        assert_near(found, torch.func.jacrev(f)(rollout.x[0]))


def test_derivatives_without_steps_are_zero():
    for name in ("tripod, 4", "cube, exact_cone"):
        rollout = make(name, 2, steps=0)
        path, d = run(rollout), directions(rollout)
        g = path[:rollout.results]
        found = lcp._rollout_adjoint_tangent(text(rollout), rollout.x, path, g, d, g)
        assert all((x == 0).all() for x in found)
        p = rollout.x[0].clone().requires_grad_()
        loss = lcp._rollout(text(rollout), [p, *rollout.x[1:]], 0)[0].sum()
        of_p, = torch.autograd.grad(loss, p, create_graph=True)
        assert (of_p == 0).all()


def test_meta_tensors_have_the_shapes_and_strides_of_the_results():
    check_meta(calls())
    check_meta_strides(calls())


def test_the_operators_pass_the_checks_of_torch_library():
    check_operators(calls(["tripod, 4", "block", "cube, polyhedral", "balls, exact_cone"]))


@each_rollout
def test_vmap_and_every_shape_of_the_batch_give_the_same(name):
    rollout = make(name, 2, 3)
    path, d = run(rollout), directions(rollout)
    back, ahead = run_back(rollout), run_forward(rollout, d)
    own = [x.dim() > core for x, core in zip(rollout.x, [1] * place_of_u(rollout) + [2] * 4)]
    some = lambda x, *place: [a[place] if mine else a for a, mine in zip(x, own)]
    for i in range(2):
        for j in range(3):
            one = rollout._replace(x=some(rollout.x, i, j))
            assert_same(run(one), [r[i, j] for r in path])
            assert_same(run_back(one), [r[i, j] for r in back])
            assert_same(run_forward(one, some(d, i, j)), [r[i, j] for r in ahead])
    in_dims = ([0 if mine else None for mine in own],)
    mapped = torch.vmap(lambda x: run(rollout._replace(x=x)), in_dims)(rollout.x)
    assert_same(mapped, path)
    mapped = torch.vmap(lambda x, d: run_forward(rollout._replace(x=x), d), (*in_dims, in_dims[0][:rollout.inputs]))(
        rollout.x, d)
    assert_same(mapped, ahead)


@each_rollout
def test_only_wanted_gradients_are_computed_and_they_are_the_same(name):
    rollout = make(name, 2)
    everything = run_back(rollout)
    for k in range(rollout.inputs):
        assert_near(run_back(rollout, wanted=1 << k)[k], everything[k])


@each_rollout
def test_derivatives_through_a_step_that_is_not_solved_are_nan_and_others_are_not(name):
    rollout = make(name, 4)
    u = place_of_u(rollout)
    rollout.x[u][1, 7, 0] = math.nan
    path = run(rollout)
    status = path[rollout.status]
    assert (status[1, 7:] == 4).all() and (status[1, :7] == 0).all() and (status[[0, 2, 3]] == 0).all()
    assert path[0][1, 7:].isnan().all()
    g = [torch.zeros_like(x) for x in path[:rollout.results]]
    g[0][:, 6, rollout.columns] = 1
    before = run_back(rollout, g)
    assert all(x.isfinite().all() for x in before) and (before[u][:, 7:] == 0).all()
    g[0][:, 8, rollout.columns] = 1
    through = run_back(rollout, g)
    # A block that rests does not depend on where it came from.
    assert through[0][1].isnan().any() and through[u][1, 7].isnan().all()
    assert all(x[[0, 2, 3]].isfinite().all() for x in through)
    for size in (1, 0):
        for end in run_forward(rollout, [size * x for x in directions(rollout)]):
            assert end[1, 7:].isnan().all() if size else (end == 0).all()
            assert end[1, :7].isfinite().all() and end[[0, 2, 3]].isfinite().all()


@pytest.mark.parametrize("ties", TIES)
def test_ties_choose_the_gradient_of_a_touch(ties):
    # y + dt v_y_next = 0 without a force: it lands above, and with less height it is stopped.
    rollout = system("point_mass_at_positions", tensor([1.0, 0.125, 0.5, 8, 0]), tensor([0, 0.375, 0.5, -2]),
                     torch.zeros(1, 2).double(), tensor([[0.0, 1, -1, 0], [1, 0, 0, 0]]))
    of_x = run_back(rollout, [tensor([[0.0, 0, 0, 1]]), torch.zeros(1, 4).double()], ties)[1]
    of_v_y = {"inactive": tensor([0.0, 0, 0, 1]), "active": tensor([0.0, -8, 0, 0])}
    assert_near(of_x, of_v_y.get(ties, (of_v_y["inactive"] + of_v_y["active"]) / 2))


@each_rollout
def test_nothing_to_do_is_done(name):
    for batch, steps in [((0,), 3), ((2,), 0), ((), 0)]:
        rollout = make(name, *batch, steps=steps)
        path = run(rollout)
        assert path[0].shape[:-1] == path[rollout.status].shape == (*batch, steps)
        assert all((g == 0).all() for g in run_back(rollout))
        assert run_forward(rollout, directions(rollout))[0].shape == path[0].shape


def test_the_tangent_of_float32_is_that_of_float64():
    for name in list(MAKERS)[:7]:
        rollout = make(name, 5, steps=5)
        d = directions(rollout)
        single = rollout._replace(x=[x.float() for x in rollout.x])
        path = lcp._rollout(f"{rollout.step} ties=active", single.x, saved(single))
        found = lcp._rollout_tangent(text(rollout), single.x, path, [x.float() for x in d])[0][..., :6]
        exact = run_forward(rollout, d)[0][..., :6]
        assert found.dtype == torch.float32 and (found - exact).abs().max() < 1e-3 * exact.abs().max()


def error_of(call):
    with pytest.raises(RuntimeError) as error:
        call()
    return str(error.value).split("\n")[0]


def test_mistakes_are_named():
    def error(name, place=None, value=None, old="", new=""):
        rollout = make(name, steps=3)
        if place is not None:
            rollout.x[place] = value
        return error_of(lambda: run(rollout._replace(step=rollout.step.replace(old, new) if old else rollout.step)))

    assert error("tripod, 4", old="tripod", new="quadruped") == "there is no step quadruped"
    assert error("tripod, 4", 0, torch.ones(5).double()) == "parameters must be [..., 12]; got [5]"
    assert error("tripod, 4", 1, torch.ones(6).double()) == "x must be [..., 15]; got [6]"
    assert error("tripod, 4", 2, torch.ones(3, 2).double()) == "u must be [..., T, 3]; got [3, 2]"
    assert error("tripod, 4", 3, torch.ones(2, 4).double()) == "a tripod does not have 4 pairs"
    assert error("tripod, 4", 1, torch.ones(15)) == "x must have parameters's dtype, Double; got Float"
    assert error("block", 0, torch.ones(5).double()) == "parameters must be [..., 7]; got [5]"
    assert error("block", old=" dt=0.01", new="") == "the step has no dt"
    assert error("block", old="dt=0.01", new="dt=fast") == "the dt of a step must be a number; got fast"
    assert error("cube, exact_cone", STATE.start, tensor([0.0, 0])) == "position must be [..., 3 f]; got [2]"
    assert error("cube, exact_cone", FORCES, torch.zeros(3, 7).double()) == (
        "a scene with these bodies and joints must have 6 numbers of u; got 7")
    assert error("cube, exact_cone", 0, torch.ones(1)) == "inertia must have mass's dtype, Float; got Double"
    pairs = "pairs=0,0,-1,0"
    for new, message in (
            ("pairs=0,0,-1", "pairs must have four numbers each; got 31"),
            ("pairs=1,0,-1,0", "pair 0 names body 1 of 1"), ("pairs=0,8,-1,0", "pair 0 names ball 8 of 8"),
            ("pairs=0,0,-1,9", "pair 0 names box 0 of 0"),
            ("pairs=0,0,-1,1", "pair 0 must be of a body and another one, or a fixed plane"),
            ("pairs=0,0,-1,0,0,0,-1,0",
             "pairs, limits, resisted, servos, couplings and closures must be as many as mu's c = 8 contacts; got 9")):
        assert error("cube, exact_cone", old=pairs, new=new) == message
    assert error("cube, polyhedral", old="directions=5", new="directions=2") == "directions must be from 3 to 1000; got 2"
    assert error("cube, polyhedral", old="directions=5", new=f"directions={2**32 + 4}") == (
        f"directions must be from 3 to 1000; got {2**32 + 4}")
    for new, message in (("balls=4", "balls must be 1 numbers with the sum 8; got 4"),
                         ("balls=4,4", "balls must be 1 numbers with the sum 8; got 4,4")):
        assert error("cube, exact_cone", old="balls=8", new=new) == message
    for old, new, message in (
            ("touch_counts=0", "touch_counts=100000000", "touch_counts must be 1 numbers with the sum 0; got 100000000"),
            ("touch_counts=0", "touch_counts=-1", f"touch_counts must be from 0 to {2**30}; got -1"),
            ("plane_bodies=-1", "plane_bodies=1", "plane_bodies must be from -1 to 0; got 1"),
            ("plane_bodies=-1", "plane_bodies=-1,0", "plane_bodies must be 1 numbers; got -1,0"),
            (pairs, "pairs=4294967296,0,-1,0", f"pairs must be numbers from -1 to {2**30}; got 4294967296")):
        assert error("cube, exact_cone", old=old, new=new) == message
    for name, given, message in (
            ("tripod, 4", "tolerance=nan", "tolerance must be finite and > 0; got nan"),
            ("block", "tolerance=0", "tolerance must be finite and > 0; got 0"),
            ("block", "max_iterations=-1", "max_iterations must be >= 0; got -1"),
            ("cube, exact_cone", "kappa=-1", "kappa must be finite and >= 0; got -1"),
            ("cube, compliant", "kappa=0.1", "kappa must be 0 for compliant contact; got 0.1"),
            *((name, "kappa=0.1", 'ties must be "inactive" where kappa > 0, since a smoothed gradient has no ties; got "active"')
              for name in ("own spring", "linear complementarity system"))):
        rollout = make(name, steps=3)
        options = f"ties=active tolerance=1e-9 {given}" if "tolerance" not in given else f"ties=active {given}"
        assert error_of(lambda: lcp._rollout(f"{rollout.step} {options}", rollout.x, 0)) == message
    assert error("cube, exact_cone", old="exact_cone", new="cone") == (
        "formulation must be exact_cone, polyhedral or compliant; got cone")
    rollout = make("cube, polyhedral", steps=3)
    step, path = text(rollout), run(rollout)
    assert error_of(lambda: lcp._rollout(step, rollout.x, 8)) == "saved must be 56 or 0; got 8"
    few = f"x must have {RIGID_INPUTS} tensors; got {RIGID_INPUTS - 1}"
    assert error_of(lambda: lcp._rollout(step, rollout.x[:-1], 0)) == few
    assert error_of(lambda: lcp._rollout_adjoint(step, rollout.x, path, path[:4], 1)) == "g must have 7 tensors; got 4"
    assert "ties must be" in error_of(lambda: lcp._rollout_adjoint(text(rollout, "both"), rollout.x, path, path[:7], 1))


def test_mistakes_in_a_scene_are_named():
    rollout = make("cube, exact_cone", steps=3)
    mass, inertia, drag, centers, radii, normals, offset, gravity, mu, restitution, *_, u = rollout.x
    body = [mass[0], inertia.unflatten(-1, (3, 3)), centers.unflatten(-1, (-1, 3)), radii, drag[0]]
    x = [*(each.unsqueeze(0) for each in rollout.x[STATE]), u.unsqueeze(-2), *body, normals, offset[0], gravity, mu, restitution]

    def error(x=x, bodies=1, planes=[-1], touches=[0], counts=[1], pairs=None):
        return error_of(lambda: lcp._roll_out_scene(
            x, bodies, planes, touches, counts, pairs, 0.01, "exact_cone", 1, None, 1.0, 4, 0.0, 0.0, "active", None, 1e-3, 1.0))

    assert error([]) == error(bodies=0).replace("got 0", "got 1") == "bodies must be from 1 to the number of tensors; got 1"
    assert error(x[:7]) == "x must be 15 tensors, or 17 with stiffness and dissipation; got 7"
    assert error(bodies=10**6) == "bodies must be from 1 to the number of tensors; got 1000000"
    assert error(counts=[]) == "touch_counts must be 1 numbers; got 0"
    assert error(counts=[7]) == "touch_counts must have the sum of the number of touches; got [7]"
    assert error(pairs=[0, 0]) == "pairs must have five numbers each; got 2"
    assert error(pairs=[10**8, 0, 1, -1, 0]) == f"pairs must name bodies from 0 to 0; got {10**8} and -1"
    assert error(pairs=[0, 0, 0, -1, 0]) == "a pair of balls must name another body; got -1"


def simulate_bodies(rollout, formulation="exact_cone", substeps=1):
    """lcp::_simulate_bodies of one body for the inputs of a rollout."""
    mass, inertia, drag, centers, radii, normals, offset, gravity, mu, restitution, stiffness, dissipation, *_ = rollout.x
    state, u = rollout.x[STATE], rollout.x[FORCES]
    body = [mass.squeeze(-1)], [inertia.unflatten(-1, (3, 3))], [centers.unflatten(-1, (-1, 3))], [radii], [drag.squeeze(-1)]
    return lcp._simulate_bodies(
        *(x.unsqueeze(-2) for x in state), u.movedim(-2, 0).unsqueeze(-2), *body, [normals], [offset.squeeze(-1)], gravity,
        mu, restitution, stiffness, dissipation, 0.005, formulation=formulation, substeps=substeps, directions=8,
        tolerance=1e-10)


@pytest.mark.parametrize("formulation", LAWS)
def test_bodies_are_simulated_by_the_rollout(formulation):
    rollout = make(f"cube, {formulation}", 3, steps=40)
    rollout = rollout._replace(step=rollout.step.replace("directions=5 angle=0.3", "directions=8 angle=0"))
    position, orientation, *_, gamma, _, _, chosen, status, iterations = lcp._rollout(text(rollout), rollout.x, 0)
    found = simulate_bodies(rollout, formulation)
    assert_same([found[0].squeeze(-2), found[1].squeeze(-2), *found[4:]],
                [x.movedim(-2, 0) for x in (position, orientation, gamma)] + [x.movedim(-1, 0) for x in (status, iterations)])
    force = rollout.x[-1][:, :1]
    once, often = (simulate_bodies(rollout._replace(x=[*rollout.x[:-1], force.expand(3, rows, 6)]), formulation, 40 // rows)
                   for rows in (1, 40))
    assert_same([x[-1] for x in once[:4]], [x[-1] for x in often[:4]])


def test_mistakes_in_simulated_bodies_are_named():
    rollout = make("cube, exact_cone", steps=3)
    with pytest.raises(RuntimeError, match="formulation must be exact_cone, polyhedral or compliant; got cone"):
        simulate_bodies(rollout, "cone")
    with pytest.raises(RuntimeError, match="substeps must be >= 1; got 0"):
        simulate_bodies(rollout, substeps=0)


def inputs_of(body, dtype=torch.float64):
    """position, velocity, the inputs of 6 steps, and the parameters, of three bodies on compliant ground."""
    parameters, x, u = make(body, 3, steps=6, seed=5).x
    return [a.to(dtype).clone().requires_grad_() for a in [x[:, :3], x[:, 3:], u.movedim(-2, 0), *parameters.unbind(-1)]]


def simulate_compliant(body, *given):
    return getattr(lcp, f"_simulate_compliant_{body}")(
        *given[:3], given[3:], dt=0.01, sigma=1e-3, beta=1.0, tolerance=1e-14)


@pytest.mark.parametrize("body", ["particle", "block"])
def test_rollouts_differentiate_twice_and_forward(body):
    given = inputs_of(body)
    rollout = lambda *some: simulate_compliant(body, *some, *given[len(some):])[:3]
    assert torch.autograd.gradcheck(rollout, given, eps=1e-7, atol=1e-4, rtol=1e-4, check_forward_ad=True)
    few = [x.detach()[..., :1, :].requires_grad_() if x.dim() > 1 else x.detach() for x in given]
    few[2] = few[2].detach()[:3].requires_grad_()
    shared = [x.detach()[0].requires_grad_() for x in given[3:]]
    end = lambda *some: [x[-1] for x in simulate_compliant(body, *some)[:3]]
    assert torch.autograd.gradgradcheck(end, [*few[:3], *shared], eps=1e-6, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("body", ["particle", "block"])
def test_rollouts_pass_the_transforms_of_torch_func(body):
    given = [x.detach() for x in inputs_of(body)]
    end = lambda mu: simulate_compliant(body, *given[:-3], mu, *given[-2:])[0][-1].square().sum()
    mu = given[-3].clone().requires_grad_()
    gradient, = torch.autograd.grad(end(mu), mu)
    assert (gradient != 0).any()
    torch.testing.assert_close(torch.func.grad(end)(given[-3]), gradient, rtol=1e-9, atol=1e-12)
    slope = torch.func.jvp(end, (given[-3],), (torch.ones(3).double(),))[1]
    torch.testing.assert_close(slope, gradient.sum(), rtol=1e-9, atol=1e-12)
