"""motion.png, and motion.gif or motion.mp4, of robots: simulate --robot FILE."""
import json

import numpy as np
from rigid import COLORS, CORNERS, FACES, RigidBodies, ball_mesh, matrices
from style import BLUE, GREY, PALE, TEAL, legend_above, plt, read_arrays, save

BALL, CAPSULE, CYLINDER, BOX, ELLIPSOID = range(5)  # the kinds of shapes.csv
JOINTS = len(COLORS)  # that have a colour of their own; the others are pale
ROUND = 12  # the meridians of what is round


def tube(rings):
    """Faces [faces, 4, 3] between rings (radius, height) about the z axis."""
    angles = np.linspace(0, 2 * np.pi, ROUND + 1)
    points = np.stack([np.stack([r * np.cos(angles), r * np.sin(angles), np.full_like(angles, z)], -1) for r, z in rings])
    return np.stack([points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]], -2).reshape(-1, 4, 3)


def mesh_of(kind, size):
    """The faces of a shape in its own axes."""
    radius, half = size[0], size[1]
    if kind == BOX:
        return 2 * CORNERS[np.array(FACES)] * size
    if kind == CAPSULE:
        turns = np.linspace(-np.pi / 2, np.pi / 2, 7)
        return tube([(radius * np.cos(a), radius * np.sin(a) + np.copysign(half, a)) for a in [*turns[:4], 1e-9, *turns[4:]]])
    if kind == CYLINDER:
        return tube([(0, -half), (radius, -half), (radius, half), (0, half)])
    return 2 * ball_mesh(ROUND, 7)[0] * (size if kind == ELLIPSOID else radius)


class Robot(RigidBodies):
    """A run: its flags, and the places of the bodies of its first trajectory, before the first step and after each."""

    def __init__(self, run):
        self.flags, self.metrics = (json.loads((run / f"{x}.json").read_text()) for x in ("config", "metrics"))
        self.rollout, self.round = True, True
        data, places, shapes = (read_arrays(run / f"{x}.csv") for x in ("data", "places", "shapes"))
        with open(run / "planes.csv") as stream:
            rows = stream.read().split()[1:]
        self.planes = np.array([[float(x) for x in row.split(",")] for row in rows]).reshape(-1, 4)
        self.columns = {name: x[data["trajectory"] == 0] for name, x in data.items()}
        bodies = int(places["body"].max()) + 1
        stacked = lambda names: np.stack([places[name].reshape(-1, bodies) for name in names], -1).swapaxes(0, 1)
        places_of_bodies = stacked("xyz")
        turns = stacked([f"r_{i}{j}" for i in "xyz" for j in "xyz"]).reshape(bodies, -1, 3, 3)
        # What the animation shows are the states after steps, as of other rigid bodies.
        self.positions, self.turns = places_of_bodies[:, 1:], turns[:, 1:]
        self.heights_of_bodies = self.positions[:, :, 2]
        self.dt = self.metrics["row"]
        self.time = self.dt * np.arange(1, 1 + self.positions.shape[1])
        of_steps = np.concatenate([self.positions, self.turns.reshape(*self.turns.shape[:2], 9)], axis=-1)
        self.solved = int(np.isfinite(of_steps).all(axis=(0, 2)).sum())
        if not self.solved:  # the start shows what may be wrong with it
            self.positions, self.turns, self.solved = places_of_bodies[:, :1], turns[:, :1], 1
        self.sizes = np.zeros((bodies, 3))
        self.shapes = []  # the body, the faces in its axes, and the colour
        for row in np.stack([shapes[name] for name in shapes], -1):
            body, kind = int(row[0]), int(row[1])
            faces = mesh_of(kind, row[2:5]) @ matrices(row[8:12]).T + row[5:8]
            self.shapes.append((body, faces, GREY if body < 0 else COLORS[body % len(COLORS)]))
            if body >= 0:
                self.sizes[body] = np.maximum(self.sizes[body], 2 * abs(faces).max(axis=(0, 1)))
        free = [joint["body"] for joint in self.metrics["joints"] if joint["kind"] == "free"]
        self.tracked = free or [bodies - 1]
        name = self.flags["robot"].replace("\\", "/").rsplit("/", 1)[-1]
        start = f", from the keyframe {self.flags['keyframe']}" * bool(self.flags["keyframe"])
        control = self.flags["control"].replace("\\", "/").rsplit("/", 1)[-1]
        self.title = f"{name}{start}, control: {control}\n$\\Delta t$ = {self.dt / self.flags['substeps']:g} s"

    def faces(self, k):
        all_faces, colors = [], []
        for body, own, color in self.shapes:
            faces = own if body < 0 else own @ self.turns[body, k].T + self.positions[body, k]
            across = np.cross(faces[:, 2] - faces[:, 0], faces[:, 3] - faces[:, 1])  # by the diagonals: faces may be triangles
            outward = np.sign((across * (faces.mean(axis=1) - faces.mean(axis=(0, 1)))).sum(-1, keepdims=True))
            all_faces.append(faces)
            colors.append(self.shaded(np.array(plt.matplotlib.colors.to_rgb(color)), across * outward))
        return np.concatenate(all_faces), np.concatenate(colors)

    def limits(self):
        if not self.shapes:
            return super().limits()
        shown = np.unique(np.linspace(0, self.solved - 1, 40).astype(int))
        corners = [(x.min(axis=(0, 1)), x.max(axis=(0, 1))) for x in (self.faces(k)[0] for k in shown)]
        low, high = np.min([a for a, _ in corners], axis=0), np.max([b for _, b in corners], axis=0)
        pad = 0.05 * (high - low).max()
        low, high = low - pad, high + pad
        width = (high - low).clip((high - low).max() / 3)
        return np.append((low + high)[:2] / 2, low[2] + width[2] / 2), width

    def rests(self):
        velocities = [x for name, x in self.columns.items() if self.is_velocity(name)]
        return (abs(np.array(velocities)) <= 1e-6).all(axis=0) & (self.columns["normal_force"] > 0)

    def is_velocity(self, name):
        turning = ("_omega_x", "_omega_y", "_omega_z")
        ends = {"free": ("_v_x", "_v_y", "_v_z", *turning), "ball": turning}
        return any(name == joint["name"] + end for joint in self.metrics["joints"] for end in ends.get(joint["kind"], ("_v",)))

    def joints(self, axes):
        """The coordinates of hinges and slides."""
        names = [joint["name"] for joint in self.metrics["joints"] if joint["kind"] in ("hinge", "slide")]
        for k, name in reversed(list(enumerate(names))):
            few = k < JOINTS
            axes.plot(self.time, self.columns[name], color=COLORS[k % len(COLORS)] if few else PALE, lw=1.1 if few else 0.6,
                      label=name if few else None)
        self.over_time(axes, "joints [rad or m]")
        if names:
            handles, labels = axes.get_legend_handles_labels()
            axes.legend(handles[::-1], labels[::-1], fontsize=6, ncol=2, loc="upper left", bbox_to_anchor=(1, 1.05),
                        handlelength=1)

    def heights(self, axes):
        """The heights of the free bodies, or else of all."""
        free = [joint["name"] for joint in self.metrics["joints"] if joint["kind"] == "free"]
        series = [(self.columns[name + "_z"], name) for name in free] or [(x, None) for x in self.heights_of_bodies]
        for k, (height, name) in enumerate(series):
            axes.plot(self.time, height, color=COLORS[k % len(COLORS)], lw=1.1, label=name if len(series) <= 3 else None)
        self.over_time(axes, "height [m]")

    def contact(self, axes):
        self.over_time(axes, "contact [N]", (self.columns["normal_force"], TEAL, "normal forces"))
        if self.metrics["weight"] > 0:
            axes.axhline(self.metrics["weight"], color=GREY, lw=0.9, ls=":", label="weight")
        other = axes.twinx()
        other.step(self.time, self.columns["touching"], color=BLUE, lw=0.6, alpha=0.6, where="pre")
        other.set_ylabel("contacts", color=BLUE, fontsize=8)
        other.grid(False)
        other.locator_params(axis="y", integer=True, nbins=4)
        legend_above(axes)
        weight, peak = self.metrics["weight"], np.nan_to_num(self.columns["normal_force"]).max()
        axes.set_ylim(0, min(1.2 * max(peak, weight), 20 * weight) if weight > 0 else 1.2 * peak or 1)
        axes.set_xlabel("time [s]")

    def draw(self):
        figure = plt.figure(figsize=(9.6, 5.2), layout="constrained")
        grid = figure.add_gridspec(3, 2, width_ratios=(1.25, 1), wspace=0.12)
        axes = figure.add_subplot(grid[:, 0], projection="3d")
        self.stage(axes)
        self.add_bodies(axes, self.solved - 1)
        for row, panel in enumerate((self.joints, self.heights, self.contact)):
            panel(figure.add_subplot(grid[row, 1]))
        figure.suptitle(self.title + "; grey: at rest" * bool(self.rests().any()), fontsize=9)
        save(figure, "motion")
