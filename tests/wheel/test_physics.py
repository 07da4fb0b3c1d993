"""torchlcp.physics: what all systems have in common."""

import copy
import inspect
import math
import pickle

import pytest
import torch
from systems import G, GROUND, SYSTEMS, WITHOUT_DERIVATIVE, each, each_formulation, formulations, numbers
from torch.autograd import forward_ad

from torchlcp import Status, physics
from torchlcp.physics import (
    CompliantGround, CompliantParticle, FallingBlock, PlanarBlock, PointMass, RigidBody, RigidScene, SlidingBlock, Tripod,
)


@each_formulation
def test_a_rollout_is_a_chain_of_steps(name, options):
    system, (*state, last), _ = SYSTEMS[name]
    rollout = system.simulate(*state, last, **options)
    assert (rollout.status == Status.SOLVED).all() and rollout.status.shape[0] == 3
    if hasattr(rollout, "residual"):
        assert rollout.residual.abs().max() < 1e-9 and not rollout.residual.requires_grad
    for k in range(3):
        step = system.step(*state, *([] if name == "falling" else [last[k]]), **options)
        assert type(step) is type(rollout)
        for got, all_steps in zip(step, rollout, strict=True):
            torch.testing.assert_close(got, all_steps[k], rtol=1e-12, atol=1e-12)
        state = [step.x_next, step.v_next] if name == "falling" else [step.next if hasattr(step, "next") else step.v_next]


@each_formulation
def test_a_rollout_is_certified(name, options):
    system, arguments, _ = SYSTEMS[name]
    start = arguments[:-1] if name == "falling" else arguments  # whose last argument is a number of steps
    same = {key: value for key, value in options.items() if key != "relaxed"}
    found = system.certify(*start, system.simulate(*arguments, **options), **same)
    assert (found.unsolved == 0).all() and found.unsolved.dtype == torch.int64
    assert (found.kinked <= 3).all()


def with_tensors(system, options):
    """The system's parameters as tensors that require a gradient, and a function that makes it of them."""
    parts = dict(system._parts())
    at_position = isinstance(system, PointMass) and options.get("stabilization") != "velocity"  # without restitution
    names = [name for name, value in parts.items() if isinstance(value, torch.Tensor)]
    names = [name for name in names if not (at_position and name == "restitution")]

    def made(*tensors):
        new = dict(zip(names, tensors, strict=True))
        own = {key: value for key, value in new.items() if key in system.__dataclass_fields__}
        if hasattr(system, "ground"):
            own["ground"] = GROUND.__class__(*(new[key] for key in ("mu", "stiffness", "dissipation")))
        return type(system)(**{**system.__dict__, **own})

    return made, [parts[name].clone().requires_grad_() for name in names]


@pytest.mark.parametrize("name, options", [case for case in formulations if case[0] != "scene"], ids=str)
def test_differentiates_in_state_inputs_and_parameters(name, options):
    system, (*state, last), _ = SYSTEMS[name]
    made, parameters = with_tensors(system, options)
    if name == "falling":
        tensors, function = state, lambda state, system: system.simulate(*state, last)
    else:
        nested = isinstance(state[0], tuple)
        tensors = [*(state[0] if nested else state), last.clone()]
        if options.get("formulation") == "forward":
            tensors[0] = numbers(2.0, 3.0)

        def function(tensors, system):
            *start, u = tensors
            return system.simulate(tuple(start) if nested else start[0], u, **options)

    tensors = [x.clone().requires_grad_() for x in tensors]
    # Not at the end of a range, beyond which differences would go.
    parameters = [torch.where(x.detach() == 0, 1e-3, x.detach()).requires_grad_() for x in parameters]

    def value(*x):
        results = function(x[: len(tensors)], made(*x[len(tensors) :]))
        without = WITHOUT_DERIVATIVE | ({"gamma"} if "z" in results._fields else set())
        return tuple(x for key, x in results._asdict().items() if key not in without)

    inputs = (*tensors, *parameters)
    assert torch.autograd.gradcheck(value, inputs, eps=1e-7, atol=1e-4, rtol=1e-3, check_forward_ad=True)

    # Forward mode alone may have kernels of its own.
    torch.manual_seed(0)
    changes = [torch.randn_like(x) for x in inputs]
    with torch.no_grad(), forward_ad.dual_level():
        duals = [forward_ad.make_dual(x.detach(), change) for x, change in zip(inputs, changes)]
        ends = [forward_ad.unpack_dual(x).tangent for x in value(*duals)]
    ends, results = zip(*((end, x) for end, x in zip(ends, value(*inputs)) if x.requires_grad))
    weights = [torch.randn_like(x) for x in results]
    gradients = torch.autograd.grad(results, inputs, weights, allow_unused=True)
    product = lambda xs, ys: sum((x * y).sum() for x, y in zip(xs, ys) if x is not None)
    assert product(ends, weights).item() == pytest.approx(product(gradients, changes).item(), rel=1e-9)


@each
def test_copies_are_the_same_system(name):
    system, arguments, _ = SYSTEMS[name]
    expected = system.simulate(*arguments)
    for copied in (copy.deepcopy(system), pickle.loads(pickle.dumps(system))):
        assert type(copied) is type(system)
        for got, x in zip(copied.simulate(*arguments), expected, strict=True):
            assert torch.equal(got, x)


@each
def test_float32_is_kept(name):
    system, arguments, _ = SYSTEMS[name]
    single = lambda x: type(x)(*map(single, x)) if hasattr(x, "_fields") else (
        tuple(map(single, x)) if isinstance(x, tuple) else x.float() if isinstance(x, torch.Tensor) else x)
    rollout = system.simulate(*map(single, arguments))
    assert (rollout.status == Status.SOLVED).all()
    assert {x.dtype for x in rollout if x.is_floating_point()} == {torch.float32}


@each
def test_options_that_do_not_exist_are_refused(name):
    system, arguments, _ = SYSTEMS[name]
    with pytest.raises((TypeError, RuntimeError), match="speed"):
        system.simulate(*arguments, speed=3)


@pytest.mark.parametrize("name", [name for name, (*_, names) in SYSTEMS.items() if names])
def test_formulations_that_do_not_exist_are_named(name):
    system, arguments, names = SYSTEMS[name]
    with pytest.raises(RuntimeError, match=f"formulation must be .*{names[0]}.* or .*; got sideways"):
        system.simulate(*arguments, formulation="sideways")


@pytest.mark.parametrize("name", ["sliding", "planar", "point mass", "tripod", "falling"])
def test_options_of_the_solver_are_passed_on(name):
    system, arguments, _ = SYSTEMS[name]
    assert (system.simulate(*arguments, method="lemke").status == Status.SOLVED).all()
    out_of_budget = system.simulate(*arguments, method="lemke", max_pivots=0)
    assert (out_of_budget.status != Status.SOLVED).any()
    with pytest.raises(RuntimeError, match="method must be"):
        system.simulate(*arguments, method="guess")


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: SlidingBlock(0.0, 0.1, 0.3, G), "mass must be > 0; got 0.0"),
        (lambda: SlidingBlock(1.0, 0.1, -0.3, G), "mu must be >= 0; got -0.3"),
        (lambda: FallingBlock(1.0, math.inf, G), "dt must be > 0; got inf"),
        (lambda: PlanarBlock(1.0, 0.1, 0.3, math.nan), "gravity must be >= 0; got nan"),
        (lambda: PointMass(1.0, 0.1, 0.3, G, 1.5), r"restitution must be in \[0, 1\]; got 1.5"),
        (lambda: Tripod(1.0, 0.0, 0.1, 0.3, G), "inertia must be > 0; got 0.0"),
        (lambda: CompliantGround(0.3, 0.0, 0.1), "stiffness must be > 0; got 0.0"),
        (lambda: CompliantParticle(1.0, 0.0, G, GROUND), "dt must be > 0; got 0.0"),
        (lambda: RigidBody.ball(1.0, -1.0), "radius must be > 0; got -1.0"),
        (lambda: RigidBody.box(1.0, (1.0, 0.0, 1.0)), "size must be > 0; got 0.0"),
        (lambda: RigidScene([], [], dt=-1.0, mu=0.3), "dt must be > 0; got -1.0"),
        (lambda: RigidScene([], [], dt=1.0, mu=0.3, restitution=-0.5), r"restitution must be in \[0, 1\]; got -0.5"),
    ],
)
def test_numbers_out_of_their_range_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# Of each system the parameters as tensors, and values that are out of their range.
OUT_OF_RANGE = [
    (name, key, bad, options)
    for name, options in formulations
    if name != "scene" and options.get("stabilization") != "position"
    for key, value in SYSTEMS[name][0]._parts()
    if isinstance(value, torch.Tensor) and key not in ("supports", "com_height")
    and not (key == "restitution" and options.get("stabilization") != "velocity")
    for bad in ((-0.3, 1.5, math.nan) if key == "restitution" else (-0.3, math.nan))
]


@pytest.mark.parametrize("name, key, bad, options", OUT_OF_RANGE, ids=str)
@pytest.mark.parametrize("way", ["walk", "steps", "map"])
def test_tensors_out_of_their_range_have_a_status(name, key, bad, options, way):
    """Each element by itself, whether it moves freely or in contact."""
    system, arguments, _ = SYSTEMS[name]
    names = [k for k, value in system._parts() if isinstance(value, torch.Tensor)]
    made, values = with_tensors(system, options)
    names = [k for k in names if not (k == "restitution" and len(names) > len(values))]
    solver = {} if way != "steps" or name in ("particle", "block") else {"method": "lemke"}

    def status(x):
        parameters = [x if k == key else value.detach() for k, value in zip(names, values, strict=True)]
        return made(*parameters).simulate(*arguments, **options, **solver).status

    good = dict(system._parts())[key]
    both = torch.stack([good, torch.full_like(good, bad)])
    if way == "map":
        found = torch.func.vmap(status)(both)
        assert (found[0] == status(good)).all() and (found[1] == Status.BAD_INPUT).all()
    else:
        assert (status(torch.full_like(good, bad)) == Status.BAD_INPUT).all()
        found = status(both.view(2, *[1] * (status(good).dim() - 1)))
        assert (found[:, 0] == status(good)).all() and (found[:, 1] == Status.BAD_INPUT).all()


def scene_with(height=0.1, **parts):
    """A box at the height of its lowest corners, m."""
    given = {"mu": numbers(0.3), "restitution": numbers(0.5), "stiffness": numbers(1e4), "dissipation": numbers(0.01), **parts}
    of_body = {key: given.pop(key) for key in ("mass", "radii", "drag") if key in given}
    plane = given.pop("plane", physics.Plane.inclined())
    box = RigidBody.box(1.0, (0.2, 0.2, 0.2))
    scene = RigidScene([RigidBody(**{**vars(box), **of_body})], [plane], dt=0.01, **given)
    return scene, physics.RigidState.at_rest(numbers(0, 0, 0.1 + height).view(1, 3))


BAD_PARTS = [
    ("mu", -0.3), ("mu", math.nan), ("restitution", -0.1), ("restitution", 1.5), ("mass", -1.0), ("mass", 0.0),
    ("radii", -0.1), ("drag", -1.0), ("stiffness", -1.0), ("stiffness", 0.0), ("dissipation", -1.0),
]


@pytest.mark.parametrize("key, bad", BAD_PARTS)
@pytest.mark.parametrize("height", [0.0, 1.0], ids=["in contact", "in flight"])
@pytest.mark.parametrize("options", [{}, {"formulation": "polyhedral"}, {"formulation": "compliant"}, {"kappa": 1e-4}], ids=str)
def test_scenes_with_numbers_out_of_their_range_have_a_status(key, bad, height, options):
    compliant = options.get("formulation") == "compliant"
    if (compliant and key == "restitution") or (not compliant and key in ("stiffness", "dissipation")):
        return  # it is not used
    good = {"mu": 0.3, "restitution": 0.5, "mass": 1.0, "radii": 0.0, "drag": 0.0, "stiffness": 1e4, "dissipation": 0.01}[key]
    value = numbers(good, bad) if key in ("mass", "drag") else numbers(good, bad).view(2, 1)
    if key == "radii":
        value = value.expand(2, 8)
    u = torch.zeros(2, 1, 6).double()
    scene, state = scene_with(height, **{key: value})
    found = scene.simulate(state, u, **options)
    assert (found.status == torch.tensor([Status.SOLVED, Status.BAD_INPUT])).all()
    assert found.position_next[:, 1].isnan().all()
    scene, state = scene_with(height, **{key: value[0]})
    torch.testing.assert_close(found.position_next[:, 0], scene.simulate(state, u, **options).position_next)
    mapped = torch.func.vmap(lambda x: scene_with(height, **{key: x})[0].simulate(state, u, **options).status)(value)
    assert (mapped == found.status.T).all()


def test_no_friction_limit_is_allowed():
    scene, state = scene_with(1.0, mu=numbers(math.inf))
    assert scene.step(state, torch.zeros(1, 6).double()).status == Status.SOLVED
    assert RigidScene([], [], dt=0.1, mu=math.inf).mu.tolist() == [math.inf]


@pytest.mark.parametrize("normal", [(0, 0, 2), (0.707, 0, 0.707), (0, 0, 0), (0, 0, math.nan)])
def test_normals_of_another_length_are_refused(normal):
    plane = physics.Plane(normal, 0.0)
    scene, state = scene_with(1.0, plane=plane)
    u = torch.zeros(1, 6).double()
    with pytest.raises(RuntimeError, match="the normal of a plane must have length 1; got"):
        scene.step(state, u)
    two = torch.stack([numbers(0, 0, 1), numbers(*normal)])
    with pytest.raises(RuntimeError, match="the normal of a plane must have length 1; got"):
        torch.func.vmap(lambda n: scene_with(1.0, plane=physics.Plane(n, numbers(0)[0]))[0].step(state, u).status)(two)
    for accepted in ((0.6, 0, 0.8), (0.7071, 0, 0.7071), (-1, 0, 0)):
        assert scene_with(3.0, plane=physics.Plane(accepted, -2.0))[0].step(state, u).status == Status.SOLVED


OPERATORS = {
    "_simulate_sliding_block": physics.SlidingBlockSolution,
    "_sliding_block_exact_step": physics.SlidingBlockStep,
    "_sliding_block_problem": physics.Problem,
    "_sliding_block_mixed_problem": physics.MixedProblem,
    "_certify_sliding_block": physics.RolloutCertificate,
    "_simulate_falling_block": physics.FallingBlockSolution,
    "_falling_block_exact_step": physics.FallingBlockStep,
    "_simulate_planar_block": physics.PlanarBlockSolution,
    "_planar_block_exact_step": physics.PlanarBlockStep,
    "_simulate_point_mass": physics.PointMassSolution,
    "_point_mass_exact_step": physics.PointMassStep,
    "_point_mass_mixed_problem": physics.MixedProblem,
    "_simulate_tripod": physics.TripodSolution,
    "_simulate_compliant_particle": physics.CompliantSolution,
    "_compliant_particle_exact_step": physics.CompliantStep,
    "_compliant_block_problem": physics.CompliantProblem,
    "_bodies_at_rest": physics.RigidState,
    "_read_direct_friction": physics.DirectFrictionStep,
}


@pytest.mark.parametrize("name", OPERATORS)
def test_results_have_the_names_of_the_operators(name):
    returns = getattr(torch.ops.lcp, name).default._schema.returns
    assert [value.name for value in returns] == list(OPERATORS[name]._fields)


@pytest.mark.parametrize("name", physics.__all__)
def test_what_is_public_is_documented(name):
    thing = getattr(physics, name)
    assert inspect.getdoc(thing)
    if inspect.isclass(thing):
        methods = [x for key, x in vars(thing).items() if not key.startswith("_") and inspect.isfunction(x)]
        assert all(inspect.getdoc(method) for method in methods)
        parameters = [p for method in methods for p in inspect.signature(method).parameters.values()]
        assert all(p.annotation is not p.empty for p in parameters if p.name != "self")
