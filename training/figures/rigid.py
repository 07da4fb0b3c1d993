"""motion.png, and motion.gif or motion.mp4, of rigid bodies in three dimensions: simulate --system cube and others."""
import csv
import json
import math

import numpy as np
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection
from style import BLUE, GREY, INK, PALE, STICKING, TEAL
from style import frames, legend_above, plt, save, shade, speed_text

COLORS = ["#5b8fcf", "#e0a15a", "#57b8a8", "#b48ead", "#c9c46b", "#d77a7a", "#8fa3b8"]
FACES = [(0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5)]
CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
LIGHT = np.array([0.35, -0.5, 0.8]) / np.linalg.norm([0.35, -0.5, 0.8])
SEEN = (20, -60)  # elevation and azimuth of the view, degrees
BEHIND, PATHS, BODIES, BEFORE = range(4)  # the order of drawing: planes, paths, bodies, planes


def matrices(q):
    """The rotation matrices [..., 3, 3] of quaternions [..., 4]."""
    w, x, y, z = np.moveaxis(q / np.linalg.norm(q, axis=-1, keepdims=True), -1, 0)
    rows = [[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def ball_mesh(meridians=16, parallels=9):
    """The faces [faces, 4, 3] of a sphere of diameter 1, and which of them are painted, so that one sees it turn."""
    across, down = np.linspace(0, 2 * np.pi, meridians + 1), np.linspace(0, np.pi, parallels + 1)
    points = 0.5 * np.stack([np.outer(np.sin(down), np.cos(across)), np.outer(np.sin(down), np.sin(across)),
                             np.outer(np.cos(down), np.ones_like(across))], -1)
    faces = np.stack([points[:-1, :-1], points[:-1, 1:], points[1:, 1:], points[1:, :-1]], -2)
    painted = np.broadcast_to((np.arange(meridians) // (meridians // 4)) % 2 == 0, faces.shape[:2])
    return faces.reshape(-1, 4, 3), painted.ravel()


def within(start, direction, planes):
    """The part of the line from `start` along `direction` that no plane (normal, offset) is above: its ends, or None."""
    low, high = -np.inf, np.inf
    for plane in planes:
        height, climb = plane[:3] @ start - plane[3], plane[:3] @ direction
        if abs(climb) < 1e-9:
            if height < -1e-9:
                return None
        elif climb > 0:
            low = max(low, -height / climb)
        else:
            high = min(high, -height / climb)
    return np.stack([start + low * direction, start + high * direction]) if low < high else None


def net(plane, others, middle, size, lines=9):
    """Lines in a plane, above all other planes, about `size` around the middle."""
    across = np.cross(plane[:3], (0, 1, 0) if abs(plane[1]) < 0.9 else (1, 0, 0))
    across /= np.linalg.norm(across)
    along = np.cross(plane[:3], across)
    start = middle - (plane[:3] @ middle - plane[3]) * plane[:3]
    drawn = (within(start + step * aside, direction, others) for aside, direction in ((across, along), (along, across))
             for step in np.linspace(-size, size, lines))
    return [line for line in drawn if line is not None]


def edges(planes, box):
    """The lines in which two of the planes meet, above all others and in the box."""
    drawn = []
    for k, plane in enumerate(planes):
        for other in planes[:k]:
            direction = np.cross(plane[:3], other[:3])
            if np.linalg.norm(direction) > 1e-9:
                start = np.linalg.lstsq(np.stack([plane[:3], other[:3]]), np.array([plane[3], other[3]]), rcond=None)[0]
                drawn.append(within(start, direction, [x for x in planes if x is not plane and x is not other] + box))
    return [line for line in drawn if line is not None]


class RigidBodies:
    """A run: its flags, and the positions and orientations of its first trajectory, [bodies, steps + 1, ...]."""

    def __init__(self, run):
        self.flags, self.metrics = (json.loads((run / f"{x}.json").read_text()) for x in ("config", "metrics"))
        self.rollout = not self.flags["inputs"]
        with open(run / "data.csv") as stream:
            rows = csv.DictReader(stream)
            names = rows.fieldnames
            kept = [[float(x) for x in row.values()] for row in rows if not self.rollout or float(row["trajectory"]) == 0]
        self.columns = dict(zip(names, np.array(kept).T))
        with open(run / "bodies.csv") as stream:
            shapes = list(csv.DictReader(stream))
        self.sizes = np.array([[float(shape[f"size_{x}"]) for x in "xyz"] for shape in shapes])
        with open(run / "planes.csv") as stream:
            self.planes = np.array([[float(x) for x in row.values()] for row in csv.DictReader(stream)])
        self.round = self.flags["system"] in ("rolling", "spheres")
        ends = ["" if len(shapes) == 1 else f"_{b}" for b in range(len(shapes))]
        self.positions, self.quaternions, self.velocities = (
            np.stack([np.stack([self.columns[name + end] for name in names], -1) for end in ends])
            for names in (("x", "y", "z"), ("q_w", "q_x", "q_y", "q_z"), ("v_x", "v_y", "v_z")))
        self.solved = int(np.isfinite(self.positions[0, :, 0]).sum())
        self.dt = self.flags["dt"]
        self.time = self.dt * np.arange(1, 1 + self.positions.shape[1])
        names = {"exact_cone": "exact friction cone", "polyhedral": f"{self.flags['directions']} directions of friction",
                 "compliant": "compliant contact"}
        title = f"{self.flags['system'].capitalize()}, {names[self.flags['formulation']]}"
        parameters = [f"$\\mu$ = {self.flags['mu']:g}", f"restitution {self.flags['restitution']:g}",
                      f"$\\Delta t$ = {self.dt:g} s"]
        if self.flags["formulation"] == "compliant":
            parameters[1] = f"$k$ = {self.flags['stiffness']:g} N/m"
        self.title = f"{title}\n{', '.join(parameters)}"
        self.tracked = range(len(self.sizes))  # the bodies whose paths the animation draws
        self.mesh, self.painted = ball_mesh() if self.round else (CORNERS[np.array(FACES)], None)

    @staticmethod
    def shaded(color, normals):
        """The colours of faces with these normals, of any length, that point outward."""
        lengths = np.linalg.norm(normals, axis=-1, keepdims=True)
        light = 0.62 + 0.38 * ((normals / np.where(lengths == 0, 1, lengths)) @ LIGHT)
        return np.clip(color * light[:, None], 0, 1)

    def faces(self, k):
        """The faces of all bodies after step k, [faces, 4, 3], and their colours."""
        R = matrices(self.quaternions[:, k])
        all_faces, colors = [], []
        for b, size in enumerate(self.sizes):
            faces = (self.mesh * size) @ R[b].T
            normals = np.cross(faces[:, 1] - faces[:, 0], faces[:, 3] - faces[:, 0])
            outward = np.sign((normals * faces.mean(axis=1)).sum(-1, keepdims=True))
            color = np.array(plt.matplotlib.colors.to_rgb(COLORS[b % len(COLORS)]))
            shades = np.broadcast_to(color, (len(faces), 3)).copy()
            if self.painted is not None:
                shades[self.painted] = 0.55 * shades[self.painted] + 0.45
            all_faces.append(faces + self.positions[b, k])
            colors.append(self.shaded(shades, normals * outward))
        return np.concatenate(all_faces), np.concatenate(colors)

    def limits(self):
        """The middle and the width of a box that contains all motion, seen as a cube."""
        points = self.positions[:, : self.solved]
        reach = self.sizes.max() / (1 if len(self.planes) > 1 else 2 if self.round else 1.2)
        low, high = points.min(axis=(0, 1)) - reach, points.max(axis=(0, 1)) + reach
        low[2] = min(low[2], 0) if self.flags.get("slope", 0) == 0 else low[2]
        width = (high - low).clip((high - low).max() / 3)
        return np.append((low + high)[:2] / 2, low[2] + width[2] / 2), width

    def stage(self, axes):
        middle, width = self.limits()
        # Matplotlib's own order of what is drawn compares the middles of things, which puts the ground before bodies.
        axes.computed_zorder = False
        planes = list(self.planes)
        box = [np.append(sign * side, sign * side @ middle - w / 2) for side, w in zip(np.eye(3), width) for sign in (1, -1)]
        elevation, azimuth = np.radians(SEEN)
        view = np.array([np.cos(elevation) * np.cos(azimuth), np.cos(elevation) * np.sin(azimuth), np.sin(elevation)])
        drawn = [(edges(planes, box), {"colors": GREY, "lw": 0.7, "zorder": BEHIND})]
        for plane in planes:
            lines = net(plane, [x for x in planes if x is not plane] + box, middle, width.max() / 2)
            before = plane[:3] @ view < 0
            drawn.append((lines, {"colors": PALE, "lw": 0.6, "alpha": 0.5 if before else 1,
                                  "zorder": BEFORE if before else BEHIND}))
        for lines, style in drawn:
            if lines:
                axes.add_collection3d(Line3DCollection(lines, **style))
        axes.set_autoscale_on(False)
        axes.set_box_aspect(tuple(width))
        for name, m, w in zip("xyz", middle, width):
            getattr(axes, f"set_{name}lim")(m - w / 2, m + w / 2)
            getattr(axes, f"set_{name}label")(f"${name}$ [m]", fontsize=8)
            getattr(axes, f"{name}axis").set_major_locator(plt.MaxNLocator(4))
        axes.tick_params(labelsize=7)
        axes.view_init(*SEEN)

    def paths(self, axes):
        self.stage(axes)
        for b, path in enumerate(self.positions):
            axes.plot(*path.T, color=COLORS[b % len(COLORS)], lw=1, zorder=PATHS)
        shown = np.unique(np.linspace(0, self.solved - 1, 1 if len(self.sizes) > 1 else 5).astype(int))
        for k in shown if len(self.sizes) == 1 else [self.solved - 1]:
            self.add_bodies(axes, k)

    def add_bodies(self, axes, k):
        faces, colors = self.faces(k)
        edges = "none" if self.round else "white"
        axes.add_collection3d(Poly3DCollection(faces, facecolors=colors, edgecolors=edges, lw=0.5, alpha=0.95, zorder=BODIES))

    def rests(self):
        """Which steps end with all bodies at rest."""
        return (abs(self.velocities) <= 1e-6).all(axis=(0, 2)) & (self.columns["normal_force"] > 0)

    def over_time(self, axes, label, *series):
        for values, color, name in series:
            axes.plot(self.time, values, color=color, label=name, lw=1.2)
        shade(axes, np.append(0, self.time), self.rests(), STICKING)
        axes.set(xlim=(0, self.time[-1]), ylabel=label)
        legend_above(axes)

    def energy(self, axes):
        # Velocities are those of the middles of steps, and so is the mean of the potential energies at both ends.
        kinetic, ends = self.columns["kinetic"], self.columns["potential"]
        potential = np.append(np.nan, (ends[1:] + ends[:-1]) / 2)
        axes.plot(self.time, kinetic + potential, color=PALE, lw=4, label="total")
        self.over_time(axes, "energy [J]", (kinetic, BLUE, "kinetic"), (potential, INK, "potential"))

    def speeds(self, axes):
        speeds = np.linalg.norm(self.velocities, axis=-1)
        for b, speed in enumerate(speeds):
            axes.plot(self.time, speed, color=COLORS[b % len(COLORS)] if len(speeds) > 1 else BLUE, lw=1.1)
        self.over_time(axes, "speed [m/s]")
        axes.set_ylim(0, max(1.1 * np.nanmax(speeds, initial=0), 0.1))

    def forces(self, axes):
        force = self.columns["support_force"]
        self.over_time(axes, "vertical force [N]", (force, TEAL, "by ground and walls"))
        weight = self.flags["gravity"] * sum(self.masses())
        axes.axhline(weight, color=GREY, lw=0.9, ls=":", label="weight")
        legend_above(axes)
        peak = np.nanmax(force, initial=weight)
        if peak > 20 * weight > 0:
            axes.set_yscale("symlog", linthresh=weight)
            axes.set_yticks([0, *10.0 ** np.arange(math.ceil(math.log10(weight)), math.log10(peak))])
        axes.set_ylim(0, 1.2 * peak or 1)
        axes.set_xlabel("time [s]")

    def masses(self):
        mass = self.flags["mass"]
        if self.flags["system"] != "spheres":
            return [mass] * len(self.sizes)
        return mass * (self.sizes[:, 0] / 2 / self.flags["radius"]) ** 3

    def draw(self):
        if not self.rollout:
            return self.draw_steps()
        figure = plt.figure(figsize=(9.2, 4.8), layout="constrained")
        grid = figure.add_gridspec(3, 2, width_ratios=(1.35, 1), wspace=0.12)  # room for the label of the z axis
        self.paths(figure.add_subplot(grid[:, 0], projection="3d"))
        for row, panel in enumerate((self.speeds, self.energy, self.forces)):
            panel(figure.add_subplot(grid[row, 1]))
        figure.suptitle(self.title + "; grey: at rest" * bool(self.rests().any()), fontsize=9)
        save(figure, "motion")

    def draw_steps(self):
        """Each row is a step of its own: what it does to the speed."""
        figure, axes = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
        axes.plot(np.linalg.norm(self.velocities[0], axis=-1), self.columns["normal_force"], ".", color=TEAL)
        axes.set(xlabel="speed after the step [m/s]", ylabel="normal forces of all contacts [N]")
        figure.suptitle(self.title, fontsize=9)
        save(figure, "motion")

    def animate(self, kind):
        if self.solved < 2:
            return
        figure = plt.figure(figsize=(5.2, 4.4), layout="constrained", dpi=80)
        axes = figure.add_subplot(projection="3d")
        self.stage(axes)
        trails = [axes.plot([], [], [], color=COLORS[b % len(COLORS)], lw=0.9, zorder=PATHS)[0]
                  for b in self.tracked]
        drawn = Poly3DCollection([], edgecolors="white", lw=0.5, zorder=BODIES)
        axes.add_collection3d(drawn)
        figure.suptitle(f"{self.title}; {speed_text(self.time[self.solved - 1])}", fontsize=8)
        clock = axes.text2D(0.02, 0.98, "", transform=axes.transAxes, fontsize=8)
        figure.draw_without_rendering()
        figure.set_layout_engine(None)
        for _, now, k in frames(figure, kind, self.dt, self.solved):
            faces, colors = self.faces(k)
            drawn.set_verts(faces)
            drawn.set_facecolor(colors)
            if self.round:
                drawn.set_edgecolor(colors)
            for trail, b in zip(trails, self.tracked):
                trail.set_data_3d(*self.positions[b, : k + 1].T)
            clock.set_text(now)
