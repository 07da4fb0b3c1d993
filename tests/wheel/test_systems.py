"""Each system of torchlcp.physics, against closed forms that are written here in other words, and the operators."""

import math

import pytest
import torch
from systems import BLOCK, FALLING, G, PARTICLE, PLANAR, POINT, SLIDING, SYSTEMS, TRIPOD, TURNING, U, UPON, V, leaf, numbers

import torchlcp
from torchlcp import Status, physics
from torchlcp.physics import CompliantGround, CompliantParticle, PointMass, SlidingBlock


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
