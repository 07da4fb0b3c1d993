"""The figures of tosses: errors.png, errors_in_time.png, toss.png, parameters.png and training.png."""
import json
import pathlib

import numpy as np
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection
from rigid import CORNERS, FACES, LIGHT, matrices
from style import BLUE, GREY, INK, ORANGE, PALE, TEAL, plt, read_arrays, save

# Of parameters, by the first word of their names; the others are plain numbers. Inertia, stiffness and drag are over mass.
UNITS = {"center": "m", "centers": "m", "point": "m", "side": "m", "rounding": "m", "radii": "m", "radius": "m", "height": "m",
         "moments": "m²", "inertia": "m²", "stiffness": "1/s²", "dissipation": "s",
         "drag": "1/s", "gravity": "m/s²"}
PROTOCOLS = (("whole tosses", BLUE), ("from first contact", ORANGE), ("80 steps", TEAL))


def named(name):
    """The name of a parameter with its unit."""
    unit = UNITS.get(name.split("_")[0].split("[")[0])
    return name.replace("_", " ") + (f" [{unit}]" if unit else "")


def panels_of_errors(size):
    """For each of position and rotation: column, factor, unit, label."""
    return (("position_error_m", 100 / size, "%", "position error [% of the size]"),
            ("rotation_error_rad", 180 / np.pi, "°", "rotation error [degrees]"))


def errors(run, flags, metrics):
    """errors.png: which share of the pieces of tosses have at most some error, in each protocol."""
    found = read_arrays(run / "errors.csv")
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3), layout="constrained", sharey=True)
    for panel, (column, factor, unit, label) in zip(axes, panels_of_errors(metrics["size_m"])):
        for number, (text, color) in enumerate(PROTOCOLS):
            values = np.sort(factor * found[column][found["protocol"] == number])
            if len(values):
                panel.step(values, np.arange(1, len(values) + 1) / len(values), where="post", color=color,
                           label=f"{text}: mean {values.mean():.3g} {unit}")
        panel.set(xlabel=label, xlim=(0, None), ylim=(0, 1))
        panel.legend(fontsize=8, loc="lower right")
    axes[0].set_ylabel("share of pieces")
    save(figure, "errors")


def errors_in_time(run, flags, metrics):
    """errors_in_time.png: the mean errors against the time since the start of a piece, while half of the pieces last."""
    found = read_arrays(run / "errors_in_time.csv")
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3), layout="constrained")
    for panel, (column, factor, _, label) in zip(axes, panels_of_errors(metrics["size_m"])):
        for number, (text, color) in enumerate(PROTOCOLS):
            rows = found["protocol"] == number
            rows &= found["pieces"] >= max(found["pieces"][rows], default=0) / 2
            panel.plot(found["time"][rows], factor * found[column][rows], color=color, label=text)
        panel.set(xlabel="time since the start of the piece [s]", ylabel=label, xlim=(0, None), ylim=(0, None))
    axes[0].legend(fontsize=8)
    save(figure, "errors_in_time")


def form_of(flags, metrics):
    """The edges [3] of the box that was tossed, or the centres and radii of its balls, [balls, 4]; m."""
    if not flags["body"]:
        return np.full(3, metrics["size_m"])
    body = json.loads(pathlib.Path(flags["body"]).read_text())
    return np.array(body["box"] if "box" in body else body["balls"], dtype=float)


def draw_body(axes, position, quaternion, form, color, alpha):
    R = matrices(quaternion)
    if form.ndim == 2:
        axes.scatter(*(form[:, :3] @ R.T + position).T, s=12, color=color, alpha=alpha)
        return
    faces = CORNERS[np.array(FACES)] * form @ R.T
    normals = faces.mean(axis=1)
    light = 0.62 + 0.38 * normals @ LIGHT / np.linalg.norm(normals, axis=1)
    shades = np.clip(np.array(plt.matplotlib.colors.to_rgb(color)) * light[:, None], 0, 1)
    axes.add_collection3d(Poly3DCollection(faces + position, facecolors=shades, edgecolors="white", lw=0.5,
                                           alpha=alpha))


def toss(run, flags, metrics):
    """toss.png: a toss as it was measured or simulated, beside the prediction from its first sample."""
    found = read_arrays(run / "toss.csv")
    motions = [(np.stack([found[f"{kind}_{x}"] for x in "xyz"], -1),
                np.stack([found[f"{kind}_q_{x}"] for x in "wxyz"], -1)) for kind in ("measured", "predicted")]
    points = np.concatenate([position for position, _ in motions])
    form, size = form_of(flags, metrics), metrics["size_m"]
    reach = 0.8 * size
    low, high = points.min(axis=0) - reach, points.max(axis=0) + reach
    low[2] = min(0, points[:, 2].min() - reach)
    shown = np.unique(np.linspace(0, len(motions[0][0]) - 1, 6).astype(int))
    figure = plt.figure(figsize=(8.4, 4))
    titles = ("measured" if flags["tosses"] else "simulated", "predicted from the first sample")
    for k, (title, color) in enumerate(zip(titles, (GREY, BLUE))):
        axes = figure.add_subplot(1, 2, k + 1, projection="3d", computed_zorder=False)
        x, y = np.meshgrid(np.linspace(low[0], high[0], 9), np.linspace(low[1], high[1], 9))
        net = np.stack([x, y, np.zeros_like(x)], -1)
        axes.add_collection3d(Line3DCollection([*net, *net.swapaxes(0, 1)], colors=PALE, lw=0.6, zorder=-2))
        position, quaternion = motions[k]
        axes.plot(*position.T, color=color, lw=1, zorder=5)
        for i in shown:
            draw_body(axes, position[i], quaternion[i], form, color, 0.35 + 0.6 * i / shown[-1])
        axes.set_box_aspect(tuple(high - low))
        for name, a, b in zip("xyz", low, high):
            getattr(axes, f"set_{name}lim")(a, b)
            getattr(axes, f"set_{name}label")(f"${name}$ [m]", fontsize=8)
            getattr(axes, f"{name}axis").set_major_locator(plt.MaxNLocator(4))
        axes.tick_params(labelsize=7)
        axes.view_init(20, -60)
        axes.set_title(title, fontsize=9)
    apart = np.linalg.norm(motions[0][0] - motions[1][0], axis=1).mean() * 100 / size
    figure.suptitle(f"One toss that was not learned from: the recorded points are {apart:.2g} % of the size apart on average",
                    fontsize=9)
    save(figure, "toss")


def parameters(run, flags, metrics):
    """parameters.png: the learned parameters, their intervals of 95 %, and where they began."""
    found = metrics.get("parameters")
    if found is None:
        return
    history = read_arrays(run / "history.csv")
    height = 0.7 + 0.34 * len(found)
    figure, axes = plt.subplots(len(found), 1, figsize=(6.4, max(2, height)), layout="constrained", squeeze=False)
    for panel, (name, one) in zip(axes[:, 0], found.items()):
        start = history[name][0]
        bounds = [x for x in (one["low"], one["high"], one["value"], start) if x is not None]
        margin = 0.15 * (max(bounds) - min(bounds)) or 0.1 * abs(one["value"]) or 1e-3
        left, right = min(bounds) - margin, max(bounds) + margin
        low, high = (side if x is None else x for x, side in ((one["low"], left), (one["high"], right)))
        panel.plot([low, high], [0, 0], color=BLUE, lw=4, alpha=0.4, solid_capstyle="butt")
        panel.plot(one["value"], 0, "o", color=BLUE, ms=4)
        panel.plot(start, 0, "x", color=ORANGE, ms=5)
        seen = "" if None not in (one["low"], one["high"]) else "  (not seen)"
        panel.set(xlim=(left, right), ylim=(-1, 1), yticks=[])
        panel.set_ylabel(named(name) + seen, rotation=0, ha="right", va="center", fontsize=8)
        panel.tick_params(labelsize=7)
        panel.spines["left"].set_visible(False)
    figure.legend([plt.Line2D([], [], color=BLUE, marker="o", lw=4, alpha=0.6, ms=4),
                   plt.Line2D([], [], color=ORANGE, marker="x", ls="")],
                  ["learned, 95 %", "start"], loc="outside upper right", ncol=2, fontsize=8)
    save(figure, "parameters")


def training(run, flags, metrics):
    """training.png: misfits and some parameters during training."""
    history = read_arrays(run / "history.csv")
    shown = [name for name in ("mu", "mu[0]", "side", "size", "restitution", "restitution[0]", "inertia", "stiffness")
             if name in history][:3]
    figure, axes = plt.subplots(1, 1 + len(shown), figsize=(2.6 * (1 + len(shown)), 2.8), layout="constrained",
                                squeeze=False)
    axes = axes[0]
    axes[0].semilogy(history["iteration"], history["heldout_misfit"], color=BLUE, label="held-out, long windows")
    axes[0].semilogy(history["iteration"], history["loss"], color=GREY, lw=1, label="minibatch, windows of the stage")
    axes[0].set_ylabel("misfit")
    for panel, name in zip(axes[1:], shown):
        panel.plot(history["iteration"], history[name], color=INK)
        panel.set_ylabel(named(name))
    for panel in axes:
        panel.set_xlabel("iteration")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncol=2, fontsize=8)
    save(figure, "training")
