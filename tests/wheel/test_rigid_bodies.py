"""Rigid bodies of torchlcp.physics."""

import copy
import math
import pickle

import pytest
import torch
from systems import BALL, G, SCENE, numbers

from torchlcp import Feedback, Status, physics
from torchlcp.physics import Plane, RigidBody, RigidScene, RigidState


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


def test_velocities_of_samples_are_half_a_step_from_those_of_a_rollout():
    scene = RigidScene([RigidBody(1.0, torch.eye(3), torch.zeros(1, 3), torch.zeros(1))], [Plane.inclined()], 0.01, 0.3)
    start, u = RigidState.at_rest(numbers(0, 0, 0.2).view(1, 3)), torch.zeros(19, 1, 6).double()  # it lands after .202 s
    t = 0.01 * torch.arange(1, 20).double()
    rollout = scene.simulate(scene.at_mid_steps(start, u[0], formulation="polyhedral"), u)
    torch.testing.assert_close(rollout.position_next[:, 0, 2], 0.2 - G * t**2 / 2)
    torch.testing.assert_close(scene.at_samples(rollout.next, u).velocity[:, 0, 2], -G * t)
    with pytest.raises(TypeError, match="there is no option step"):
        scene.at_samples(start, u[0], step=1)


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


@pytest.mark.parametrize("formulation", ["exact_cone", "polyhedral"])
@pytest.mark.parametrize("mu", [0.0, [0.0, 0.3] * 4], ids=["smooth", "mixed"])
def test_smoothed_contact_without_friction_has_the_gradient_of_a_little_friction(formulation, mu):
    """In the state; in mu it is 0 there, since the friction may act along any direction."""
    start = RigidState.at_rest(numbers(0, 0, 0.06).view(1, 3))
    u = numbers(1, 0, 0, 0, 0.1, 0).view(1, 1, 6).expand(3, 1, 6)

    def gradient(mu):
        scene = RigidScene([RigidBody.box(1.0, (0.2, 0.2, 0.1))], [Plane.inclined()], dt=0.01, mu=mu)
        velocity = numbers(0.5, 0, -2).view(1, 3).requires_grad_()
        state = start._replace(velocity=velocity)
        found = scene.simulate(state, u, formulation=formulation, kappa=1e-4)
        return torch.autograd.grad(found.position_next[-1, 0].sum() + found.velocity_next[-1, 0].sum(), velocity)[0]

    found = gradient(mu)
    little = gradient([max(x, 1e-3) for x in mu] if isinstance(mu, list) else 1e-3)
    assert found.isfinite().all() and found.abs().max() > 0.1
    torch.testing.assert_close(found, little, rtol=0.02, atol=0.02)


def test_a_box_that_begins_in_the_ground_leaves_it_as_the_share_of_stabilization_says():
    """Its velocity stays: depth / dt for a share of 1."""
    scene = RigidScene([RigidBody.box(1.0, (0.1, 0.1, 0.1))], [Plane.inclined()], dt=0.01, mu=0.3)
    deep, u = RigidState.at_rest(numbers(0, 0, 0.0).view(1, 3)), torch.zeros(1, 6).double()
    for share in (0.0, 0.1, 1.0):
        step = scene.step(deep, u, stabilization=share)
        assert step.velocity_next[0, 2].item() == pytest.approx(share * 0.05 / 0.01, abs=1e-9)


def two_balls(radius):
    body = RigidBody(1.0, 0.01 * torch.eye(3).double(), torch.zeros(1, 3).double(), radius)
    return RigidScene([body, body], [Plane.inclined(0.0, -9.0)], 0.01, 0.3)


def two_states(distance, speed=0.0):
    position = numbers(0, 0, 0, distance, 0, 0).view(2, 3)
    velocity = numbers(speed, 0, 0, 0, 0, 0).view(2, 3)
    return RigidState(position, numbers(1, 0, 0, 0).expand(2, 4), velocity, torch.zeros(2, 3).double())


def test_pairs_are_those_of_radii_that_have_changed():
    radius = torch.zeros(1).double()
    scene = two_balls(radius)
    radius.fill_(0.2)
    found = scene.simulate(two_states(0.41, 10.0), torch.zeros(3, 2, 6).double())
    assert found.gamma.shape == (3, 9) and len(scene.contact_pairs()) == 3
    assert torch.allclose(found.velocity_next[-1, :, 0], numbers(5, 5))


def test_a_scene_without_pairs_can_be_compiled():
    scene = RigidScene([RigidBody.box(1.0, (0.1, 0.1, 0.1))] * 2, [], 0.01, 0.3)
    simulate = lambda u: scene.simulate(two_states(2.0), u).velocity_next
    u = torch.ones(2, 2, 6).double()
    assert torch.equal(torch.compile(simulate, fullgraph=True, backend="aot_eager")(u), simulate(u))


@pytest.mark.parametrize("options", [
    {"tolerance": float("nan")}, {"tolerance": 0.0}, {"kappa": -1.0}, {"formulation": "polyhedral", "directions": 2**32 + 4},
    {"formulation": "polyhedral", "angle": float("nan")}])
def test_options_out_of_range_are_named(options):
    with pytest.raises(RuntimeError, match=list(options)[-1]):
        two_balls(torch.full((1,), 0.2).double()).simulate(two_states(1.0), torch.zeros(1, 2, 6).double(), **options)


def error_of(reference, state):
    """The error that a feedback multiplies: of positions and orientations of all bodies, then of all velocities."""
    w, v = state.orientation[..., :1], state.orientation[..., 1:]
    w_ref, v_ref = reference.orientation[..., :1], reference.orientation[..., 1:]
    turn = w * v_ref - w_ref * v - torch.linalg.cross(v, v_ref)
    turn = 2 * torch.where((state.orientation * reference.orientation).sum(-1, True) < 0, -1, 1) * turn
    pose = torch.cat([reference.position - state.position, turn], -1)
    motion = torch.cat([reference.velocity - state.velocity, reference.angular_velocity - state.angular_velocity], -1)
    return torch.cat([pose.flatten(-2), motion.flatten(-2)], -1)


def two_bodies(rows, batch, seed=0):
    """A box that lands beside a ball, forces, and a feedback for each row."""
    generator = torch.Generator().manual_seed(seed)
    normal = lambda *shape: torch.randn(*shape, dtype=torch.float64, generator=generator)
    scene = RigidScene([RigidBody.box(1.0, (0.2, 0.2, 0.1)), RigidBody.ball(0.5, 0.1)], [Plane.inclined()], dt=0.01, mu=0.4)
    start = RigidState.at_rest(numbers(0, 0, 0.08, 0.5, 0, 0.15).view(2, 3) + 0.01 * normal(batch, 2, 3))
    reference = RigidState(start.position + 0.1 * normal(rows, batch, 2, 3), normal(rows, 1, 2, 4),
                           0.1 * normal(1, batch, 2, 3), 0.1 * normal(2, 3))
    K = normal(rows, batch, 12, 24) * numbers(1, 1, 1, 0.02, 0.02, 0.02).repeat(2).unsqueeze(-1)
    return scene, start, 0.5 * normal(rows, batch, 2, 6), Feedback(K, reference)


@pytest.mark.parametrize("substeps", [1, 2])
def test_a_feedback_is_that_of_a_loop_of_steps(substeps):
    rows, batch = 12, 3
    scene, start, u, (K, reference) = two_bodies(rows, batch)
    given = [x.requires_grad_() for x in (K, *reference, u, start.velocity)]

    def loop(K, position, orientation, velocity, angular_velocity, u, first):
        state = start._replace(velocity=first)
        at = RigidState(position, orientation / orientation.norm(dim=-1, keepdim=True), velocity, angular_velocity)
        ends = []
        for row in range(rows):
            now = RigidState(*(x if x.dim() == 2 else x[row % len(x)] for x in at))
            for _ in range(substeps):
                force = (K[row] * error_of(now, state).unsqueeze(-2)).sum(-1)
                state = scene.step(state, u[row] + force.unflatten(-1, (2, 6)), tolerance=1e-13).next
            ends.append(torch.cat(state, -1))
        return torch.stack(ends)

    def closed(K, *x):
        options = {"feedback": Feedback(K, RigidState(*x[:4])), "substeps": substeps, "tolerance": 1e-13}
        return torch.cat(scene.simulate(start._replace(velocity=x[5]), x[4], **options).next, -1)

    found, expected = closed(*given), loop(*given)
    # Velocities of several contacts of a body are accurate to about the root of the tolerance.
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    weights = torch.cos(torch.arange(found.numel())).view_as(found).double()
    for one, other in zip(torch.autograd.grad((found * weights).sum(), given),
                          torch.autograd.grad((expected * weights).sum(), given), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5 * other.abs().max().item())
    along = [torch.ones_like(x) for x in given]
    torch.testing.assert_close(torch.func.jvp(closed, tuple(given), tuple(along))[1],
                               torch.func.jvp(loop, tuple(given), tuple(along))[1], rtol=1e-4, atol=1e-4)


def test_a_feedback_turns_and_holds_a_box_in_the_air():
    scene = RigidScene([RigidBody.box(1.0, (0.2, 0.2, 0.1))], [Plane.inclined()], dt=0.01, mu=0.4)
    gains = torch.zeros(6, 12).double()
    for k, (stiffness, damping) in enumerate([(40.0, 9.0)] * 3 + [(0.4, 0.06)] * 3):
        gains[k, k], gains[k, 6 + k] = stiffness, damping
    half = numbers(0, 0, 1.2)
    turned = torch.cat([half.norm().cos().view(1), half / half.norm() * half.norm().sin()])
    reference = RigidState(numbers(0.3, 0, 0.5).view(1, 3), turned.view(1, 4), torch.zeros(1, 3).double(),
                           torch.zeros(1, 3).double())
    u = torch.zeros(600, 1, 6).double()
    u[..., 2] = G  # what gravity takes
    rollout = scene.simulate(RigidState.at_rest(numbers(0, 0, 0.05).view(1, 3)), u, feedback=Feedback(gains, reference))
    assert (rollout.status == Status.SOLVED).all()
    torch.testing.assert_close(rollout.position_next[-1], reference.position, atol=1e-6, rtol=0)
    assert physics.angle_between(rollout.orientation_next[-1, 0], turned).item() < 1e-6
    negative = Feedback(gains, reference._replace(orientation=-3 * reference.orientation))  # the same orientation
    again = scene.simulate(RigidState.at_rest(numbers(0, 0, 0.05).view(1, 3)), u, feedback=negative)
    torch.testing.assert_close(again.position_next, rollout.position_next)


def test_mistakes_in_a_feedback_are_named():
    scene, start, u, (K, reference) = two_bodies(4, 3)
    for feedback, message in (
        (Feedback(K[..., :23], reference), r"K must be \[12, 24\] or \[4, ..., 12, 24\]; got \[4, 3, 12, 23\]"),
        (Feedback(K[:2], reference), r"K must be .*; got \[2, 3, 12, 24\]"),
        (Feedback(K, reference._replace(velocity=numbers(0, 0, 0))), r"velocity of the reference must be .*; got \[3\]"),
    ):
        with pytest.raises(RuntimeError, match=message):
            scene.simulate(start, u, feedback=feedback)


def slide(scene, velocity=3.0, **options):
    """The velocity after a step on the ground."""
    state = BALL._replace(velocity=velocity * numbers(1, 0, 0).view(1, 3))
    return scene.step(state, torch.zeros(1, 6).double(), **options).velocity_next


def ball_with(mu, **others):
    return RigidScene([RigidBody.ball(2.0, 0.1)], [Plane.inclined()], dt=0.01, mu=mu, **others)


def change_in_place(mu):
    mu.mul_(2)


def change_by_numpy(mu):
    mu.numpy()[...] *= 2


def change_the_data(mu):
    mu.data = 2 * mu.data


@pytest.mark.parametrize("change", [change_in_place, change_by_numpy, change_the_data])
def test_a_scene_reads_its_tensors_at_every_step(change):
    mu = numbers(0.1)
    scene = ball_with(mu)
    first = slide(scene)
    torch.testing.assert_close(slide(scene), first, rtol=0, atol=0)
    change(mu)
    changed = slide(scene)
    torch.testing.assert_close(changed, slide(ball_with(0.2)), rtol=0, atol=0)
    assert (changed != first).any()
    mu.neg_()
    assert (scene.step(BALL, torch.zeros(1, 6).double()).status == Status.BAD_INPUT).all()


def test_a_scene_has_the_derivatives_that_are_asked_for_later():
    mu = numbers(0.1)
    scene = ball_with(mu)
    expected = torch.func.grad(lambda mu: slide(ball_with(mu)).sum())(mu)
    with torch.inference_mode():
        slide(scene)
    with torch.no_grad():
        slide(scene)
    torch.func.grad(lambda v: slide(scene, v).sum())(torch.tensor(3.0).double())
    mu.requires_grad_()
    for _ in range(2):
        torch.testing.assert_close(torch.autograd.grad(slide(scene).sum(), mu)[0], expected)
    mu.requires_grad_(False)
    assert not slide(scene).requires_grad
    with torch.autograd.forward_ad.dual_level():
        dual = ball_with(torch.autograd.forward_ad.make_dual(mu, torch.ones_like(mu)))
        tangent = torch.autograd.forward_ad.unpack_dual(slide(dual)).tangent
    torch.testing.assert_close(tangent.sum(), expected.squeeze())
    assert torch.func.vmap(lambda mu: slide(ball_with(mu)))(numbers(0.1, 0.2).unsqueeze(-1)).shape == (2, 1, 3)


def test_a_scene_takes_other_options_for_each_step():
    scene = ball_with(0.1, stiffness=1e5, dissipation=0.01)
    for options in ({}, {"formulation": "compliant"}, {"substeps": 2}, {}, {"formulation": "polyhedral"}):
        found = scene.step(BALL, torch.zeros(1, 6).double(), **options)
        expected = scene.simulate(BALL, torch.zeros(1, 1, 6).double(), **options)
        for got, x in zip(found, expected, strict=True):
            torch.testing.assert_close(got, x[0], rtol=0, atol=0)
    batch = RigidState(*(x.expand(2, 3, *x.shape) for x in BALL))
    for got, x in zip(scene.step(batch, torch.zeros(3, 1, 6)), scene.step(BALL, torch.zeros(1, 6)), strict=True):
        torch.testing.assert_close(got, x.expand(2, 3, *x.shape), rtol=0, atol=0)
    with pytest.raises(RuntimeError, match=r"stiffness must be \[..., 1\] or .*; got none"):
        ball_with(0.1).step(BALL, torch.zeros(1, 6).double(), formulation="compliant")
    for copied in (copy.deepcopy(scene), pickle.loads(pickle.dumps(scene))):
        torch.testing.assert_close(slide(copied), slide(scene), rtol=0, atol=0)


def test_the_pairs_of_several_bodies_follow_their_radii():
    radius = numbers(0.0, 0.0)
    points = [RigidBody(1.0, torch.eye(3).double() / 100, torch.zeros(1, 3).double(), r) for r in radius.split(1)]
    scene = RigidScene(points, [], dt=0.01, mu=0.1, gravity=(0.0, 0.0, 0.0))
    state = RigidState.at_rest(numbers(0, 0, 0, 0.1, 0, 0).view(2, 3))._replace(
        velocity=numbers(1, 0, 0, 0, 0, 0).view(2, 3))
    assert scene.step(state, torch.zeros(2, 6).double()).gamma.shape == (0,)
    radius.add_(0.048)
    assert (scene.step(state, torch.zeros(2, 6).double()).gamma[2].abs() > 0.1).all()
