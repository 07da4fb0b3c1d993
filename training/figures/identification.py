"""The figures of the identification programs: observed tracks and the fits to them."""
import math

from learning import load
from style import BLUE, GREY, INK, ORANGE, PALE, TEAL, plt, read_columns, run_folder, save, select

SHOWN = 3
COLORS = (BLUE, ORANGE, TEAL)


def path(axes, one):
    """The observed and the fitted positions of a body, and the fitted angle of a block that turns."""
    axes.plot(one["x"], one["y"], "o", color=GREY, ms=2.5, mew=0, alpha=0.6, label="observed")
    axes.plot(one["x_fit"], one["y_fit"], color=BLUE, lw=1.3, label="identified")
    if "theta_fit" in one:
        shown = slice(None, None, max(len(one["time"]) // 12, 1))
        x, y, theta = (one[name + "_fit"][shown] for name in ("x", "y", "theta"))
        axes.quiver(x, y, [math.cos(a) for a in theta], [math.sin(a) for a in theta], color=BLUE, width=0.004,
                    scale=14, headwidth=4)
    axes.set(xlabel="x [m]", ylabel="y [m]")


def residuals(axes, one, reach):
    """Observed minus identified coordinates; an angle is multiplied by the length `reach`."""
    for name, color in zip(("x", "y", "theta"), COLORS):
        if name in one:
            unit, label = (reach, f"{reach:g} m \u00d7 theta") if name == "theta" else (1, name)
            axes.plot(one["time"], [1e3 * unit * (a - b) for a, b in zip(one[name], one[name + "_fit"])], ".", ms=3,
                      color=color, label=label + " (residual)")
    axes.axhline(0, color=PALE, lw=1, zorder=0)
    axes.set(xlabel="time [s]", ylabel="observed \u2212 identified [mm]")


def legend(figure, axes):
    """One legend above the figure for all of these axes."""
    handles, labels = (sum(pair, []) for pair in zip(*(one.get_legend_handles_labels() for one in axes)))
    figure.legend(handles, labels, loc="outside upper left", ncol=len(labels), markerscale=1.8)


def rows_of(count):
    """A row of three panels for each of the first tracks."""
    count = min(SHOWN, count)
    return plt.subplots(count, 3, figsize=(9.6, 2.5 * count + 0.3), squeeze=False, constrained_layout=True)


def fit():
    """fit.png: tracks, residuals, and the objective over the friction coefficient with its confidence interval."""
    run = run_folder()
    flags, metrics = load(run)
    data, grid = read_columns(run / "fit.csv"), read_columns(run / "objective.csv")
    figure, rows = rows_of(len(metrics["mu"]))
    for k, (left, middle, objective) in enumerate(rows):
        one = select(data, "track", k)
        path(left, one)
        residuals(middle, one, flags.get("reach"))
        objective.plot(grid["mu"], grid[f"objective_{k}"], color=INK, lw=1.2)
        objective.set(xlabel="friction coefficient", ylabel="objective [m\u00b2]", yscale="log")
        mu, (low, high) = metrics["mu"][k], metrics["mu_interval"][k]
        if low is not None and high is not None:
            objective.axvspan(low, high, color=PALE, lw=0)
        objective.axvline(mu, color=BLUE, lw=1)
        std = metrics["mu_std"][k]
        objective.set_title(f"mu = {mu:.7g}" + ("" if std is None else f" \u00b1 {std:.1g}"), fontsize=9)
    legend(figure, rows[0][:2])
    save(figure, "fit")


def filtered():
    """filter.png: tracks, the filter's estimate of friction over time, and the number of distinct particles."""
    run = run_folder()
    flags, metrics = load(run)
    data, history = read_columns(run / "fit.csv"), read_columns(run / "history.csv")
    figure, rows = rows_of(len(metrics["mu"]))
    for k, (left, middle, right) in enumerate(rows):
        path(left, select(data, "track", k))
        one = select(history, "track", k)
        low, high = ([m + sign * 2 * s for m, s in zip(one["mu"], one["mu_std"])] for sign in (-1, 1))
        middle.fill_between(one["time"], low, high, color=BLUE, alpha=0.2, lw=0, label="mu \u00b1 2 standard deviations")
        middle.plot(one["time"], one["mu"], color=BLUE, lw=1.2)
        if not flags["data"]:
            middle.axhline(flags["mu"], color=INK, lw=1, ls=":", label="true mu")
        middle.set(xlabel="time [s]", ylabel="friction coefficient")
        right.step(one["time"], one["distinct_particles"], color=ORANGE, where="post", label="distinct particles")
        right.plot(one["time"], one["effective_particles"], ".", color=GREY, ms=2.5, label="effective particles")
        right.set(xlabel="time [s]", ylabel="particles", yscale="log", ylim=(0.8, 1.3 * flags["particles"]))
    legend(figure, rows[0])
    save(figure, "filter")


def study():
    """study.png: the friction that other models identify, for runs with --study."""
    run = run_folder()
    flags, metrics = load(run)
    if not flags["study"]:
        return
    data = read_columns(run / "study.csv")
    figure, panels = plt.subplots(1, 2, figsize=(6.4, 2.6), sharey=True, constrained_layout=True)
    for axes, name, fixed, label in zip(panels, ("directions", "com_height"), ("com_height", "directions"),
                                        ("directions", "height of the centre of mass [m]")):
        alike = select(data, fixed, flags[fixed.replace("_", "-")])
        for k in range(min(SHOWN, len(metrics["mu"]))):
            one = select(alike, "track", k)
            axes.errorbar(one[name], one["mu"], [2 * s for s in one["mu_std"]], fmt="o", ms=4, color=COLORS[k], lw=1,
                          label=f"track {k}")
        if not flags["data"] and len(metrics["mu"]) == 1:
            axes.axhline(flags["mu"], color=INK, lw=1, ls=":", label="true mu")
        axes.set_xlabel("model: " + label)
    panels[0].set(ylabel="identified mu", xscale="log", xticks=[4, 8, 16, 32], xticklabels=[4, 8, 16, 32])
    panels[0].minorticks_off()
    panels[0].legend(fontsize=8)
    save(figure, "study")
