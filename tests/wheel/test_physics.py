"""torchlcp.physics, against closed forms that are written here in other words, and against the operators."""

import copy
import inspect
import math
import pickle

import pytest
import torch

import torchlcp
from torchlcp import Status, physics
from torchlcp.physics import (
    CompliantBlock, CompliantGround, CompliantParticle, FallingBlock, Plane, PlanarBlock, PointMass, RigidBody, RigidScene,
    RigidState, SlidingBlock, Tripod,
)

G = 9.81


def numbers(*x):
    return torch.tensor(x, dtype=torch.float64)


def leaf(*x):
    return numbers(*x).squeeze(0).requires_grad_() if len(x) == 1 else numbers(*x).requires_grad_()


SLIDING = SlidingBlock(mass=2.0, dt=0.1, mu=0.3, gravity=G)
FALLING = FallingBlock(mass=2.0, dt=0.1, gravity=G)
PLANAR = PlanarBlock(mass=2.0, dt=0.1, mu=0.3, gravity=G)
POINT = PointMass(mass=2.0, dt=0.1, mu=0.3, gravity=G)
TRIPOD = Tripod(mass=2.0, inertia=0.01, dt=0.01, mu=0.3, gravity=G)
GROUND = CompliantGround(mu=0.3, stiffness=1e4, dissipation=0.05)
PARTICLE = CompliantParticle(mass=2.0, dt=0.01, gravity=G, ground=GROUND)
BLOCK = CompliantBlock(mass=2.0, width=0.4, height=0.2, dt=0.01, gravity=G, ground=GROUND)
SCENE = RigidScene(
    [RigidBody.ball(2.0, 0.1)], [Plane.inclined()], dt=0.01, mu=0.3, restitution=0.5, stiffness=1e5, dissipation=0.01
)

# Each system with the arguments of a rollout of 3 steps, as simulate takes them, and its names of formulations.
V, U = numbers(0.2, 1.0), numbers(1, -2, 3).unsqueeze(-1).expand(3, 2)
TURNING = (numbers(0, 0, 0.3), numbers(0.5, -0.2, 2.0))
ABOVE, UPON = numbers(0.0, 0.0, 0.02), numbers(0.0, 0.0, -2e-3)
BALL = RigidState.at_rest(numbers(0, 0, 0.1).view(1, 3))._replace(velocity=numbers(3, 0, 0).view(1, 3))
SYSTEMS = {
    "sliding": (SLIDING, (V, U), ("traditional", "mixed", "direct", "forward")),
    "falling": (FALLING, (numbers(1.0, 0.05), numbers(0.0, -1.0), 3), ()),
    "planar": (PLANAR, (numbers(1.0, 0.5), U), ("exact_direction", "fixed_point", "polyhedral")),
    "point mass": (POINT, ((numbers(0, 0.1), numbers(1, -1)), U), ("stewart_trinkle", "belbute_peres")),
    "tripod": (TRIPOD, (TURNING, numbers(0.1, 0, 0.01).expand(3, 3)), ()),
    "particle": (PARTICLE, ((ABOVE, numbers(1, 0.5, -3)), numbers(1, 2, 0).expand(3, 3)), ()),
    "block": (BLOCK, ((numbers(0, 0.1, 0.1), numbers(1, -1, 0)), numbers(1, 0, 0.1).expand(3, 3)), ()),
    "scene": (SCENE, (BALL, torch.zeros(3, 1, 6).double()), ("exact_cone", "polyhedral")),
}
each = pytest.mark.parametrize("name", SYSTEMS)
formulations = [(name, {"formulation": f}) for name, (*_, names) in SYSTEMS.items() for f in names]
formulations += [(name, {}) for name, (*_, names) in SYSTEMS.items() if not names]
formulations += [("point mass", {"stabilization": "velocity"}), ("planar", {"formulation": "fixed_point", "relaxed": True})]
formulations += [("scene", {"formulation": "compliant", "substeps": 2})]
each_formulation = pytest.mark.parametrize("name, options", formulations, ids=str)


# What all systems have in common


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


# What has no derivative; and of a block that sticks z, with the slack velocity in it, is not unique.
WITHOUT_DERIVATIVE = {"z", "slip", "residual", "status", "iterations", "passes", "converged"}


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

    def value(*x):
        results = function(x[: len(tensors)], made(*x[len(tensors) :]))
        without = WITHOUT_DERIVATIVE | ({"gamma"} if "z" in results._fields else set())
        return tuple(x for key, x in results._asdict().items() if key not in without)

    assert torch.autograd.gradcheck(value, (*tensors, *parameters), eps=1e-7, atol=1e-4, rtol=1e-3, check_forward_ad=True)


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


# Each system


def coulomb(free, limit):
    return [math.copysign(max(abs(x) - limit, 0.0), x) for x in free]


@pytest.mark.parametrize("formulation", ["traditional", "mixed", "direct"])
def test_a_block_slides_and_sticks(formulation):
    rollout = SLIDING.simulate(V, U, formulation=formulation)
    v = V.tolist()
    for k, u in enumerate((1.0, -2.0, 3.0)):
        v = coulomb([x + 0.05 * u for x in v], 0.03 * G)
        assert rollout.v_next[k].tolist() == pytest.approx(v, abs=1e-13)
    assert (rollout.v_next == 0).any() and (rollout.v_next != 0).any()
    torch.testing.assert_close(rollout.v_next[0], SLIDING.exact_step(V, U[0]).v_next)


def test_the_problem_of_a_sliding_block_is_that_of_its_step():
    for formulation in ("traditional", "direct"):
        z = torchlcp.solve(*SLIDING.problem(V, U[0], formulation=formulation)).z
        torch.testing.assert_close(z, SLIDING.step(V, U[0], formulation=formulation).z)
    x = torchlcp.solve_mixed(*SLIDING.mixed_problem(V, U[0])).x
    torch.testing.assert_close(x.squeeze(-1), SLIDING.exact_step(V, U[0]).v_next)
    with pytest.raises(RuntimeError, match="mixed problem"):
        SLIDING.problem(V, U[0], formulation="mixed")


def check_read(step, solution):
    """A step that was read from a solution is that of simulate."""
    for name, value in step._asdict().items():
        torch.testing.assert_close(value, getattr(solution, name), rtol=1e-12, atol=1e-12)


def test_steps_are_read_from_solutions_of_their_problems():
    for formulation in ("traditional", "direct"):
        z, w, _ = torchlcp.solve(*SLIDING.problem(V, U[0], formulation=formulation))
        step = SLIDING.step(V, U[0], formulation=formulation)
        check_read(SLIDING.read(z, w, formulation=formulation), step)
    forward = SLIDING.step(V + 1, U[0], formulation="forward")
    z, w, _ = torchlcp.solve(*SLIDING.problem(V + 1, U[0], formulation="forward"))
    check_read(SLIDING.read(z, w, formulation="forward"), forward)
    mixed = torchlcp.solve_mixed(*SLIDING.mixed_problem(V, U[0]))
    check_read(SLIDING.read(mixed.z, mixed.w, formulation="mixed"), SLIDING.step(V, U[0], formulation="mixed"))
    assert SLIDING.max_friction().item() == pytest.approx(0.3 * 2 * G)
    x, v = numbers(1.0, 0.05), numbers(0.0, -1.0)
    z, w, _ = torchlcp.solve(*FALLING.problem(x, v))
    check_read(FALLING.read(x, v, z, w), FALLING.step(x, v))
    v, u = numbers(3.0, 4.0), numbers(1.0, 0.0)
    z, w, _ = torchlcp.solve(*PLANAR.problem(v, u, directions=6))
    check_read(PLANAR.read(v, u, z, w), PLANAR.step(v, u, formulation="polyhedral", directions=6))
    step = PLANAR.step(v, u)
    z = torchlcp.solve(*PLANAR.direction_problem(v, u, step.direction), ties="midpoint").z
    check_read(PLANAR.read_direction(v, u, z), step)
    (*_, (state, u), _), options = SYSTEMS["point mass"], {"stabilization": "position"}
    z, w, _ = torchlcp.solve(*POINT.problem(state, u[0], **options))
    check_read(POINT.read(state, u[0], z, w, **options), POINT.step(state, u[0], **options))
    _, (state, u), _ = SYSTEMS["tripod"]
    z = torchlcp.solve(*TRIPOD.problem(state, u[0]), ties="active").z
    check_read(TRIPOD.read(state, u[0], z), TRIPOD.step(state, u[0]))
    assert torch.equal(TRIPOD.read(state, u[0], z).next.pose, TRIPOD.step(state, u[0]).next.pose)


def test_a_block_on_compliant_ground_steps_by_its_lcps():
    _, (state, u), _ = SYSTEMS["block"]
    lower = (numbers(0, 0.099, 0.0), numbers(1, -0.1, 0))
    dual = BLOCK.read_dual(lower, u[0], torchlcp.solve(*BLOCK.dual_problem(lower, u[0])).z)
    step = BLOCK.step(lower, u[0])
    torch.testing.assert_close(dual.velocity_next, step.velocity_next)
    assert (dual.gamma.view(4, 3)[:, 2] > 0).any()
    rigid = BLOCK.read_rigid(lower, u[0], torchlcp.solve(*BLOCK.rigid_problem(lower, u[0])).z)
    assert rigid.position_next[1] >= 0.1 - 1e-9  # the corners have left the ground
    read = lambda z: BLOCK.read_dual(state, u[0], z).position_next
    z = torchlcp.solve(*BLOCK.dual_problem(state, u[0])).z
    assert torch.autograd.gradcheck(read, z.requires_grad_())


def test_a_smoothed_step_is_read_with_the_derivative_of_the_path():
    """While it sticks, the derivative is 0 but for kappa > 0."""
    for kappa in (0.0, 0.1):
        v = numbers(0.1, 0.2).requires_grad_()
        z, w, _ = torchlcp.solve(*SLIDING.problem(v, U[0]), kappa=kappa)
        v_next = SLIDING.read(z, w, kappa=kappa).v_next
        (gradient,) = torch.autograd.grad(v_next.sum(), v)
        assert (v_next == 0).all() and (gradient != 0).all() == (kappa > 0)


def test_friction_of_any_directions():
    """Along the motion and across it, friction is exact; directions that do not span the plane hold no block."""
    v, u = numbers(3.0, 4.0), numbers(0.0, 0.0)
    D = physics.aligned_directions(v, u).requires_grad_()
    assert physics.span_plane(D) and not physics.span_plane(D.detach()[:, :2])

    def step(D):
        z, w, _ = torchlcp.solve(*PLANAR.problem(v, u, directions=D))
        return PLANAR.read(v, u, z, w, directions=D)

    torch.testing.assert_close(step(D).v_next, PLANAR.exact_step(v, u).v_next)
    assert torch.autograd.gradcheck(lambda D: tuple(step(D)), D)
    D = physics.friction_directions(8)
    assert D.shape == (2, 8) and torch.equal(D[:, 0], numbers(1.0, 0.0)) and torch.equal(D[:, :4], -D[:, 4:])
    torch.testing.assert_close(step(D).v_next, PLANAR.step(v, u, formulation="polyhedral").v_next)
    assert physics.friction_directions(4, dtype=torch.float32).dtype == torch.float32
    with pytest.raises(RuntimeError, match="5"):
        physics.friction_directions(5)
    with pytest.raises(RuntimeError, match=r"D must be"):
        PLANAR.problem(v, u, directions=numbers(1.0, 2.0))


def test_the_gradient_of_friction_is_that_of_the_steps_that_slide():
    mu = leaf(0.3)
    block = SlidingBlock(2.0, 0.1, mu, G)
    block.simulate(numbers(9.0, 0.0), torch.zeros(5, 2).double()).v_next[-1].sum().backward()
    assert mu.grad.item() == pytest.approx(-5 * 0.1 * G)


def test_a_block_that_starts_to_slide_is_kinked():
    block = SlidingBlock(1.0, 0.1, 0.5, 10.0)
    v, u = numbers(0.0, 0.0, 1.0), numbers(5.0, 1.0, 0.0).unsqueeze(0)
    found = block.certify(v, u, block.simulate(v, u))
    assert found.kinked.tolist() == [1, 0, 0] and found.tied[0] == 1


def test_a_block_falls():
    rollout = FALLING.simulate(numbers(1.0), numbers(0.0), 7)
    x, v = 1.0, 0.0
    for k in range(7):
        free = x + 0.1 * v - G * 0.01
        x, v = max(free, 0.0), (max(free, 0.0) - x) / 0.1
        assert rollout.x_next[k].item() == pytest.approx(x, abs=1e-12)
        assert rollout.v_next[k].item() == pytest.approx(v, abs=1e-12)
    assert rollout.force[-1].item() == pytest.approx(2.0 * G)
    exact = FALLING.exact_step(numbers(0.05), numbers(-1.0))
    assert [y.item() for y in exact] == pytest.approx([0.0, -0.5, (0.05 + G * 0.01) * 200])
    z = torchlcp.solve(*FALLING.problem(numbers(1.0), numbers(0.0))).z
    assert z.item() == pytest.approx(1 - G * 0.01)


@pytest.mark.parametrize("formulation", ["exact_direction", "fixed_point", "polyhedral"])
def test_a_block_slides_on_a_plane(formulation):
    v, u = numbers(3.0, 4.0), numbers(0.0, 0.0)
    expected = v * (1 - 0.03 * G / 5)
    step = PLANAR.step(v, u, formulation=formulation, directions=64)
    torch.testing.assert_close(step.v_next, expected, rtol=0, atol=2e-2 if formulation == "polyhedral" else 1e-12)
    torch.testing.assert_close(step.force, 2 * (step.v_next - v) / 0.1)
    assert step.converged and step.passes >= 1
    torch.testing.assert_close(PLANAR.exact_step(v, u).v_next, expected)


def test_the_problem_of_a_planar_block_is_that_of_its_step():
    v, u = numbers(3.0, 4.0), numbers(1.0, 0.0)
    z = torchlcp.solve(*PLANAR.problem(v, u, directions=6)).z
    torch.testing.assert_close(z, PLANAR.step(v, u, formulation="polyhedral", directions=6).z)
    step = PLANAR.step(v, u)
    z = torchlcp.solve(*PLANAR.direction_problem(v, u, step.direction)).z
    torch.testing.assert_close(z, step.z)


@pytest.mark.parametrize("formulation", ["stewart_trinkle", "belbute_peres"])
@pytest.mark.parametrize("stabilization", ["position", "velocity"])
def test_a_point_mass_lands(formulation, stabilization):
    """From 5 cm at -1 m/s it reaches the ground within a step; at velocity level a step of contact rebounds."""
    options = {"formulation": formulation, "stabilization": stabilization}
    mass = PointMass(2.0, 0.1, 0.3, G, restitution=0.5 if stabilization == "velocity" else 0.0)
    state, u = (numbers(0, 0.05 if stabilization == "position" else 0.0), numbers(3, -1)), numbers(0, 0)
    v_y = -0.5 if stabilization == "position" else 0.5
    step, impulse = mass.step(state, u, **options), 2 * (v_y + 1 + 0.1 * G)
    assert step.velocity_next.tolist() == pytest.approx([3 - 0.3 * impulse / 2, v_y])
    assert step.lambda_n.item() == pytest.approx(impulse) and step.lambda_minus.item() == pytest.approx(0.3 * impulse)
    assert step.next.position.tolist() == pytest.approx([0.1 * step.velocity_next[0].item(), state[0][1].item() + 0.1 * v_y])
    exact = mass.exact_step(state, u, stabilization=stabilization)
    torch.testing.assert_close(exact.next, step.next)
    z = torchlcp.solve(*mass.problem(state, u, stabilization=stabilization)).z
    torch.testing.assert_close(z, step.z)
    x = torchlcp.solve_mixed(*mass.mixed_problem(state, u, **options)).x
    torch.testing.assert_close(x.abs(), step.velocity_next.abs())


def test_a_restitution_at_position_level_is_refused():
    mass = PointMass(2.0, 0.1, 0.3, G, restitution=0.5)
    with pytest.raises(RuntimeError, match="restitution"):
        mass.step((numbers(0, 0), numbers(0, 0)), numbers(0, 0))


def test_a_tripod_that_does_not_turn_slides_as_a_block():
    state = (numbers(0, 0, 0), numbers(1, 0, 0))
    rollout = TRIPOD.simulate(state, torch.zeros(4, 3).double())
    for k in range(4):
        assert rollout.velocity_next[k].tolist() == pytest.approx([1 - (k + 1) * 0.003 * G, 0, 0], abs=1e-12)
    assert TRIPOD.static_normals().sum().item() == pytest.approx(2 * G)
    torch.testing.assert_close(rollout.normal, TRIPOD.static_normals().expand(4, 3))
    exact = TRIPOD.exact_step(state, numbers(0, 0, 0))
    torch.testing.assert_close(exact, rollout.next.__class__(*(x[0] for x in rollout.next)), rtol=1e-7, atol=1e-7)
    z = torchlcp.solve(*TRIPOD.problem(TURNING, numbers(0, 0, 0), directions=4)).z
    torch.testing.assert_close(z, TRIPOD.step(TURNING, numbers(0, 0, 0), directions=4).z)


def test_a_particle_flies_rests_and_slides():
    flight = PARTICLE.step((numbers(0, 0, 9), numbers(1, 0, 0)), numbers(0, 4, 0))
    assert flight.velocity_next.tolist() == pytest.approx([1, 0.02, -0.01 * G]) and (flight.gamma == 0).all()
    resting = PARTICLE.step((numbers(0, 0, -2 * G / 1e4), numbers(0, 0, 0)), numbers(0, 0, 0))
    assert resting.velocity_next.tolist() == pytest.approx([0, 0, 0], abs=1e-12)
    assert resting.gamma.tolist() == pytest.approx([0, 0, 0.02 * G])
    state, u = (UPON, numbers(1, 0, 0)), numbers(1, 2, 0)
    sliding = PARTICLE.step(state, u)
    assert sliding.gamma[:2].norm().item() == pytest.approx(0.3 * sliding.gamma[2].item())
    exact = PARTICLE.exact_step(state, u)
    torch.testing.assert_close((*exact.next, exact.gamma), (*sliding.next, sliding.gamma))
    torch.testing.assert_close(torchlcp.solve_contact(*PARTICLE.problem(state, u)).v, sliding.velocity_next)
    assert PARTICLE.gaps(state).tolist() == pytest.approx([-2e-3])
    rigid = PARTICLE.rigid_step((numbers(0, 0, 0), numbers(1, 0, -1)), numbers(0, 0, 0))
    assert rigid.velocity_next.tolist() == pytest.approx([1 - 0.3 * (1 + 0.01 * G), 0, 0])


@pytest.mark.parametrize("sigma", [1e-3, 1e-2])
def test_a_particle_that_sticks_creeps(sigma):
    """v = sigma w times its impulse, with w = 1 / m."""
    ground = CompliantGround(mu=0.3, stiffness=1e4, dissipation=0.05, sigma=sigma)
    resting = numbers(0, 0, -2 * G / 1e4), numbers(0, 0, 0)
    step = CompliantParticle(2.0, 0.01, G, ground).step(resting, numbers(1, 0, 0))
    assert step.velocity_next[0].item() == pytest.approx(sigma / (1 + sigma) * 0.01 / 2)


def test_a_compliant_block_rests_on_two_corners():
    sunk = 0.1 - G / 1e4  # each corner bears a half of 2 kg
    state, u = (numbers(0, sunk, 0), numbers(0, 0, 0)), numbers(0, 0, 0)
    step = BLOCK.step(state, u)
    assert step.velocity_next.tolist() == pytest.approx([0, 0, 0], abs=1e-12)
    assert step.gamma.view(4, 3)[:, 2].tolist() == pytest.approx([0.01 * G, 0.01 * G, 0, 0])
    assert BLOCK.gaps(state).tolist() == pytest.approx([-G / 1e4, -G / 1e4, 0.2 - G / 1e4, 0.2 - G / 1e4])
    torch.testing.assert_close(torchlcp.solve_contact(*BLOCK.problem(state, u)).v, step.velocity_next)
    dual = torchlcp.solve(*BLOCK.dual_problem(state, u))
    assert dual.z.view(4, 2).sum(-1).tolist() == pytest.approx(step.gamma.view(4, 3)[:, 2].tolist())
    rigid = torchlcp.solve(*BLOCK.rigid_problem((numbers(0, 0.1, 0), numbers(0, 0, 0)), u))
    assert rigid.z[:4].sum().item() == pytest.approx(0.02 * G)


def test_a_block_on_two_supports_slides_and_sticks():
    """Both supports bear a half of a block of 2 kg; their friction is not unique, their sum is."""
    J, limit = torch.ones(2, 1).double(), torch.full((2,), 0.3 * G * 0.1).double()
    v_free = numbers(3.0, 0.1).unsqueeze(-1).requires_grad_()
    given = J, torch.full((1, 1), 0.5).double(), v_free
    z, w, status = torchlcp.solve(*physics.direct_friction_problem(*given, limit))
    step = physics.read_direct_friction(z, w, *given)
    assert (status == Status.SOLVED).all()
    assert step.v_next.squeeze(-1).tolist() == pytest.approx([3 - 0.03 * G, 0]) and (step.slip[1] == 0).all()
    assert step.impulse.sum(-1).tolist() == pytest.approx([-0.06 * G, -0.2])
    step.v_next.sum().backward()
    assert v_free.grad.squeeze(-1).tolist() == pytest.approx([1, 0])


# Transforms

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
        torch.func.vmap(falling_bodies)(*arguments[:2], numbers(0.2, 0.3))


def test_the_operator_of_scenes_is_what_compilers_expect():
    """The shapes and strides that they are told, and no result that shares memory with an argument."""
    scene, (state, u), _ = SYSTEMS["scene"]
    tensors = [*state, u, *vars(scene.bodies[0]).values(), scene.planes[0].normal, scene.planes[0].offset]
    tensors += [scene.gravity, scene.mu, scene.restitution, scene.stiffness, scene.dissipation]
    tensors[4] = u.unsqueeze(1).expand(3, 2, 1, 6)
    others = [1, [-1], [], [0], 1, scene.dt, "compliant", 1, None, 1.0, 4, 0.0, 0.0, "active", None, 1e-3, 1.0]
    checks = ("test_schema", "test_faketensor")
    torch.library.opcheck(torch.ops.lcp._roll_out_scene.default, (tensors, *others), test_utils=checks)
    results = torch.ops.lcp._roll_out_scene(tensors, *others)
    gradients = [torch.ones_like(x) for x in results[:5]]
    torch.library.opcheck(torch.ops.lcp._roll_out_scene_adjoint.default, (gradients, tensors, *others), test_utils=checks)


def test_a_scene_of_one_body_knows_its_number_of_pairs():
    box, wall = RigidBody.box(1.0, (0.2, 0.2, 0.1)), Plane(numbers(1, 0, 0), numbers(0)[0], touches=(0,))
    own = Plane(numbers(0, 0, 1), numbers(0.05)[0], body=0)
    for planes in ([], [wall], [Plane.inclined(), wall, own]):
        scene = RigidScene([box], planes, dt=0.01, mu=0.3)
        assert scene._pairs == len(scene.contact_pairs()) == 8 * len([x for x in planes if x is not own])


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


# Rigid bodies


def test_a_ball_falls_and_rebounds():
    """From 0.2 m above the ground, e = 1/2: the height at the next apex is a quarter of it."""
    scene = RigidScene([RigidBody.ball(2.0, 0.1)], [Plane.inclined()], dt=0.002, mu=0.3, restitution=0.5)
    start = RigidState.at_rest(numbers(0, 0, 0.3).view(1, 3))
    rollout = scene.simulate(start, torch.zeros(300, 1, 6).double())
    assert (rollout.status == Status.SOLVED).all()
    fall = int(math.sqrt(2 * 0.2 / G) / 0.002)
    z = rollout.position_next[:, 0, 2]
    torch.testing.assert_close(rollout.velocity_next[fall - 2, 0, 2].item(), -(fall - 1) * 0.002 * G)
    assert z[fall + 1 :].max().item() - 0.1 == pytest.approx(0.05, rel=0.05)
    assert scene.energy(start).item() == pytest.approx(2 * G * 0.3)


def test_a_body_has_drag_and_a_scene_gravity_of_any_direction():
    scene = RigidScene([RigidBody(2.0, torch.eye(3).double(), torch.zeros(0, 3).double(), torch.zeros(0).double(), drag=4.0)],
                       [], dt=0.01, mu=0.0, gravity=(0.0, 2.0, 0.0))
    step = scene.step(BALL, torch.zeros(1, 6).double())
    assert step.velocity_next[0].tolist() == pytest.approx([3 * (1 - 4 * 0.01 / 2), 0.02, 0])
    assert step.gamma.shape == (0,) and scene.contact_pairs() == []


@pytest.mark.parametrize("formulation", ["exact_cone", "polyhedral", "compliant"])
def test_a_ball_slides_and_begins_to_roll(formulation):
    rollout = SCENE.simulate(BALL, torch.zeros(5, 1, 6).double(), formulation=formulation)
    assert (rollout.status == Status.SOLVED).all()
    friction, normal = rollout.gamma[:, :2].norm(dim=-1), rollout.gamma[:, 2]
    torch.testing.assert_close(friction, 0.3 * normal)
    v_x, spin = rollout.velocity_next[-1, 0, 0], rollout.angular_velocity_next[-1, 0].norm()
    assert v_x.item() == pytest.approx(3 - friction.sum().item() / 2)
    assert spin.item() == pytest.approx(friction.sum().item() / (0.4 * 2 * 0.1))
    if formulation != "compliant":
        assert v_x.item() == pytest.approx(3 - 0.3 * G * 0.05)


def test_the_gradient_of_a_scene_is_that_of_differences():
    velocity, mu, restitution, radius = (x.requires_grad_() for x in (
        numbers(3, 0.5, -2).view(1, 3), numbers(0.3), numbers(0.5), torch.tensor(0.1).double()))

    def end(velocity, mu, restitution, radius):
        scene = RigidScene([RigidBody.ball(2.0, radius)], [Plane.inclined()], dt=0.01, mu=mu, restitution=restitution)
        start = RigidState.at_rest(numbers(0, 0, 0.13).view(1, 3))._replace(velocity=velocity)
        rollout = scene.simulate(start, torch.zeros(4, 1, 6).double())
        return rollout.position_next, rollout.velocity_next, rollout.angular_velocity_next

    assert torch.autograd.gradcheck(end, (velocity, mu, restitution, radius))


def test_a_scene_is_the_operator_that_files_of_models_call():
    body, plane = SCENE.bodies[0], SCENE.planes[0]
    bodies = [[getattr(body, name)] for name in ("mass", "inertia", "centers", "radii", "drag")]
    contact = [getattr(SCENE, name) for name in ("gravity", "mu", "restitution", "stiffness", "dissipation")]
    u = torch.zeros(3, 1, 6).double()
    expected = torch.ops.lcp._simulate_bodies(
        *BALL, u, *bodies, [plane.normal], [plane.offset], *contact, SCENE.dt, formulation="exact_cone", substeps=2,
        directions=4, tolerance=1e-9)
    for got, x in zip(SCENE.simulate(BALL, u, substeps=2), expected, strict=True):
        assert torch.equal(got, x)


def test_a_box_touches_by_its_corners_and_carries_another():
    box = RigidBody.box(1.0, (0.2, 0.2, 0.1))
    assert box.centers.abs().amax(0).tolist() == pytest.approx([0.1, 0.1, 0.05]) and box.centers.shape == (8, 3)
    assert box.inertia.diagonal().tolist() == pytest.approx([0.05 / 12, 0.05 / 12, 0.08 / 12])
    top = Plane(numbers(0, 0, 1), numbers(0.05).squeeze(0), body=0, touches=(1,))
    scene = RigidScene([box, RigidBody.ball(2.0, 0.1)], [Plane.inclined(), top], dt=0.01, mu=0.5)
    start = RigidState.at_rest(numbers(0, 0, 0.05, 0, 0, 0.2).view(2, 3))
    pairs = scene.contact_pairs()
    assert sum(pair.touches_plane and pair.other_body == -1 for pair in pairs) == 9  # 8 corners and the ball
    on_top = [k for k, pair in enumerate(pairs) if pair.touches_plane and pair.other_body == 0]
    assert [pairs[k].body for k in on_top] == [1] and pairs[on_top[0]].other_index == 1
    contacts = scene.contacts(start)
    assert contacts.gap[on_top].item() == pytest.approx(0, abs=1e-12) and contacts.J.shape == (3 * len(pairs), 12)
    assert contacts.normal[on_top].tolist() == [pytest.approx([0, 0, 1])]
    step = scene.step(start, torch.zeros(2, 6).double())
    assert step.velocity_next.abs().max() < 1e-9
    assert step.gamma.view(-1, 3)[on_top, 2].item() == pytest.approx(0.02 * G)
    torch.testing.assert_close(scene.mass_matrix()[6:9, 6:9], 2 * torch.eye(3).double())


def test_options_of_a_scene_act():
    u = numbers(0, 0, 0, 0, 0, 0).view(1, 1, 6)
    fast = BALL._replace(velocity=numbers(3, 0, -1).view(1, 3))
    rebound = lambda **options: SCENE.simulate(fast, u, **options).velocity_next[0, 0, 2].item()
    assert rebound() > 0.3 and rebound(bounce_threshold=5.0) == pytest.approx(0)
    rotated = SCENE.simulate(BALL, u, formulation="polyhedral", directions=3, angle=0.5)
    assert rotated.velocity_next[0, 0, 1].abs() > 1e-4  # none of the three directions is opposite to the motion
    coarse = SCENE.simulate(BALL, u, substeps=4)
    torch.testing.assert_close(coarse.next.position[0], SCENE.simulate(BALL, u.expand(4, 1, 6)).next.position[-1])
    sunk = BALL._replace(position=numbers(0, 0, 0.09).view(1, 3))
    assert SCENE.simulate(sunk, u, stabilization=0.0).velocity_next[0, 0, 2].item() == pytest.approx(0, abs=1e-12)
    found = SCENE.certify(BALL, u, SCENE.simulate(BALL, u))
    assert found.residual.max() < 1e-9 and found.margin.shape == (1,) and found.unsolved == 0


def test_rotations():
    axis = numbers(0.3, -0.2, 0.5)
    q = physics.rotation_by(axis)
    angle = axis.norm()
    torch.testing.assert_close(q, torch.cat([(angle / 2).cos().view(1), (angle / 2).sin() * axis / angle]))
    R = physics.rotation_matrix(q)
    cross = torch.linalg.cross(axis.expand(3, 3), torch.eye(3).double()).T  # cross @ x = axis x x
    torch.testing.assert_close(R, torch.matrix_exp(cross))
    torch.testing.assert_close(R @ axis, axis)
    torch.testing.assert_close(physics.turned(numbers(1, 0, 0, 0), axis), q)
    more = numbers(0, 0, 0.1)
    torch.testing.assert_close(physics.rotation_between(q, physics.turned(q, more)), physics.rotation_by(more))
    assert physics.angle_between(numbers(1, 0, 0, 0), q).item() == pytest.approx(angle.item())


def test_a_body_free_of_torques_keeps_its_energy_and_momentum():
    inertia, omega = torch.diag(numbers(1.0, 2.0, 3.0)), numbers(0.3, 2.0, 0.1)
    after = physics.gyroscopic(omega, inertia, 0.1)
    L, L_after = inertia @ omega, inertia @ after
    assert (L_after @ after).item() == pytest.approx((L @ omega).item(), rel=1e-12)
    assert L_after.norm().item() == pytest.approx(L.norm().item(), rel=1e-12)
    middle = (omega + after) / 2
    torch.testing.assert_close(inertia @ (after - omega) / 0.1, torch.linalg.cross(inertia @ middle, middle))
