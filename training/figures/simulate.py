"""motion.png, and motion.gif or motion.mp4: what a run of `simulate` computed. Points of a plane are complex."""
import json
import math
import sys

import numpy as np
from matplotlib.patches import Circle, Patch, Polygon, Rectangle
from rigid import RigidBodies
from robot import Robot
from style import BLUE, GREY, INK, ORANGE, PALE, SLIDING, STICKING, TEAL
from style import FFMpegWriter, frames, legend_above, plt, save, shade, speed_text

OTHERS = 20  # trajectories drawn beside the first
BLOCK = [(-1, 0), (1, 0), (1, 1.2), (-1, 1.2), (-1, 0)]  # a marker whose lower edge is at its point
NAMES = {"stewart_trinkle": "Stewart\u2013Trinkle", "belbute_peres": "Belbute-Peres"}
SYMBOLS = {
    "mass": "$m$ = {:g} kg", "mu": r"$\mu$ = {:g}", "gravity": "$g$ = {:g} m/s²", "dt": r"$\Delta t$ = {:g} s",
    "stiffness": "$k$ = {:g} N/m", "dissipation": r"$\tau$ = {:g} s",
    "restitution": "restitution {:g}", "directions": "{} directions",
    "velocity-noise": "noise of {:g} m/s on velocities", "position-noise": "noise of {:g} m on positions",
}
COUNTS = {
    "unsolved": "not solved", "farkas_proofs": "proved to have no solution",
    "glued_steps": "where the block, which would move backwards, is glued to its place",
}


def largest(x):
    return float(np.max(abs(x), initial=0, where=np.isfinite(x)))


def xy(points):
    return np.stack([points.real, points.imag], axis=-1)


def curves(axes, x, y, color, label=None, **style):
    """Plots y, [trajectories, points], over x: the first trajectory in colour, the others thin and pale."""
    x = np.broadcast_to(x, y.shape)
    axes.plot(x[1:].T, y[1:].T, color=PALE, lw=0.7, zorder=1.5)
    axes.plot(x[0], y[0], color=color, label=label, **style)


def plane(axes, points, adjustable="box", margin=0.1):
    """Sets limits that contain the points, and equal scales unless the points would then look like a line."""
    corners = xy(np.append(points[np.isfinite(points)], 0))
    low, size = corners.min(axis=0), np.ptp(corners, axis=0)
    pad = margin * np.where(size < 0.01 * size.max(), size.max(), size)  # so that round-off does not fill the axes
    axes.update_datalim([low - pad, low + size + pad])
    axes.margins(0)
    axes.autoscale_view()
    axes.set(xlabel="$x$ [m]", ylabel="$y$ [m]")
    if size.max() < 5 * size.min():
        axes.set_aspect("equal", adjustable=adjustable)


def ground(axes):
    depth = 0.05 * np.ptp(axes.get_ylim())
    axes.add_artist(Rectangle((0, -depth), 1, depth, transform=axes.get_yaxis_transform(), fc="white", ec=GREY, lw=0,
                              hatch="/////", zorder=1))
    axes.axhline(0, color=INK, lw=0.8, zorder=1)


def dotted(axes, x, y, color, label):
    axes.plot(x, y, color=color, lw=0.9, ls=":", label=label)
    axes.plot(x, np.negative(y), color=color, lw=0.9, ls=":")


def weighed(axes, values, weight, name):
    """Draws the weight as a dotted line. With forces over 20 times larger, the axis is logarithmic above the weight."""
    axes.axhline(weight, color=TEAL, lw=0.9, ls=":", label=f"weight, ${name}$")
    axes.update_datalim([(0, 0)])
    axes.autoscale_view(scalex=False)
    peak, lowest = largest(values), np.min(values, initial=0, where=np.isfinite(values))
    if 0 < 20 * weight < peak:
        axes.set_yscale("symlog", linthresh=weight)
        ticks = 10.0 ** np.arange(math.ceil(math.log10(weight)), math.log10(peak))
        axes.set(yticks=[*-ticks[::-1], 0, *ticks], ylim=(2 * lowest or -weight / 5, 2 * peak))
        axes.text(0.99, 0.03, f"logarithmic above ${name}$", transform=axes.transAxes, ha="right", fontsize=7, color=GREY)


def relation(axes, x, y, color, x_label, y_label, exact=None):
    """A point for each independent step, over the exact relation."""
    if exact is not None:
        order = np.argsort(x, axis=0)
        axes.plot(np.take_along_axis(x, order, 0), np.take_along_axis(exact, order, 0), color=PALE, lw=3, label="exact")
    axes.plot(x, y, ".", ms=3, color=color, label="LCP")
    axes.set(xlabel=x_label, ylabel=y_label)
    axes.locator_params(axis="x", nbins=6)


class System:
    """A run: its flags, its columns as [trajectories, steps], and a method for each panel.

    prepare() sets what the first trajectory does, phases: (name, colour, mask of steps); what the animation moves,
    outlines: [trajectories, points, steps + 1], of each body the point that forces act on first; and the forces on the
    first body: (label, colour, N in each step, how far off that point).
    """

    parameters = ["mass", "mu", "gravity", "dt"]
    moving = "slides"  # in the steps that are in none of the phases
    noise_hides_rest = False
    grounded, stage, body = False, {}, {"marker": "o", "ms": 12}  # of the animation

    def __init__(self, run):
        self.run = run
        self.flags, self.metrics = (json.loads((run / f"{x}.json").read_text()) for x in ("config", "metrics"))
        self.rollout = not self.flags["inputs"]
        with open(run / "data.csv") as stream:
            names = stream.readline().strip().split(",")
            rows = (1 + OTHERS) * self.flags["steps"] if self.rollout else None
            table = np.loadtxt(stream, delimiter=",", max_rows=rows, ndmin=2)
        self.count = np.unique(table[:, 0]).size
        self.columns = dict(zip(names, table.T.reshape(len(names), self.count, -1)))
        self.mass, self.dt = self.flags["mass"], self.flags["dt"]
        self.weight = self.mass * self.flags["gravity"]
        self.limit = self.flags["mu"] * self.weight
        self.edges = self.dt * np.arange(self["step"].shape[1] + 1)
        self.hidden = self.noise_hides_rest and self.flags["velocity-noise"] > 0
        self.longest = math.inf  # N, an arrow that shows more is cut
        system, formulation = self.flags["system"], self.flags["formulation"]
        formulation = NAMES.get(formulation, formulation).replace("_", " ")
        self.title = f"{system.replace('_', ' ').capitalize()}, {formulation} formulation"
        self.prepare()

    def __getitem__(self, name):
        return self.columns[name]

    def pairs(self, name):
        return self[name + "_x"] + 1j * self[name + "_y"]

    def states(self, start, ends):
        """The initial states, then the states after each step. Only the first trajectory has a known start."""
        return np.hstack([np.array([[start]] + [[np.nan]] * (self.count - 1)), ends])

    def travelled(self, v):
        return np.pad(np.cumsum(self.dt * v, axis=1), [(0, 0), (1, 0)])

    def rest(self, steps):
        name = "sticks" if self.limit > 0 else "rests"
        return [] if self.hidden else [(f"{name} (steps that end at rest)", STICKING, steps)]

    def over_time(self, axes, label, *series):
        """series: (values, colour, name), of states or of steps."""
        width, dots = 1.3 if self.edges.size < 500 else 0.6, 3 if self.edges.size < 80 else 0
        for values, color, *name in series:
            if values.shape[1] == self.edges.size:
                curves(axes, self.edges, values, color, *name, lw=width, marker=".", ms=dots, clip_on=False)
            else:
                axes.stairs(values[0], self.edges, baseline=None, color=color, lw=width, label=name[0])
        for _, color, steps in self.phases:
            shade(axes, self.edges, steps, color)
        last = axes.get_subplotspec().is_last_row()
        axes.set(xlim=(0, self.edges[-1]), ylabel=label, xlabel="time [s]" if last else "")
        axes.tick_params(labelbottom=last)

    def remarks(self):
        noise = [x for x in ("velocity-noise", "position-noise") if self.flags.get(x)]
        for names in filter(None, (self.parameters, noise)):
            yield ", ".join(SYMBOLS[x].format(self.flags[x]) for x in names)
        if self.rollout and self.hidden:
            yield "the noise hides where it sticks"
        if self.rollout and self.flags["velocity-noise"] and "x" not in self.columns:
            yield "positions are sums of the noisy velocities"
        if self.rollout and self.count > 1:
            yield f"the first of {self.flags['trajectories']} trajectories, and {self.count - 1} more in pale"
        for name, text in COUNTS.items():
            if self.metrics.get(name):
                yield f"{text}: {self.metrics[name]} of {self.metrics['steps']} steps"

    def draw(self):
        layout = self.layout if self.rollout else self.steps_layout
        wide, high = len(layout[0]), len(layout)
        size = (6.4, 1.2 + max(2.4, 1.6 * high)) if wide == 1 else (7.4, 1.2 + max(2.6, 1.8 * high))
        figure, panels = plt.subplot_mosaic(layout, figsize=size, layout="constrained")
        for name, axes in panels.items():
            getattr(self, name)(axes)
            legend_above(axes)
        if wide == 1:
            figure.align_ylabels()
        figure.suptitle("\n".join([self.title, *self.remarks()]), fontsize=9)
        bands = [Patch(color=color, label=name) for name, color, steps in self.phases if steps.any()]
        if bands and self.rollout:
            figure.legend(handles=bands, loc="outside lower center", ncol=2, fontsize=8)
        save(figure, "motion")

    def animate(self, kind):
        solved = np.isfinite(self.outlines[0, 0])
        steps = (solved.size if solved.all() else solved.argmin()) - 1
        if steps < 1:
            return  # nothing moves where no step has a solution
        peak = max((largest(force) for _, _, force, _ in self.forces), default=0)
        longest = min(peak, self.longest) or 1
        cut = f"; arrows cut at {longest:.3g} N" * (peak > 1.001 * longest)
        height = 1.3 if "ylim" in self.stage else 2.4
        figure, (stage, strip) = plt.subplots(2, 1, figsize=(5.2, 1.8 + height), height_ratios=(height, 1), dpi=80,
                                              layout="constrained")
        plane(stage, self.outlines, "datalim", margin=0.25)
        stage.set(**self.stage)
        if self.grounded:
            ground(stage)
        getattr(self, self.strip)(strip)
        figure.suptitle(f"{self.title}, {speed_text(self.edges[steps])}{cut}", fontsize=8)
        others, = stage.plot([], [], color=PALE, lw=1, zorder=1.5, **self.body)
        trail, = stage.plot([], [], color=BLUE, lw=0.8)
        first, = stage.plot([], [], color=INK, lw=1.5, **self.body)
        arrows = []
        for label, color, force, offset in self.forces:
            quiver = stage.quiver(0, 0, 0, 0, color=color, label=label, width=0.016 - 0.007 * len(arrows), zorder=3,
                                  clip_on=False, scale_units="inches", scale=longest / 0.6)
            shown = np.where(force == 0, np.nan, force * (longest / np.maximum(abs(force), longest)))
            arrows.append((quiver, shown, offset))
        legend_above(stage)
        legend_above(strip)
        state = stage.text(0, 1.02, " ", va="bottom", transform=stage.transAxes)
        cursor = strip.axvline(0, color=INK, lw=1, clip_on=False)
        freeze(figure, {others, trail, first, state, cursor, *(quiver for quiver, _, _ in arrows)})
        for t, clock, k in frames(figure, kind, self.dt, steps):
            now = self.outlines[..., k] + (t / self.dt - k) * np.diff(self.outlines[..., k : k + 2])[..., 0]
            apart = np.pad(now[1:], ((0, 0), (0, 1)), constant_values=np.nan).ravel()
            past = np.append(self.outlines[0, 0, : k + 1], now[0, 0])
            for line, points in ((first, now[0]), (others, apart), (trail, past)):
                line.set_data(points.real, points.imag)
            for quiver, force, offset in arrows:
                quiver.set_offsets(xy(now[0, 0] + offset))
                quiver.set_UVC(force.real[k], force.imag[k])
            phase = [name.split(" (")[0] for name, _, mask in self.phases if mask[k]]
            phase = phase or [self.moving] * (not self.hidden)
            state.set_text("   ".join([*phase, clock]))
            cursor.set_xdata([t, t])


def freeze(figure, moving):
    """Draws what does not move once, as an image behind the rest: a frame is drawn five times faster."""
    figure.draw_without_rendering()
    figure.set_layout_engine(None)  # it has laid out what there is
    for artist in moving:
        artist.set_visible(False)
    figure.canvas.draw()
    image = np.array(figure.canvas.buffer_rgba())
    for part in (figure, *figure.axes):
        for artist in set(part.get_children()) - set(figure.axes):
            artist.set_visible(artist in moving)
    figure.figimage(image, zorder=-1)


class SlidingBlock(System):
    layout, steps_layout = [["position"], ["velocity"], ["force"]], [["velocity_after", "friction_after"]]
    strip, start = "velocity", None
    grounded, body = True, {"marker": BLOCK, "ms": 24}
    stage = {"ylim": (-0.4, 2), "yticks": [], "ylabel": "", "xlabel": "position [m]"}

    def prepare(self):
        plus, minus = self["lambda_plus"], self["lambda_minus"]
        # The direct formulation makes up the smaller of the two.
        direct = self.flags["formulation"] == "direct"
        self.friction = np.where(plus > minus, plus, -minus) if direct else plus - minus
        self.free = self["v"] + self.dt * self["u"] / self.mass
        # gamma is |v_next| without the noise that v_next may have.
        self.phases = self.rest(((self["gamma"] == 0) | (self["v_next"] == 0))[0])
        if self.flags["formulation"] == "direct2" and self.metrics["unsolved"]:
            self.layout, self.steps_layout = [["velocity"], ["requirement"]], [["requirement"]]
            self.start = "exact friction, from which each step is tried"
        self.outlines = self.travelled(self["v_next"])[:, None] + 0j
        self.forces = [("input", GREY, self["u"][0] + 0j, 0.5j), ("friction", ORANGE, self.friction[0] + 0j, 0)]

    def position(self, axes):
        self.over_time(axes, "position [m]", (self.outlines[:, 0].real, INK))

    def velocity(self, axes):
        self.over_time(axes, "velocity [m/s]", (np.hstack([self["v"], self["v_next"][:, -1:]]), BLUE, self.start))

    def force(self, axes):
        self.over_time(axes, "force [N]", (self["u"], GREY, "input"), (self.friction, ORANGE, "friction"))
        dotted(axes, self.edges[[0, -1]], [self.limit] * 2, ORANGE, r"$\pm\mu m g$")

    def requirement(self, axes):
        """Why direct2 has no solution: M <= 0 entrywise, so that w = M z + q <= q for each z >= 0."""
        free = self.free[0] if self.rollout else self.free[:, 0]
        x = self.edges[:-1] + self.dt / 2 if self.rollout else free
        axes.vlines(x, -abs(free), abs(free), color=PALE, lw=0.7)
        axes.plot(x, free, ".", color=BLUE, label=r"$w_1 \leq q_1 = v + \Delta t\,u/m$")
        axes.plot(x, -free, ".", color=TEAL, label=r"$w_2 \leq q_2 = -q_1$")
        low, label = 1.1 * largest(free) or 1, "$w = Mz + q \\leq q$\nas $M \\leq 0$ [m/s]"
        axes.axhspan(-low, 0, color=SLIDING, lw=0, zorder=0, label="$w < 0$, not allowed")
        axes.set(ylim=(-low, low), xlabel="$q_1$ [m/s]", ylabel=label)
        if self.rollout:
            self.over_time(axes, label)

    def velocity_after(self, axes):
        lost = np.clip(self.free, -self.dt * self.limit / self.mass, self.dt * self.limit / self.mass)
        relation(axes, self.free, self["v_next"], BLUE, "velocity without friction [m/s]",
                 "velocity after the step [m/s]", self.free - lost)

    def friction_after(self, axes):
        relation(axes, self.free, self.friction, ORANGE, "velocity without friction [m/s]", "friction [N]",
                 -np.clip(self.mass / self.dt * self.free, -self.limit, self.limit))


class FallingBlock(System):
    parameters = ["mass", "gravity", "dt"]
    layout, steps_layout = [["height"], ["velocity"], ["force"]], [["height_after", "force_after"]]
    strip, moving = "velocity", "flies"
    grounded, body = True, {"marker": BLOCK, "ms": 20}
    stage = {"aspect": "auto", "xticks": [], "xlabel": "", "ylabel": "height [m]"}

    def prepare(self):
        heights = self.states(self.flags["height"], self["x"])
        self.outlines = (np.arange(self.count)[:, None] + 1j * heights)[:, None]  # side by side
        self.forces = [("contact force", TEAL, 1j * self["lambda"][0], 0)]
        self.longest = 2 * self.weight or math.inf
        self.free = self["x"] - self.dt**2 / self.mass * self["lambda"]
        self.phases = [("in contact", STICKING, self["lambda"][0] > 0)]

    def height(self, axes):
        self.over_time(axes, "height [m]", (self.outlines[:, 0].imag, INK))

    def velocity(self, axes):
        self.over_time(axes, "velocity [m/s]", (self.states(self.flags["speed"], self["v"]), BLUE))

    def force(self, axes):
        self.over_time(axes, "force [N]", (self["lambda"], TEAL, "contact force"))
        weighed(axes, self["lambda"][0], self.weight, "m g")

    def height_after(self, axes):
        relation(axes, self.free, self["x"], INK, "height without contact [m]", "height after the step [m]",
                 np.maximum(self.free, 0))

    def force_after(self, axes):
        relation(axes, self.free, self["lambda"], TEAL, "height without contact [m]", "contact force [N]",
                 self.mass / self.dt**2 * np.maximum(-self.free, 0))


class PlanarBlock(System):
    layout, steps_layout = [["path", "friction"], ["speed", "speed"]], [["speed_after", "friction_after"]]
    strip, noise_hides_rest, body = "speed", True, {"marker": "s", "ms": 12}

    def prepare(self):
        self.v, self.u, self.v_next, self.force = (self.pairs(x) for x in ("v", "u", "v_next", "force"))
        self.free = self.v + self.dt / self.mass * self.u
        self.phases = self.rest(self.v_next[0] == 0)
        self.outlines = self.travelled(self.v_next)[:, None]
        self.forces = [("input", GREY, self.u[0], 0), ("friction", ORANGE, self.force[0], 0)]
        v = [complex(self.flags["speed"])]
        for u in self.u[0]:
            v.append(self.slowed(v[-1] + self.dt / self.mass * u))
        self.exact = np.array([v])

    def slowed(self, free):
        """Isotropic friction: the velocity after a step that would end with `free` without it."""
        return free * np.maximum(1 - self.dt * self.limit / self.mass / np.where(free == 0, 1, abs(free)), 0)

    def path(self, axes):
        exact, points = self.travelled(self.exact[:, 1:]), self.outlines[:, 0]
        plane(axes, np.append(points, exact))
        curves(axes, exact.real, exact.imag, PALE, "exact", lw=4)
        curves(axes, points.real, points.imag, INK, "LCP")
        axes.plot(0, 0, "o", color=INK, mfc="white", ms=5, ls="", label="start")

    def speed(self, axes):
        curves(axes, self.edges, abs(self.exact), PALE, "exact", lw=4)
        self.over_time(axes, "speed [m/s]", (abs(np.hstack([self.v, self.v_next[:, -1:]])), BLUE, "LCP"))

    def friction(self, axes):
        axes.add_patch(Circle((0, 0), self.limit, fc=SLIDING, ec=ORANGE, ls=":", label=r"$|f| \leq \mu m g$"))
        if self.flags["formulation"] == "polyhedral":
            turns = np.arange(self.flags["directions"]) / self.flags["directions"]
            corners = self.limit * np.exp(2j * np.pi * turns)
            axes.add_patch(Polygon(xy(corners), fc="none", ec=INK, label="polygon"))
        axes.plot(self.force[0].real, self.force[0].imag, ".-", color=ORANGE, ms=4, lw=0.6, label="friction")
        reach = 1.15 * max(self.limit, largest(self.force[0]), largest(self.u[0]) / 1000) or 1  # not of round-off
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), xlabel="$f_x$ [N]", ylabel="$f_y$ [N]", aspect="equal")

    def speed_after(self, axes):
        relation(axes, abs(self.free), abs(self.v_next), BLUE, "speed without friction [m/s]",
                 "speed after the step [m/s]", abs(self.slowed(self.free)))

    def friction_after(self, axes):
        relation(axes, abs(self.free), abs(self.force), ORANGE, "speed without friction [m/s]", "friction [N]",
                 np.minimum(self.mass / self.dt * abs(self.free), self.limit))


class PointMass(System):
    parameters = ["mass", "mu", "gravity", "dt", "restitution"]
    layout, steps_layout = [["path", "velocities"], ["path", "impulses"]], [["cone"]]
    strip, moving, grounded = "velocities", "flies", True

    def prepare(self):
        self.friction = self["lambda_plus"] - self["lambda_minus"]
        self.outlines = self.states(1j * self.flags["height"], self["x"] + 1j * self["y"])[:, None]
        self.forces = [("normal force", TEAL, 1j * self["lambda_n"][0] / self.dt, 0),
                       ("friction", ORANGE, self.friction[0] / self.dt + 0j, 0)]
        self.longest = 2 * self.weight or math.inf
        contact = self["lambda_n"][0] > 0
        still = (self["gamma"][0] == 0) | (self["v_x"][0] == 0)  # gamma is |v_x| without noise
        self.phases = [("slides", SLIDING, contact & ~still), *self.rest(contact & still)]

    def path(self, axes):
        points = self.outlines[:, 0]
        plane(axes, points)
        ground(axes)
        curves(axes, points.real, points.imag, INK)
        axes.plot(0, self.flags["height"], "o", color=INK, mfc="white", ms=5, ls="", label="start")

    def velocities(self, axes):
        self.over_time(axes, "velocity [m/s]", (self.states(self.flags["speed"], self["v_x"]), BLUE, "$v_x$"),
                       (self.states(0, self["v_y"]), TEAL, "$v_y$"))

    def impulses(self, axes):
        self.over_time(axes, "impulse [N s]", (self["lambda_n"], TEAL, "normal"), (self.friction, ORANGE, "friction"))
        weighed(axes, np.stack([self["lambda_n"][0], self.friction[0]]), self.weight * self.dt, r"m g \Delta t")

    def cone(self, axes):
        reach = np.array([0, largest(self["lambda_n"])])
        dotted(axes, reach, self.flags["mu"] * reach, ORANGE, r"$\pm\mu\lambda_n$")
        relation(axes, self["lambda_n"], self.friction, ORANGE, "normal impulse [N s]", "friction impulse [N s]")


class Tripod(System):
    parameters = ["mass", "mu", "gravity", "dt", "directions"]
    layout, steps_layout = [["path", "speeds"], ["path", "energy"]], [["turning_after"]]
    strip, noise_hides_rest, body = "speeds", True, {"marker": "o", "ms": 4}

    def prepare(self):
        v_x, v_y, omega = self.flags["velocity"]
        self.centre = self.states(0j, self["x"] + 1j * self["y"])
        self.v, self.omega = self.states(v_x + 1j * v_y, self.pairs("v")), self.states(omega, self["omega"])
        turned = np.exp(1j * self.states(0, self["theta"]))
        self.arms = [turned * complex(*r) for r in np.reshape(self.flags["supports"], (3, 2))]
        self.phases = self.rest((self.v[0, 1:] == 0) & (self.omega[0, 1:] == 0))
        corners = [self.centre + arm for arm in self.arms]
        self.outlines = np.stack([self.centre, self.centre * np.nan, *corners, corners[0]], axis=1)
        force = self.mass * np.diff(self.v[0]) / self.dt  # there is no other in the plane
        self.forces = [] if self.hidden else [("total friction", ORANGE, force, 0)]

    def path(self, axes):
        plane(axes, self.outlines)
        for label, path in zip(("supports", None, None), self.outlines[0, 2:5]):
            axes.plot(path.real, path.imag, color=BLUE, lw=0.7, alpha=0.6, label=label)
        curves(axes, self.centre.real, self.centre.imag, INK, "centre of mass")
        last = np.flatnonzero(np.append(True, np.diff(self.centre[0]) != 0))[-1]
        stride = max(1, round(last / 5))
        for k in range(0, last + 1, stride):
            axes.plot(*xy(self.outlines[0, 2:, k]).T, color=GREY, lw=0.9,
                      label=None if k else f"each {stride * self.dt:g} s")

    def speeds(self, axes):
        for arm, style, name in zip(self.arms, ("-", "--", "-."), ("support 1", "2", "3")):
            axes.plot(self.edges, abs(self.v + 1j * self.omega * arm)[0], color=BLUE, ls=style, lw=1.2, label=name)
        reach = max(abs(arm[0, 0]) for arm in self.arms)
        axes.plot(self.edges, abs(self.omega[0]) * reach, color=GREY, label=r"$|\omega|$ × farthest support")
        self.over_time(axes, "speed [m/s]")

    def energy(self, axes):
        energy = (self.mass * abs(self.v) ** 2 + self.flags["inertia"] * self.omega**2) / 2
        self.over_time(axes, "kinetic energy [J]", (energy, INK))
        axes.set_ylim(0)

    def turning_after(self, axes):
        relation(axes, abs(self.pairs("v")), self["omega"], BLUE, "speed after the step [m/s]",
                 r"$\omega$ after the step [rad/s]")


class Compliant(System):
    """On compliant ground: self.tangent and self.normal, impulses of each contact, [contacts, steps]; self.centre."""

    parameters = ["mass", "mu", "dt", "stiffness", "dissipation"]
    layout, steps_layout = [["path", "velocities"], ["height", "impulses"]], [["cone"]]
    strip, moving, grounded = "velocities", "flies", True

    def centres(self):
        """Above the ground; where a start is unknown, so is its height."""
        points = self.states(1j * (self.rest + self.flags["height"]), self["x"] + 1j * self["z"])
        return np.where(np.isnan(points), complex(np.nan, np.nan), points)

    def contacts(self, tangents, normals):
        self.tangent, self.normal = (np.stack([self[x][0] for x in names]) for names in (tangents, normals))
        self.touches = (self.normal > 0).any(axis=0)
        slides = (self.normal > 0) & (abs(self.tangent) >= self.flags["mu"] * self.normal * (1 - 1e-9))
        self.phases = [("slides", SLIDING, slides.any(axis=0)), ("sticks", STICKING, self.touches & ~slides.any(axis=0))]
        self.longest = 2 * self.weight or math.inf

    def path(self, axes):
        plane(axes, self.outlines)
        ground(axes)
        curves(axes, self.centre.real, self.centre.imag, INK)
        axes.plot(*xy(self.centre[0, 0]), "o", color=INK, mfc="white", ms=5, ls="", label="start")
        axes.set_ylabel("$z$ [m]")

    def velocities(self, axes):
        self.over_time(axes, "velocity [m/s]", (self.states(self.flags["speed"], self["v_x"]), BLUE, "$v_x$"),
                       (self.states(0, self["v_z"]), TEAL, "$v_z$"))

    def height(self, axes):
        self.over_time(axes, "height [mm]", (1e3 * (self.centre.imag - self.rest), INK, "above where it would touch"))
        axes.axhline(0, color=GREY, lw=0.8)

    def impulses(self, axes):
        self.over_time(axes, "impulse [N s]", (self.normal.sum(axis=0)[None], TEAL, "normal"),
                       (self.tangent.sum(axis=0)[None], ORANGE, "friction"))
        weighed(axes, np.stack([self.normal.sum(axis=0), self.tangent.sum(axis=0)]), self.weight * self.dt,
                r"m g \Delta t")

    def cone(self, axes):
        reach = np.array([0, largest(self.normal)])
        dotted(axes, reach, self.flags["mu"] * reach, ORANGE, r"$\pm\mu\gamma_n$")
        relation(axes, self.normal.T, self.tangent.T, ORANGE, "normal impulse [N s]", "friction impulse [N s]")

    def draw(self):
        super().draw()
        if self.rollout:
            self.convergence()

    def convergence(self):
        table = np.genfromtxt(self.run / "convergence.csv", delimiter=",", names=True)
        pushes = np.unique(table["push"])
        figure, panels = plt.subplots(1, pushes.size, figsize=(3.7 * pushes.size, 3.4), layout="constrained",
                                      sharey=True, squeeze=False)
        for push, axes in zip(pushes, panels[0]):
            for dt, color in zip(np.unique(table["dt"])[::-1], (BLUE, TEAL)):
                rows = table[(table["push"] == push) & (table["dt"] == dt)]
                axes.loglog(rows["stiffness"], rows["rms_error"], ".-", color=color, label=rf"$\Delta t$ = {dt:g} s")
            does = "sticks" if push < self.limit else "slides"
            axes.set(xlabel="stiffness [N/m]", title=f"{does}, under {push:.3g} N")
            axes.title.set_fontsize(9)
        panels[0, 0].set_ylabel("velocities, rms distance [m/s]")
        panels[0, 0].legend(fontsize=8)
        figure.suptitle(f"{self.title}: from rest, against rigid ground", fontsize=9)
        save(figure, "convergence")


class CompliantParticle(Compliant):
    rest = 0

    def prepare(self):
        self.contacts(["gamma_x"], ["gamma_n"])
        self.centre = self.centres()
        self.outlines = self.centre[:, None]
        self.forces = [("normal force", TEAL, 1j * self.normal[0] / self.dt, 0),
                       ("friction", ORANGE, self.tangent[0] / self.dt + 0j, 0)]


class CompliantBlock(Compliant):
    body = {"marker": "", "ms": 0}

    def prepare(self):
        width, height = self.flags["size"]
        self.rest = height / 2
        self.contacts(*([f"gamma_{x}{k}" for k in range(1, 5)] for x in "tn"))
        self.centre = self.centres()
        turned = np.exp(1j * self.states(0, self["theta"]))
        corners = [self.centre + turned * complex(x * width, z * height) / 2
                   for x, z in ((-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1))]
        self.outlines = np.stack([self.centre, self.centre * np.nan, *corners], axis=1)
        self.forces = [("contact forces", TEAL, (self.tangent + 1j * self.normal).sum(axis=0) / self.dt, 0)]


def simulate(run, flags, metrics):
    systems = {"sliding_block": SlidingBlock, "falling_block": FallingBlock, "planar_block": PlanarBlock,
               "point_mass": PointMass, "tripod": Tripod, "compliant_particle": CompliantParticle,
               "compliant_block": CompliantBlock,
               **dict.fromkeys(("cube", "rolling", "stack", "spheres"), RigidBodies), "robot": Robot}
    system = systems[flags["system"]](run)
    system.draw()
    kind = system.flags["animation"]
    if kind == "mp4" and not FFMpegWriter.isAvailable():
        print("there is no ffmpeg to write motion.mp4: motion.gif instead", file=sys.stderr)
        kind = "gif"
    if system.rollout and kind != "none":
        system.animate(kind)
