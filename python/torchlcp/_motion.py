"""Parameters of scenes of rigid bodies from recorded motion, for torchlcp.identification."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from torchlcp._arguments import TensorLike, as_tensor, as_tensors, call
from torchlcp._callbacks import numbered
from torchlcp.physics import RigidScene, RigidState
from torchlcp.physics._rigid import State, all_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from torchlcp.physics import RigidOptions


class MotionParameter(NamedTuple):
    """A parameter of a function that makes a scene.

    start: the value to begin with, a number or a tensor of any shape.
    range: "any"; "positive", > 0; "share", 0 to 1; or "positive_definite", a symmetric matrix.
    scale: a tenth of it is a small change: of the value, for "positive" of its logarithm, for "share" of its logit, and for
        "positive_definite" of the logarithm of the matrix.
    """

    start: TensorLike
    range: str = "any"
    scale: float = 1.0


class MotionScene(NamedTuple):
    """A scene, and how recordings see it.

    scene: with dt, s, the time between two samples of a recording.
    points: [B, 3], m, the recorded point of each body from its centre of mass, in the axes of the body; None: the centres
        of mass are recorded.
    length: m, a unit of length of the recordings; None: 1.
    """

    scene: RigidScene
    points: Tensor | None = None
    length: Tensor | None = None


class MotionProgress(NamedTuple):
    """How far fit_motion has come.

    refines: whether the part that searches by random windows has ended.
    done: the share of the part, 0 to 1.
    misfit: of the last minibatch, for the best start; NaN where refines.
    """

    refines: bool
    done: float
    misfit: float


class MotionStarts(NamedTuple):
    """The states at which windows of recordings begin.

    recording, sample: [windows], int64: which recording each is of, and the sample at which it begins.
    state: [windows, B, ...], of the recorded points in units of the recordings.
    """

    recording: Tensor
    sample: Tensor
    state: RigidState


class MotionFit(NamedTuple):
    """The result of fit_motion.

    scene: with the values that were found; its dt is that of a step, of which there are `substeps` between two samples.
    values: of each parameter by its name, tensors of the shapes of their starts, in SI units.
    low, high: the ends of their intervals of 95 %; infinite where the recordings do not see the value, NaN without intervals.
    bias: the values are too large by this through the length of the steps; NaN where they are not seen.
    misfit: the mean over two windows of each recording, see fit_motion.
    start_values, start_misfits: where the search ended from each start, tensors with [starts] in front, and [starts]; NaN
        where no window is solved.
    unsolved_windows: how many windows of the search were not solved.
    windows: where the two windows of each recording begin; with start_deviations, the states that were fitted.
    points: [B, 3], m, the recorded points from the centres of mass, or None.
    length: m, a unit of length of the recordings.
    """

    scene: RigidScene
    values: dict[str, Tensor]
    low: dict[str, Tensor]
    high: dict[str, Tensor]
    bias: dict[str, Tensor]
    misfit: float
    start_values: dict[str, Tensor]
    start_misfits: Tensor
    unsolved_windows: int
    windows: MotionStarts
    points: Tensor | None
    length: float


class LeastLengths(NamedTuple):
    """The result of least_lengths.

    theta: [p].
    covariance: [p, p], of the combinations of parameters that the residuals determine.
    std: [p], infinite for what they do not determine.
    step: [p], the next step without damping, which may not make the sum smaller.
    """

    theta: Tensor
    covariance: Tensor
    std: Tensor
    step: Tensor


Recording = RigidState | Sequence[TensorLike | None]


def least_lengths(
    residuals: Callable[[Tensor], Tensor],
    start: TensorLike,
    group: TensorLike,
    *,
    step: float = 0.02,
    max_iterations: int = 6,
) -> LeastLengths:
    """Parameters with the least sum of the lengths of residuals that are vectors, and their standard deviations.

    The steps are those of Levenberg and Marquardt for squares that are weighted by one over the lengths. Lengths count, not
    squares, so that residuals that are far off have little weight. Derivatives are differences over `step` on either side;
    vectors that change by more than 1 between the two sides, or are not finite, are left out of them.

    The covariance is H^-1 S H^-1: S is the sum over groups of the squares of the slopes of their sums, H the curvature of the
    whole sum. It is that which other groups of the same kind would cause, and knows nothing of what is wrong with the model.

        Weiszfeld: Sur le point pour lequel la somme des distances de n points donnes est minimum, Tohoku Mathematical Journal
        43, 1937.
        White: Maximum likelihood estimation of misspecified models, Econometrica 50, 1982.

    Args:
        residuals: from parameters [p] to [..., b, m, 3], vectors of three numbers in units in which 1 is a usual error.
        start: [p], float64.
        group: [b], int64, to which group residuals belong, from 0 on.
        step: of the differences.
        max_iterations: the largest number of steps.

    Raises:
        RuntimeError: a shape, dtype or option does not fit. Errors of residuals are passed on.
    """
    groups = group if isinstance(group, Tensor) else torch.as_tensor(group, dtype=torch.int64)
    with numbered(lambda tensors, _: [residuals(*tensors)]) as (function,):
        options = {"step": step, "max_iterations": max_iterations}
        return LeastLengths(*call("_least_lengths", function, start, groups, **options))


def motion_of_points(state: State, points: TensorLike) -> RigidState:
    """The motion of other points of bodies than their centres of mass.

    Args:
        state: of the centres of mass, tensors [..., B, k], see torchlcp.physics.RigidState.
        points: [..., B, 3], m, from the centres of mass, in the axes of the bodies.
    """
    return RigidState(*call("_motion_of_points", *as_tensors(**RigidState(*state)._asdict(), points=points)))


def with_velocities(position: TensorLike, orientation: TensorLike, dt: float) -> RigidState:
    """A recording with the velocities that follow from its poses.

    They are the differences from one sample to the next, at the later one, so that they are half a sample old. Each number
    is the median of the five around it, without those that are NaN. The first sample has those of the second.

    Args:
        position: [samples, B, 3], m; NaN: not measured.
        orientation: [samples, B, 4], quaternions (w, x, y, z); NaN: not measured.
        dt: s, the time between two samples.

    Raises:
        RuntimeError: a shape does not fit, or a quaternion is 0.
    """
    return RigidState(*call("_with_velocities", position, orientation, dt))


def _tensors_of(recording: Recording) -> list[Tensor]:
    names = RigidState._fields
    if len(recording) not in (2, 4):
        raise ValueError(f"a recording must be (position, orientation) or a RigidState; got {len(recording)} entries")
    given = [*recording, *(4 - len(recording)) * [None]]
    none = torch.zeros(0, dtype=torch.float64)
    return [none if x is None else as_tensor(name, x) for name, x in zip(names, given, strict=True)]


def _by_name(names: Sequence[str], starts: Sequence[Tensor], values: Tensor) -> dict[str, Tensor]:
    parts = values.split([start.numel() for start in starts], -1)
    return {
        name: part.reshape((*values.shape[:-1], *start.shape))
        for name, start, part in zip(names, starts, parts, strict=True)
    }


def fit_motion(
    scene: RigidScene | Callable[..., RigidScene | MotionScene],
    recordings: Sequence[Recording],
    parameters: Sequence[str] | Mapping[str, MotionParameter | TensorLike],
    *,
    iterations: int = 400,
    learning_rate: float = 0.1,
    window: int = 80,
    batch: int = 64,
    starts: int = 1,
    spread: float = 0.5,
    seed: int = 0,
    intervals: bool = True,
    position_unit: float | None = None,
    rotation_unit: float = 0.27,
    jump: float | None = None,
    velocity_age: float | None = None,
    start_deviations: Sequence[float] | None = None,
    progress: Callable[[MotionProgress], object] | None = None,
    **options: Unpack[RigidOptions],
) -> MotionFit:
    """Parameters of a scene of rigid bodies from recorded motion.

    First Adam minimises the misfit of random windows of the recordings: of a quarter of the length in the first 40 % of the
    iterations, whose misfit is smoother in the parameters, then whole ones. Several starts are one batch, of which the best
    goes on. Then steps of Levenberg and Marquardt (least_lengths) minimise the misfit of two fixed windows of each recording.
    A window begins where all coordinates were measured and no impact is near.

    The misfit is the mean over the steps of |position error| / position_unit + 2 sin(angle / 2) / rotation_unit. Lengths
    count, not their squares, so that a body that falls onto another face counts for no more than its error.

    The intervals are the larger of what other recordings would change at the minimum and, from 16 recordings on, of the
    scatter of fits to four to eight parts of them; the bias of the time steps, by a fit with steps of half the length, is
    added. They know nothing of what the model leaves out. An end is infinite where the recordings do not see the value: motion
    under gravity and friction does not tell the mass, only inertia over mass.

        scene = RigidScene([RigidBody.box(1.0, (0.1, 0.1, 0.1))], [Plane.inclined()], dt=1 / 148, mu=0.3, restitution=0.2)
        fit = fit_motion(scene, recordings, ["mu", "restitution", "bodies[0].moments"])
        print(fit.values["mu"], fit.low["mu"], fit.high["mu"])

    Args:
        scene: with dt, s, the time between two samples. Or a function of the parameters by their names, tensors of the shapes
            of their starts, that returns a RigidScene or a MotionScene, with operations that autograd knows; the bodies and
            planes are the same for all values.
        recordings: (position [samples, B, 3], orientation [samples, B, 4]), or with velocities a RigidState; of any number of
            samples each. NaN: not measured. Velocities that are missing are those of with_velocities.
        parameters: the names of what is fitted, or for a function of parameters where each begins, a MotionParameter or a
            value. The names are
            mu, restitution, stiffness, dissipation: as many numbers as the scene has;
            gravity: m/s^2, its size; the direction is that of the scene;
            length: m, a unit of length of the recordings, which begins at 1;
            bodies[k].mass, .drag, .inertia [3, 3], .centers and .radii of the balls;
            bodies[k].moments: [3], the principal moments of inertia; the axes are those of the scene;
            bodies[k].radius: that of all balls of a body;
            bodies[k].size: the factor of the centres and, unless they are parameters, the radii;
            bodies[k].point: [3], m, the recorded point from the centre of mass, which begins at 0; the centres of the balls
            in the scene are those from this point;
            planes[k].height: m, along the normal, which begins at 0;
            planes[k].tilt: [2], the slopes along two tangents, for a level plane x and y, which begin at 0.
        iterations: of Adam.
        learning_rate: of Adam, for numbers of which a change of .1 is small.
        window: the steps of the longest windows, >= 2.
        batch: recordings of a minibatch.
        starts: the first is that of the parameters, the others are random ones around it.
        spread: the standard deviation of these, in the numbers of learning_rate.
        seed: in [0, 2^32). The same recordings, options and seed give the same bits, whatever the number of threads.
        intervals: False: only the search.
        position_unit: m, an error of a position that counts 1. None: .12 of the mean size of the bodies.
        rotation_unit: rad, the same of an orientation.
        jump: m/s: velocities that change by more from one sample to the next show an impact. None: three times the speed that
            gravity gives between two samples.
        velocity_age: samples, how much older the recorded velocities are than the positions of their samples: .5 where they
            are differences from one sample to the next, 0 where they were measured at the samples. None: that of a rollout,
            half a step; where no recording has velocities, .5, as with_velocities makes them.
        start_deviations: the standard deviations of the errors of recorded positions, orientations (rad), velocities and
            angular velocities (rad/s). With them, the states at which the windows of the second part begin are fitted, too.
        progress: called with MotionProgress. What it raises ends the fit.
        options: see torchlcp.physics.RigidOptions; substeps, 2 by default, are the steps between two samples.

    Raises:
        RuntimeError: a shape, name or option does not fit, or no window is solved at any start. Errors of progress and of the
            function are passed on.
        ValueError: parameters do not fit the scene.
    """
    rollouts = all_options({"substeps": 2, **options})
    given: dict[str, MotionParameter] = {}
    if isinstance(scene, RigidScene):
        if isinstance(parameters, (str, Mapping)):
            raise ValueError("parameters must be a list of names for a scene, or scene a function of the parameters")
        first = MotionScene(scene)
    else:
        if not isinstance(parameters, Mapping):
            raise ValueError("parameters must be a dictionary of starts where scene is a function of them")
        given = {k: x if isinstance(x, MotionParameter) else MotionParameter(x) for k, x in parameters.items()}
    names = list(parameters)
    first_values = {k: as_tensor(k, x.start).to(torch.float64) for k, x in given.items()}

    def scene_at(values: dict[str, Tensor]) -> MotionScene:
        assert not isinstance(scene, RigidScene)
        made = scene(**values)
        return made if isinstance(made, MotionScene) else MotionScene(made)

    if given:
        first = scene_at(first_values)

    def tensors_at(tensors: list[Tensor], _: int) -> list[Tensor]:
        made = scene_at(_by_name(names, list(first_values.values()), tensors[0]))
        none = torch.zeros(0, dtype=torch.float64)
        more = [none if x is None else as_tensor("points or length", x) for x in (made.points, made.length)]
        return [*made.scene._tensors, *more]

    def tell(tensors: list[Tensor], refines: int) -> list[Tensor]:
        if progress is not None:
            progress(MotionProgress(bool(refines), *tensors[0].tolist()))
        return []

    with numbered(tensors_at, tell) as (making, telling):
        found = torch.ops.lcp._fit_motion(
            first.scene._tensors,
            *first.scene._structure,
            first.scene.dt,
            [x for recording in recordings for x in _tensors_of(recording)],
            names,
            making if given else None,
            list(first_values.values()),
            [x.range for x in given.values()],
            [float(x.scale) for x in given.values()],
            iterations=iterations,
            learning_rate=learning_rate,
            window=window,
            batch=batch,
            starts=starts,
            spread=spread,
            seed=seed,
            intervals=intervals,
            position_unit=position_unit,
            rotation_unit=rotation_unit,
            jump=jump,
            velocity_age=velocity_age,
            start_deviations=None if start_deviations is None else [float(x) for x in start_deviations],
            progress=None if progress is None else telling,
            **rollouts,
        )
    *numbers, misfit, start_values, start_misfits, unsolved, recording, sample, p, q, v, w, shapes, tensors = found
    *of_scene, points, length = tensors
    values, low, high, bias = (_by_name(names, shapes, x) for x in numbers[1:])
    return MotionFit(
        scene=first.scene._with_tensors(of_scene, first.scene.dt / rollouts["substeps"]),
        values=values,
        low=low,
        high=high,
        bias=bias,
        misfit=misfit,
        start_values=_by_name(names, shapes, start_values),
        start_misfits=start_misfits,
        unsolved_windows=unsolved,
        windows=MotionStarts(recording, sample, RigidState(p, q, v, w)),
        points=points if points.numel() else None,
        length=length.item() if length.numel() else 1.0,
    )
