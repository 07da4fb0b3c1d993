"""Rollouts of the systems of torchlcp.physics under torch.func and torch.compile."""

import math

import pytest
import torch
from systems import BALL, G, POINT, SYSTEMS, TRIPOD, U, V, WITHOUT_DERIVATIVE, formulations, leaf, numbers

from torchlcp import Status
from torchlcp.physics import Plane, PointMass, RigidBody, RigidScene, RigidState, SlidingBlock, Tripod

TREE = torch.utils._pytree
# A compiled loop of the fixed-point scheme has all passes in it.
transformed = [
    (name, {**options, "max_passes": 2} if options.get("formulation") == "fixed_point" else options)
    for name, options in formulations
]
each_system = pytest.mark.parametrize("name, options", transformed, ids=str)


def function_of(name, options):
    """A rollout as a function of tensors alone, and its arguments."""
    system, (*state, last), _ = SYSTEMS[name]
    if options.get("formulation") == "forward":
        state = [V + 1]
    if name == "falling":
        return lambda x, v: system.simulate(x, v, last, **options), tuple(state)
    return lambda state, u: system.simulate(state, u, **options), (state[0], last)


def total_of(function):
    """A number that depends on all results with a derivative."""

    def total(*arguments):
        results = function(*arguments)
        without = WITHOUT_DERIVATIVE | ({"gamma"} if "z" in results._fields else set())
        return sum((x * x).sum() for key, x in results._asdict().items() if key not in without)

    return total


def two_of(arguments):
    return TREE.tree_map(lambda x: torch.stack([x, x + 1e-3]), arguments)


def gradients_of(total, arguments):
    leaves = TREE.tree_map(lambda x: x.clone().requires_grad_(), arguments)
    return torch.autograd.grad(total(*leaves), TREE.tree_leaves(leaves))


def assert_each_near(mapped, function, arguments):
    for k in range(2):
        expected = function(*TREE.tree_map(lambda x: x[k], arguments))
        for got, x in zip(TREE.tree_leaves(mapped), TREE.tree_leaves(expected), strict=True):
            torch.testing.assert_close(got[k], x, atol=1e-9, rtol=1e-9)


@each_system
def test_a_rollout_is_mapped(name, options):
    function, arguments = function_of(name, options)
    mapped = torch.func.vmap(function)(*two_of(arguments))
    assert type(mapped) is type(function(*arguments))
    assert_each_near(mapped, function, two_of(arguments))


@each_system
def test_gradients_of_a_rollout_by_functions_are_those_of_autograd_also_mapped(name, options):
    function, arguments = function_of(name, options)
    total = total_of(function)
    gradient = torch.func.grad(total, argnums=(0, 1))
    for got, x in zip(TREE.tree_leaves(gradient(*arguments)), gradients_of(total, arguments), strict=True):
        torch.testing.assert_close(got, x, atol=1e-9, rtol=1e-9)
    assert_each_near(torch.func.vmap(gradient)(*two_of(arguments)), gradient, two_of(arguments))


# Loops of many operators take long to compile.
@pytest.mark.parametrize(
    "name, options", [x for x in transformed if "relaxed" not in x[1] and "belbute_peres" not in x[1].values()], ids=str
)
def test_a_rollout_is_compiled_with_its_gradient(name, options):
    torch._dynamo.reset()
    function, (state, last) = function_of(name, options)
    arguments = state, last if name == "falling" else last[:2]
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*arguments), function(*arguments))
    total = total_of(function)
    compiled = torch.compile(total, fullgraph=True, backend="aot_eager")
    for got, x in zip(gradients_of(compiled, arguments), gradients_of(total, arguments), strict=True):
        torch.testing.assert_close(got, x, atol=1e-9, rtol=1e-9)


def test_parameters_are_mapped():
    friction = numbers(0.1, 0.3)
    end = lambda mu: SlidingBlock(2.0, 0.1, mu, G).simulate(V, U).v_next[-1]
    assert_each_near(torch.func.vmap(end)(friction), end, (friction,))
    end = lambda mu: PointMass(2.0, 0.1, mu, G).simulate(*SYSTEMS["point mass"][1]).velocity_next[-1]
    assert_each_near(torch.func.vmap(end)(friction), end, (friction,))


def test_a_compiled_rollout_takes_any_batch():
    torch._dynamo.reset()
    function = lambda p, v: POINT.simulate((p, v), torch.zeros(2, 1, 2).double()).velocity_next
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    for count in (2, 3, 5):
        arguments = numbers(0.0, 0.1).expand(count, 2), numbers(1.0, -1.0).expand(count, 2)
        torch.testing.assert_close(compiled(*arguments), function(*arguments))


def test_an_element_that_fails_is_marked_where_it_is_mapped_too():
    v = numbers(0.5, math.nan, 0.2)
    step = lambda v: POINT.simulate((torch.stack([0 * v, 0 * v + 0.1]), torch.stack([v, -v])), torch.zeros(3, 2).double())
    mapped = torch.func.vmap(step)(v)
    assert (mapped.status[1] == Status.BAD_INPUT).all() and mapped.velocity_next[1].isnan().all()
    assert (mapped.status[[0, 2]] == Status.SOLVED).all()
    gradient = torch.func.grad(lambda mass: torch.func.vmap(
        lambda v: PointMass(mass, 0.1, 0.3, G).simulate(
            (numbers(0.0, 0.01), torch.stack([v, -v])), numbers(1.0, 0.0).expand(3, 2)).velocity_next)(v)[::2].sum())
    assert gradient(numbers(2.0)[0]).isfinite()


def falling_bodies(velocity, radius, mu):
    """A ball falls on a box that lies on the ground."""
    top = Plane(numbers(0, 0, 1), numbers(0.1)[0], body=1, touches=(0,))
    scene = RigidScene(
        [RigidBody.ball(1.0, radius), RigidBody.box(1.0, (0.2, 0.2, 0.2))], [Plane.inclined(), top], dt=0.01, mu=mu,
        restitution=0.2)
    state = RigidState.at_rest(numbers(0, 0, 0.33, 0, 0, 0.1).view(2, 3))
    return scene.simulate(state._replace(velocity=velocity), torch.zeros(3, 2, 6).double())


def test_scenes_of_several_bodies_are_mapped_over_some_of_their_tensors():
    velocity = numbers(0.5, 0, -2, 0, 0, 0).view(2, 3)
    arguments = (torch.stack([velocity, 1.1 * velocity]), numbers(0.1, 0.11), numbers(0.2, 0.3).unsqueeze(-1))
    assert_each_near(torch.func.vmap(falling_bodies)(*arguments), falling_bodies, arguments)
    total = lambda *x: sum((x * x).sum() for x in falling_bodies(*x)[:5])
    gradient = torch.func.grad(total, argnums=(0, 1, 2))
    assert_each_near(torch.func.vmap(gradient)(*arguments), gradient, arguments)
    shared = torch.func.vmap(gradient, in_dims=(None, 0, None))(velocity, arguments[1], arguments[2][0])
    for k in range(2):
        expected = gradient(velocity, arguments[1][k], arguments[2][0])
        torch.testing.assert_close(tuple(x[k] for x in shared), expected, atol=1e-9, rtol=1e-9)
    half = RigidScene([RigidBody.ball(2.0, 0.1)], [Plane.inclined()], dt=0.01, mu=0.3, stiffness=1e4)
    with pytest.raises(RuntimeError, match="stiffness and dissipation must both be given, or neither"):
        torch.func.vmap(lambda v: half.step(BALL._replace(velocity=v), torch.zeros(1, 6).double()))(BALL.velocity[None])
    with pytest.raises(RuntimeError, match=r"mu must be \[..., 1\] or \[..., 18\]"):
        torch.func.vmap(falling_bodies)(*arguments[:2], torch.ones(2, 3).double())


def test_the_operator_of_scenes_is_what_compilers_expect():
    """The shapes and strides that they are told, and no result that shares memory with an argument."""
    scene, (state, u), _ = SYSTEMS["scene"]
    tensors = [*state, u, *vars(scene.bodies[0]).values(), scene.planes[0].normal, scene.planes[0].offset]
    tensors += [scene.gravity, scene.mu, scene.restitution, scene.stiffness, scene.dissipation]
    tensors[4] = u.unsqueeze(1).expand(3, 2, 1, 6)
    others = [1, [-1], [], [0], None, scene.dt, "compliant", 1, None, 1.0, 4, 0.0, 0.0, "active", None, 1e-3, 1.0]
    checks = ("test_schema", "test_faketensor")
    torch.library.opcheck(torch.ops.lcp._roll_out_scene.default, (tensors, *others), test_utils=checks)


def test_a_scene_is_made_within_a_compiled_function_if_it_has_one_body():
    torch._dynamo.reset()

    def end(radius):
        scene = RigidScene([RigidBody.ball(2.0, radius)], [Plane.inclined()], dt=0.01, mu=0.3)
        return scene.step(BALL, torch.zeros(1, 6).double()).velocity_next

    radius = leaf(0.1)
    compiled = torch.compile(end, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(radius), end(radius))
    got, expected = (torch.autograd.grad(f(radius).sum(), radius) for f in (compiled, end))
    torch.testing.assert_close(got, expected)
    two = torch.compile(falling_bodies, fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match="several bodies must be made outside of a compiled function"):
        two(torch.zeros(2, 3).double(), numbers(0.1)[0], 0.3)


MANY = {
    "jacfwd": torch.func.jacfwd,
    "jacrev": torch.func.jacrev,
    "hessian": lambda f: torch.func.hessian(lambda *x: f(*x).square().sum()),
    "jacrev of grad": lambda f: torch.func.jacrev(torch.func.grad(lambda *x: f(*x).square().sum())),
}


@pytest.mark.parametrize("derivative", MANY)
@pytest.mark.parametrize("formulation", ["exact_cone", "polyhedral", "compliant"])
def test_derivatives_of_a_scene_are_mapped(derivative, formulation):
    """In the velocity, and in a parameter, which a batch has in common or each element for itself."""
    u = torch.zeros(2, 1, 6).double()

    def end(v, radius):
        scene = RigidScene(
            [RigidBody.ball(2.0, radius)], [Plane.inclined()], dt=0.01, mu=0.3, restitution=0.5, stiffness=1e5,
            dissipation=0.01)
        found = scene.simulate(BALL._replace(velocity=v), u, formulation=formulation)
        return torch.cat([found.position_next, found.velocity_next, found.angular_velocity_next], -1)

    of_v = MANY[derivative](end)
    v, radius = torch.stack([BALL.velocity, 1.1 * BALL.velocity]), numbers(0.1, 0.101)
    for in_dims, arguments in (((0, 0), (v, radius)), ((0, None), (v, radius[0]))):
        mapped = torch.func.vmap(of_v, in_dims)(*arguments)
        for k in range(2):
            torch.testing.assert_close(mapped[k], of_v(v[k], radius[k] if in_dims[1] == 0 else radius[0]), rtol=1e-9, atol=1e-9)
    of_radius = MANY[derivative](lambda radius, v: end(v, radius))
    mapped = torch.func.vmap(of_radius, (None, 0))(radius[0], v)
    for k in range(2):
        torch.testing.assert_close(mapped[k], of_radius(radius[0], v[k]), rtol=1e-9, atol=1e-9)


def test_the_third_derivative_of_a_transformed_scene_is_refused_and_forward_mode_is_compiled():
    torch._dynamo.reset()
    scene = SYSTEMS["scene"][0]

    def total(v):
        return scene.simulate(BALL._replace(velocity=v), torch.zeros(2, 1, 6).double()).velocity_next.square().sum()

    v = BALL.velocity
    jvp = lambda v: torch.func.jvp(total, (v,), (v,))
    assert torch.func.hessian(total)(v).any() and jvp(v)[1] != 0
    with pytest.raises(RuntimeError, match="the third derivative of a rollout cannot be mapped nor traced"):
        torch.func.vmap(torch.func.jacrev(torch.func.jacrev(torch.func.grad(total))))(v[None])
    torch.testing.assert_close(torch.compile(jvp, backend="aot_eager", fullgraph=True)(v), jvp(v))


def test_a_scene_is_exported_for_any_batch():
    """Of a ball that falls on a box."""

    class Step(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scene = RigidScene(
                [RigidBody.box(1.0, (0.2, 0.2, 0.2)), RigidBody.ball(1.0, 0.1)], [Plane.inclined()], dt=0.01, mu=0.3)

        def forward(self, position, orientation, velocity, angular_velocity):
            u = torch.zeros(2, 6).double()
            return self.scene.step((position, orientation, velocity, angular_velocity), u)

    start = RigidState.at_rest(numbers(0, 0, 0.1, 0, 0, 0.35).view(2, 3))
    states = lambda count: tuple(x.expand(count, *x.shape) for x in start._replace(velocity=numbers(0, 0, -1).expand(2, 3)))
    module = Step()
    program = torch.export.export(module, states(7), dynamic_shapes=({0: torch.export.Dim("batch")},) * 4).module()
    for count in (0, 1, 7, 9):
        for got, expected in zip(program(*states(count)), module(*states(count)), strict=True):
            assert torch.equal(got, expected)


def test_what_may_not_be_stepped_has_a_status_where_it_cannot_be_read():
    """Elsewhere it is an error."""
    state, u = SYSTEMS["point mass"][1]
    step = lambda e: PointMass(2.0, 0.1, 0.3, G, restitution=e).simulate(state, u).status
    assert torch.func.vmap(step)(numbers(0.0, 0.5)).tolist() == [[0] * 3, [4] * 3]
    with pytest.raises(RuntimeError, match="restitution must be 0 at position level"):
        step(numbers(0.5))
    state, u = SYSTEMS["tripod"][1]
    supports = TRIPOD.supports
    both = torch.stack([supports, supports + 1])
    step = lambda r: Tripod(2.0, 0.01, 0.01, 0.3, G, supports=r).simulate(state, u).status
    assert torch.func.vmap(step)(both).tolist() == [[0] * 3, [4] * 3]
    with pytest.raises(RuntimeError, match="supports must carry the centre of mass"):
        step(supports + 1)
