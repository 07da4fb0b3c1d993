"""No function returns two results that share memory: writing into one must not change another."""

import itertools

import pytest
import torch
from modules import MAKERS, inputs
from systems import BALL, BLOCK, FALLING, PARTICLE, PLANAR, POINT, SCENE, SLIDING, SYSTEMS, TRIPOD, each_formulation, numbers

import torchlcp
from torchlcp import losses, physics
from torchlcp.physics import Plane, RigidBody, RigidState


def addresses(x):
    """Where the numbers of a tensor are in memory."""
    offsets = torch.zeros(x.shape, dtype=torch.int64)
    for dim, (size, stride) in enumerate(zip(x.shape, x.stride(), strict=True)):
        offsets += (torch.arange(size) * stride).view([-1] + [1] * (x.dim() - dim - 1))
    return set((x.data_ptr() + x.element_size() * offsets).flatten().tolist())


def assert_apart(results):
    tensors = [(k, x) for k, x in enumerate(results) if isinstance(x, torch.Tensor)]
    for (one, x), (other, y) in itertools.combinations(tensors, 2):
        assert not addresses(x) & addresses(y), f"results {one} and {other} of {type(results).__name__}"


@each_formulation
@pytest.mark.parametrize("method", ["auto", "lemke"])
def test_rollouts(name, options, method):
    """By a walk and, with the other method, step by step."""
    system, (*state, last), _ = SYSTEMS[name]
    solver = {} if name in ("particle", "block", "scene") else {"method": method}
    rollout = system.simulate(*state, last, **options, **solver)
    assert_apart(rollout)
    if hasattr(rollout, "next"):
        assert_apart(rollout.next)
    assert_apart(system.step(*state, *([] if name == "falling" else [last[0]]), **options))
    assert_apart(system.certify(*state, *([] if name == "falling" else [last]), rollout,
                                **{key: x for key, x in options.items() if key != "relaxed"}))


V, U, P, Q = numbers(0.2, 1.0), numbers(1, -2), numbers(0, 0.1), numbers(1, -1)
TURN, MOVE, PUSH = numbers(0, 0, 0.3), numbers(0.5, -0.2, 2.0), numbers(0.1, 0, 0.01)


def solved(problem):
    return torchlcp.solve(*problem)[:2]


def solved_mixed(problem):
    return torchlcp.solve_mixed(*problem)[1:3]


OF_SYSTEMS = {
    "sliding exact": lambda: SLIDING.exact_step(V, U),
    "sliding mixed": lambda: SLIDING.mixed_problem(V, U),
    **{f"sliding {f}": lambda f=f: SLIDING.problem(V, U, formulation=f) for f in ("traditional", "direct", "forward")},
    **{
        f"sliding read {f}": lambda f=f: SLIDING.read(*solved(SLIDING.problem(V, U, formulation=f)), formulation=f)
        for f in ("traditional", "direct", "forward")
    },
    "falling exact": lambda: FALLING.exact_step(V, U),
    "falling problem": lambda: FALLING.problem(V, U),
    "falling read": lambda: FALLING.read(V, U, *solved(FALLING.problem(V, U))),
    "planar exact": lambda: PLANAR.exact_step(V, U),
    "planar problem": lambda: PLANAR.problem(V, U),
    "planar along": lambda: PLANAR.problem(V, U, directions=physics.aligned_directions(V, U)),
    "planar direction": lambda: PLANAR.direction_problem(V, U, V / V.norm()),
    "planar read": lambda: PLANAR.read(V, U, *solved(PLANAR.problem(V, U))),
    "point exact": lambda: POINT.exact_step((P, Q), U),
    "point problem": lambda: POINT.problem((P, Q), U),
    "point mixed": lambda: POINT.mixed_problem((P, Q), U),
    "point read": lambda: POINT.read((P, Q), U, *solved(POINT.problem((P, Q), U))),
    "tripod exact": lambda: TRIPOD.exact_step((TURN, MOVE), PUSH),
    "tripod problem": lambda: TRIPOD.problem((TURN, MOVE), PUSH),
    "tripod read": lambda: TRIPOD.read((TURN, MOVE), PUSH, solved(TRIPOD.problem((TURN, MOVE), PUSH))[0]),
    "particle exact": lambda: PARTICLE.exact_step((TURN, MOVE), PUSH),
    "particle rigid": lambda: PARTICLE.rigid_step((TURN, MOVE), PUSH),
    "particle problem": lambda: PARTICLE.problem((TURN, MOVE), PUSH),
    "block problem": lambda: BLOCK.problem((TURN, MOVE), PUSH),
    "block dual": lambda: BLOCK.dual_problem((TURN, MOVE), PUSH),
    "block rigid": lambda: BLOCK.rigid_problem((TURN, MOVE), PUSH),
    "block read dual": lambda: BLOCK.read_dual(
        (TURN, MOVE), PUSH, solved(BLOCK.dual_problem((TURN, MOVE), PUSH))[0]),
    "scene contacts": lambda: SCENE.contacts(BALL),
    "state at rest": lambda: RigidState.at_rest(numbers(0, 0, 1).view(1, 3)),
    "ball": lambda: vars(RigidBody.ball(1.0, 0.1)).values(),
    "box": lambda: vars(RigidBody.box(1.0, (0.1, 0.2, 0.3))).values(),
    "plane": lambda: [Plane.inclined(0.1).normal, Plane.inclined(0.1).offset],
    "direct friction": lambda: physics.direct_friction_problem(torch.eye(2).double(), torch.eye(2).double(), V, V),
    "direct friction read": lambda: physics.read_direct_friction(
        *solved(physics.direct_friction_problem(torch.eye(2).double(), torch.eye(2).double(), V, V)),
        torch.eye(2).double(), torch.eye(2).double(), V),
}


@pytest.mark.parametrize("name", OF_SYSTEMS)
def test_other_functions_of_systems(name):
    assert_apart(list(OF_SYSTEMS[name]()))


ONE, VELOCITY, NONE = torch.eye(3).double(), numbers(3, 0, -1), numbers(0, 0, 0)
M, q = ONE + 0.1, numbers(-1, 2, -3)
z = torchlcp.solve(M, q).z
GAP = numbers(0.0)
OF_OPERATORS = {
    "solve": lambda: torchlcp.solve(M, q),
    "solve with a gradient": lambda: torchlcp.solve(M, q.clone().requires_grad_()),
    "solve_mixed": lambda: torchlcp.solve_mixed(ONE, ONE, ONE, M, q, q),
    "certify": lambda: torchlcp.certify(M, q, z),
    "directional_derivative": lambda: torchlcp.directional_derivative(M, q, z, M, q),
    "simulate_lcs": lambda: torchlcp.simulate_lcs(ONE, ONE, ONE, ONE, q, ONE, ONE, M, q, q, q.expand(4, 3)),
    "solve_friction": lambda: torchlcp.solve_friction(ONE, VELOCITY, ONE, NONE, 0.5),
    "certify_friction": lambda: torchlcp.certify_friction(ONE, VELOCITY, ONE, NONE, 0.5, VELOCITY, NONE),
    "friction_problem": lambda: torchlcp.friction_problem(ONE, VELOCITY, ONE, NONE, 0.5),
    "friction_motion": lambda: torchlcp.friction_motion(ONE, VELOCITY, ONE, torch.zeros(6).double()),
    "solve_contact": lambda: torchlcp.solve_contact(ONE, VELOCITY, ONE, NONE, NONE + 1, 0.5),
    "certify_contact": lambda: torchlcp.certify_contact(ONE, VELOCITY, ONE, NONE, NONE + 1, 0.5, VELOCITY),
    "add_equality": lambda: torchlcp.add_equality(ONE, VELOCITY, ONE, NONE, NONE + 1),
    "contact_dual": lambda: torchlcp.contact_dual(ONE, VELOCITY, ONE, NONE, NONE + 1),
    "contact_parameters": lambda: torchlcp.contact_parameters(GAP, GAP + 1e4, GAP, GAP + 1, 0.1),
    "pad": lambda: torchlcp.pad([q, q[:2]], 1),
    "unpad": lambda: torchlcp.unpad(torch.stack([q, q]), torch.tensor([3, 2])),
    "bilevel_loss": lambda: losses.bilevel_loss(M, q, ONE, q),
    "direct_loss": lambda: losses.direct_loss(V, V, V, complementarity=1.0),
    "penalty_loss": lambda: losses.penalty_loss(M, q, z),
}


@pytest.mark.parametrize("name", OF_OPERATORS)
def test_operators(name):
    assert_apart(list(OF_OPERATORS[name]()))


@pytest.mark.parametrize("name", [name for name in MAKERS if hasattr(MAKERS[name](), "step")])
def test_steps_of_models(name):
    model = MAKERS[name]()
    given = (torch.randn(5, model.inputs),) if hasattr(model, "inputs") else inputs()
    assert_apart(list(model.step(*(x.to(next(model.parameters()).dtype) for x in given))))


def test_bodies_at_rest_are_compiled():
    torch._dynamo.reset()

    def end(position):
        return RigidState.at_rest(position)

    position = numbers(0, 0, 1).view(1, 3)
    compiled = torch.compile(end, fullgraph=True, backend="aot_eager")(position)
    assert compiled.velocity is not compiled.angular_velocity
    step = torch.compile(SCENE.step, fullgraph=True, backend="aot_eager")
    u = torch.zeros(1, 6).double()
    torch.testing.assert_close(step(RigidState.at_rest(position), u), SCENE.step(RigidState.at_rest(position), u))
