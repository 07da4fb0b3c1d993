"""torchlcp.identification.fit_motion: scenes of rigid bodies from recorded motion, without a compiler."""

import math
import pathlib

import pytest
import torch

from torchlcp.identification import (
    MotionParameter, MotionProgress, MotionScene, fit_motion, least_lengths, motion_of_points, with_velocities,
)
from torchlcp.physics import Plane, RigidBody, RigidScene, RigidState, rotation_by, turned

CUBE_TOSSES = pathlib.Path(__file__).parents[3] / "shared" / "data" / "cube_tosses"
DT, STEPS = 0.01, 32
NAMES = ["mu", "restitution", "bodies[0].moments"]
QUICK = {"iterations": 60, "window": STEPS, "batch": 16}


def numbers(*x):
    return torch.tensor(x, dtype=torch.float64)


def box_scene(mu, restitution, moments, dt=DT, bodies=1):
    box = RigidBody.box(1.0, (0.1, 0.14, 0.06))
    box = RigidBody(1.0, torch.diag(numbers(*moments)), box.centers, box.radii)
    return RigidScene(bodies * [box], [Plane.inclined()], dt, mu, restitution)


TRUTH = (0.25, 0.3, (2e-3, 1.2e-3, 2.6e-3))
START = box_scene(0.5, 0.15, 3 * (1.5e-3,))


def throws(count, bodies=1, seed=0):
    random = torch.Generator().manual_seed(seed)
    normal = lambda size: torch.randn(count, bodies, size, generator=random, dtype=torch.float64)
    position = 0.02 * normal(3) + numbers(0, 0, 0.13) + 0.4 * torch.arange(bodies).unsqueeze(-1) * numbers(1, 0, 0)
    q = normal(4)
    velocity = normal(3) * numbers(0.8, 0.8, 0.2)
    return RigidState(position, q / q.norm(dim=-1, keepdim=True), velocity, 3 * normal(3))


def recorded(count, bodies=1, noise=1e-4, **options):
    """Recordings of the true box by a camera with noise, two steps a sample."""
    first = throws(count, bodies)
    scene = box_scene(*TRUTH, DT / 2, bodies)
    rollout = scene.simulate(first, torch.zeros(STEPS, bodies, 6).double(), substeps=2, **options)
    assert not rollout.status.any()
    random = torch.Generator().manual_seed(1)
    recordings = []
    for k in range(count):
        position, orientation, velocity, omega = (
            torch.cat([x.unsqueeze(0), y])[:, k] for x, y in zip(first, rollout.next, strict=True)
        )
        error = torch.randn(2, *position.shape, generator=random, dtype=torch.float64)
        recordings.append(
            RigidState(position + noise * error[0], turned(orientation, 10 * noise * error[1]), velocity, omega)
        )
    return recordings


@pytest.fixture(scope="module")
def recordings():
    return recorded(16)


def test_a_box_is_found_by_the_names_of_its_parameters(recordings):
    fit = fit_motion(START, recordings, NAMES, **QUICK)
    assert fit.values["mu"].shape == (1,) and fit.values["bodies[0].moments"].shape == (3,)
    for name, truth, error in zip(NAMES, TRUTH, (0.02, 0.08, 4e-4), strict=True):
        assert (fit.values[name] - torch.as_tensor(truth)).abs().max() < error, name
        assert (fit.low[name] < fit.values[name]).all() and (fit.values[name] < fit.high[name]).all(), name
        assert fit.bias[name].isfinite().all()
    assert isinstance(fit.scene, RigidScene) and fit.scene.dt == DT / 2
    assert torch.equal(fit.scene.mu, fit.values["mu"]) and fit.points is None and fit.length == 1
    assert fit.unsolved_windows == 0 and fit.start_values["mu"].shape == (1, 1)
    # The scene rolls out as a simulation of one's own does: a row of u for each sample.
    first = RigidState(*(x[0] for x in recordings[0]))
    path = fit.scene.simulate(first, torch.zeros(8, 1, 6).double(), substeps=2).position_next
    assert (path - recordings[0].position[1:9]).norm(dim=-1).max() < 0.01


def test_a_function_of_parameters_makes_the_scene(recordings):
    """The same box, with another parametrisation, and with rotations of the axes of inertia and the recorded point."""
    box = RigidBody.box(1.0, (0.1, 0.14, 0.06))
    point = numbers([0.01, 0.0, -0.02])
    seen = [motion_of_points(x, point) for x in recordings]

    def scene(mu, log_inertia, point, tilt):
        body = RigidBody(1.0, torch.diag(log_inertia.exp()), box.centers, box.radii)
        slope = torch.stack([-tilt, torch.zeros_like(tilt), torch.ones_like(tilt)])
        plane = Plane(slope / slope.norm(), torch.zeros((), dtype=torch.float64))
        return MotionScene(RigidScene([body], [plane], DT, mu, 0.3), points=point.unsqueeze(0))

    parameters = {
        "mu": MotionParameter(0.4, "positive"),
        "log_inertia": numbers(1.5e-3, 1.5e-3, 1.5e-3).log(),
        "point": MotionParameter(torch.zeros(3), scale=0.01),
        "tilt": MotionParameter(0.0, scale=0.05),
    }
    fit = fit_motion(scene, seen, parameters, **QUICK)
    assert fit.values["mu"] == pytest.approx(0.25, abs=0.02) and fit.values["mu"].shape == ()
    assert (fit.values["point"] - point[0]).abs().max() < 2e-3
    assert (fit.values["log_inertia"].exp() - numbers(*TRUTH[2])).abs().max() < 4e-4
    assert fit.low["tilt"] < 0.005 and fit.high["tilt"] > -0.005
    assert torch.equal(fit.points, fit.values["point"].unsqueeze(0))
    assert torch.equal(fit.scene.mu, fit.values["mu"].unsqueeze(0))


def test_what_recordings_do_not_see_has_no_bounds(recordings):
    fit = fit_motion(box_scene(*TRUTH), recordings, ["mu", "bodies[0].mass", "bodies[0].moments"], iterations=10, window=STEPS)
    assert fit.high["mu"].isfinite().all()
    for name in ("bodies[0].mass", "bodies[0].moments"):
        assert fit.low[name].isneginf().all() and fit.high[name].isposinf().all() and fit.bias[name].isnan().all()


def test_recordings_may_be_incomplete_and_of_any_length(recordings):
    cut = []
    for k, (position, orientation, _, _) in enumerate(recordings):
        position, orientation = position[: STEPS + 1 - k].clone(), orientation[: STEPS + 1 - k].clone()
        position[10:12] = math.nan  # nothing was measured
        orientation[10:12] = math.nan
        position[14:17, 0, 1] = math.nan  # one coordinate was not
        cut.append((position, orientation) if k % 2 else (position.tolist(), orientation.numpy()))
    fit = fit_motion(START, cut, NAMES, **QUICK)
    assert fit.values["mu"] == pytest.approx(0.25, abs=0.04)
    assert all(x.isfinite().all() for x in fit.high.values())


@pytest.mark.parametrize("formulation", ["exact_cone", "polyhedral", "compliant"])
def test_several_bodies_and_each_formulation(formulation):
    options = {"formulation": formulation, "directions": 8} if formulation == "polyhedral" else {"formulation": formulation}
    compliance = {"stiffness": 4000.0, "dissipation": 0.02} if formulation == "compliant" else {}
    first = throws(6, 2)
    make = lambda mu, dt: RigidScene(box_scene(*TRUTH, dt, 2).bodies, [Plane.inclined()], dt, mu, 0.3, **compliance)
    rollout = make(0.25, DT / 2).simulate(first, torch.zeros(STEPS, 2, 6).double(), substeps=2, **options)
    recordings = [RigidState(*(torch.cat([x[None], y])[:, k] for x, y in zip(first, rollout.next))) for k in range(6)]
    fit = fit_motion(make(0.4, DT), recordings, ["mu"], iterations=30, window=20, **options)
    assert fit.values["mu"] == pytest.approx(0.25, abs=0.05)


def test_starts_progress_and_seeds(recordings):
    told = []
    options = {"iterations": 4, "window": 12, "starts": 3, "intervals": False}
    fit = fit_motion(START, recordings, NAMES, progress=told.append, **options)
    assert [x.refines for x in told] == 4 * [False] and told[-1].done == 1 and isinstance(told[0], MotionProgress)
    assert fit.start_values["bodies[0].moments"].shape == (3, 3) and fit.start_misfits.shape == (3,)
    best = fit.start_misfits.argmin()
    assert torch.equal(fit.values["mu"], fit.start_values["mu"][best]) and fit.low["mu"].isnan().all()
    again, other = (fit_motion(START, recordings, NAMES, seed=seed, **options) for seed in (0, 1))
    assert torch.equal(again.start_values["mu"], fit.start_values["mu"])
    assert not torch.equal(other.start_values["mu"], fit.start_values["mu"])

    def stop(now):
        raise KeyError(now.done)

    with pytest.raises(KeyError):
        fit_motion(START, recordings, NAMES, progress=stop, **options)


def test_starts_of_windows_are_fitted(recordings):
    options = {"iterations": 4, "window": 12}
    found = [fit_motion(START, recordings, ["mu"], **options, start_deviations=x) for x in (None, (5e-4, 5e-3, 0.02, 0.1))]
    assert found[1].misfit < found[0].misfit
    for fit, same in zip(found, (True, False), strict=True):
        windows = fit.windows
        assert windows.recording.tolist() == [k // 2 for k in range(32)] and windows.state.velocity.shape == (32, 1, 3)
        recorded = torch.stack([recordings[k].velocity[j] for k, j in zip(windows.recording, windows.sample, strict=True)])
        assert torch.equal(windows.state.velocity, recorded) is same
        assert (windows.state.velocity - recorded).abs().max() < 0.1


def test_velocities_follow_from_poses():
    time = DT * torch.arange(20).double().view(-1, 1, 1)
    omega = numbers(1.0, -2.0, 0.5)
    motion = with_velocities((time * numbers(1, 2, 3)).tolist(), rotation_by(time * omega), DT)
    assert torch.allclose(motion.velocity, numbers(1, 2, 3).expand(20, 1, 3))
    assert torch.allclose(motion.angular_velocity, omega.expand(20, 1, 3))


def test_motion_of_points_has_derivatives():
    first = throws(2)
    point = numbers([0.01, -0.02, 0.03]).requires_grad_()
    inputs = (*(x.clone().requires_grad_() for x in first), point)
    function = lambda *x: motion_of_points(x[:4], x[4])[::2]
    assert torch.autograd.gradcheck(function, inputs) and torch.autograd.gradgradcheck(function, inputs)


def test_least_lengths_of_residuals_of_ones_own():
    random = torch.Generator().manual_seed(0)
    J = torch.randn(120, 1, 3, 2, generator=random, dtype=torch.float64)
    noise = 0.3 * torch.randn(120, 1, 3, generator=random, dtype=torch.float64)
    residuals = lambda theta: J @ theta - J @ numbers(1, -2) - noise
    found = least_lengths(residuals, [0.0, 0.0], torch.arange(120) // 2, max_iterations=20)
    assert ((found.theta - numbers(1, -2)).abs() < 4 * found.std).all() and (found.std < 0.1).all()
    assert torch.allclose(found.covariance.diagonal().sqrt(), found.std)


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"parameters": ["weight"]}, RuntimeError, "parameters must name mu, restitution, .* got weight"),
        ({"parameters": []}, RuntimeError, "parameters must name at least one parameter"),
        ({"parameters": "mu"}, ValueError, "parameters must be a list of names for a scene"),
        ({"scene": lambda mu: START}, ValueError, "parameters must be a dictionary of starts"),
        ({"recordings": []}, RuntimeError, "recordings must have at least one recording"),
        ({"recordings": [(numbers(1.0),)]}, ValueError, "a recording must be .position, orientation."),
        ({"recordings": [(torch.zeros(5, 3), torch.ones(5, 4))]}, RuntimeError, r"position of a recording must be \[samples"),
        ({"window": 1}, RuntimeError, "window must be >= 2; got 1"),
        ({"start_deviations": [1.0]}, RuntimeError, "start_deviations must be four numbers; got 1"),
        ({"substeps": 0}, RuntimeError, "substeps must be >= 1; got 0"),
        ({"speed": 0}, TypeError, "there is no option speed"),
        (
            {"scene": lambda mu: START, "parameters": {"mu": MotionParameter(0.3, "small")}},
            RuntimeError,
            "the range of mu must be any, positive, share or positive_definite; got small",
        ),
    ],
)
def test_mistakes_are_named(recordings, change, error, message):
    arguments = {"scene": START, "recordings": recordings, "parameters": ["mu"]} | change
    with pytest.raises(error, match=message):
        fit_motion(arguments.pop("scene"), arguments.pop("recordings"), arguments.pop("parameters"), **arguments)


def read_tosses(count):
    """Recordings of the public cube in metres, as torch.save of an early PyTorch wrote them."""
    tosses = []
    for path in sorted(CUBE_TOSSES.glob("*.pt"), key=lambda path: int(path.stem))[:count]:
        x = torch.load(path)[0]  # position, quaternion, velocity and angular velocity, lengths in half widths of the cube
        position, orientation, velocity, omega = x[:, :13].unsqueeze(1).split([3, 4, 3, 3], -1)
        tosses.append(RigidState(0.0524 * position, orientation, 0.0524 * velocity, omega))
    return tosses


def cube(mu, restitution, side, center, rounding, inertia, tilt, gravity, drag):
    """A cube with rounded corners, as docs/tosses.md describes it."""
    signs = torch.cartesian_prod(*3 * [numbers(-1, 1)])
    body = RigidBody(1.0, torch.diag(inertia), center + (side / 2 - rounding) * signs, rounding.expand(8), drag)
    slope = torch.cat([-tilt, numbers(1)])
    down = gravity * numbers(0, 0, -1)
    plane = Plane(slope / slope.norm(), numbers(0)[0])
    return MotionScene(RigidScene([body], [plane], 1 / 148, mu, restitution, down), points=center.unsqueeze(0))


CUBE_START = {
    "mu": MotionParameter(0.4, "positive"),
    "restitution": MotionParameter(0.125, "share"),
    "side": MotionParameter(0.098, "positive", 0.1),
    "center": MotionParameter(torch.zeros(3), scale=0.01),
    "rounding": MotionParameter(0.002, "positive"),
    "inertia": MotionParameter(torch.full((3,), 1.62e-3), "positive"),
    "tilt": MotionParameter(torch.zeros(2), scale=0.05),
    "gravity": MotionParameter(9.81, "positive", 0.1),
    "drag": MotionParameter(0.03, "positive"),
}


@pytest.mark.skipif(not CUBE_TOSSES.exists(), reason="the recorded tosses are not here")
def test_a_real_cube_is_learned_without_programs():
    """The parameters are near those that train_tosses learns from 256 tosses (docs/tosses.md), from 16 of them."""
    fit = fit_motion(cube, read_tosses(16), CUBE_START, iterations=100, window=50, batch=16, velocity_age=0.5)
    for name, value, error in (
        ("mu", 0.174, 0.015), ("side", 0.1035, 0.003), ("center", numbers(0, 0, -0.006), 0.003), ("gravity", 9.63, 0.6),
        ("inertia", 2.65e-3, 5e-4), ("restitution", 0.19, 0.1),
    ):
        assert (fit.values[name] - value).abs().max() < error, (name, fit.values[name])
    assert fit.values["center"][2] < -0.003
    assert fit.low["mu"] < fit.values["mu"] < fit.high["mu"] and fit.high["mu"] - fit.low["mu"] < 0.2
    assert fit.unsolved_windows == 0
