"""The figures of the identification programs: observed tracks and the fits to them."""
import numpy as np
from style import BLUE, GREY, INK, ORANGE, PALE, TEAL, plt, read_arrays, save, select

SHOWN = 3
COLORS = (BLUE, ORANGE, TEAL)


def over_time(axes, one, name, unit):
    """A coordinate, observed and fitted, over time."""
    axes.plot(one["time"], one[name + "_fit"], color=BLUE, lw=1.2, label="identified")
    axes.plot(one["time"], one[name], "o", color=INK, mfc="none", ms=3, mew=0.5, label="observed")
    axes.set(xlabel="time [s]", ylabel=f"{name} [{unit}]")


def pose(axes, one, supports):
    """The path of a block, in equal scales, with the triangle of its supports at some times."""
    corners = np.array(supports).reshape(3, 2) @ (1, 1j)
    centre = one["x_fit"] + 1j * one["y_fit"]
    triangles = centre[:, None] + np.exp(1j * one["theta_fit"])[:, None] * corners[[0, 1, 2, 0]]
    # As many as fit beside one another, at equal distances along the path and the turns.
    travelled = np.append(0, np.cumsum(np.abs(np.diff(centre)) + 0.5 * np.abs(np.diff(triangles[:, 0] - centre))))
    count = int(np.clip(travelled[-1] / np.abs(corners).max(), 1, 8))
    for k in np.searchsorted(travelled, np.linspace(0, travelled[-1], count + 1)):
        axes.plot(triangles[k].real, triangles[k].imag, color=BLUE, lw=0.7, alpha=0.6, label="supports, one dotted")
        axes.plot(triangles[k, 0].real, triangles[k, 0].imag, "o", color=BLUE, ms=2.5, mew=0)  # the first support
    axes.plot(one["x_fit"], one["y_fit"], color=BLUE, lw=1.2, label="identified")
    axes.plot(one["x"], one["y"], "o", color=INK, mfc="none", ms=3, mew=0.5, label="observed")
    axes.set(xlabel="x [m]", ylabel="y [m]")
    axes.set_aspect("equal", adjustable="datalim")


def motion(left, right, one, flags):
    """Two panels: x and y of a particle over time, or the path of a block and its angle over time."""
    if "theta" in one:
        pose(left, one, flags["supports"])
        over_time(right, one, "theta", "rad")
    else:
        over_time(left, one, "x", "m")
        over_time(right, one, "y", "m")


def residuals(axes, one, reach):
    """Observed minus identified coordinates; an angle is multiplied by the length `reach`."""
    for name, color in zip(("x", "y", "theta"), COLORS):
        if name in one:
            unit, label = (reach, f"{reach:g} m \u00d7 theta") if name == "theta" else (1, name)
            axes.plot(one["time"], 1e3 * unit * (one[name] - one[name + "_fit"]), ".", ms=3, color=color,
                      label=label + " (residual)")
    axes.axhline(0, color=PALE, lw=1, zorder=0)
    axes.set(xlabel="time [s]", ylabel="observed \u2212 identified [mm]")


def legend(figure, axes):
    """One legend above the figure for all of these axes, with each label once."""
    handles, labels = (sum(pair, []) for pair in zip(*(one.get_legend_handles_labels() for one in axes)))
    first = dict(zip(reversed(labels), reversed(handles)))
    shown = list(dict.fromkeys(labels))
    figure.legend([first[label] for label in shown], shown, loc="outside upper left", ncol=len(shown), markerscale=1.8)


def rows_of(count):
    """A row of four panels for each of the first tracks."""
    count = min(SHOWN, count)
    return plt.subplots(count, 4, figsize=(12, 2.5 * count + 0.3), squeeze=False, constrained_layout=True)


def fit(run, flags, metrics):
    """fit.png: tracks, residuals, and the objective over the friction coefficient with its confidence interval."""
    if metrics["mu"] is None:  # Ipopt did not solve the program
        return
    data, grid = read_arrays(run / "fit.csv"), read_arrays(run / "objective.csv")
    figure, rows = rows_of(len(metrics["mu"]))
    for k, (left, right, errors, objective) in enumerate(rows):
        one = select(data, "track", k)
        motion(left, right, one, flags)
        residuals(errors, one, flags.get("reach"))
        objective.plot(grid["mu"], grid[f"objective_{k}"], color=INK, lw=1.2)
        objective.set(xlabel="friction coefficient", ylabel="objective [m\u00b2]", yscale="log")
        mu, (low, high) = metrics["mu"][k], metrics["mu_interval"][k]
        if low is not None:
            objective.axvspan(low, grid["mu"][-1] if high is None else high, color=PALE, lw=0)
        objective.axvline(mu, color=BLUE, lw=1)
        std = metrics["mu_std"][k]
        decimals = 7 if not std else int(np.clip(1 - np.floor(np.log10(std)), 0, 12))
        objective.set_title(f"mu = {mu:.{decimals}f}" + ("" if std is None else f" \u00b1 {std:.1g}"), fontsize=9)
    legend(figure, rows[0][:3])
    save(figure, "fit")


def program(run, flags, metrics):
    """motion.png: the forces and the residuals of the motion that an MPEC found, and the iterations that led there."""
    data, history = read_arrays(run / "motion.csv"), read_arrays(run / "history.csv")
    count = min(SHOWN, int(max(data["track"])) + 1)
    figure, rows = plt.subplots(count, 3, figsize=(9.6, 2.6 * count + 0.3), squeeze=False, constrained_layout=True)
    for k, (forces, errors, iterations) in enumerate(rows):
        one = select(data, "track", k)
        for name, color in (("normal", TEAL), ("friction", ORANGE), ("friction_x", ORANGE), ("friction_y", BLUE)):
            if name in one:
                forces.plot(one["time"], one[name], ".-", ms=3, lw=0.8, color=color, label=name.replace("_", " along "))
        forces.set_yscale("symlog", linthresh=1)
        forces.set(xlabel="time [s]", ylabel="force [N]")
        for name, color, label in (("product", INK, "largest product of a pair"),
                                   ("residual", BLUE, "distance from the exact step [m/s]")):
            errors.semilogy(one["time"], np.maximum(one[name], 1e-17), ".", ms=3, color=color, label=label)
        errors.set(xlabel="time [s]", ylabel="residuals of the steps")
        if k > 0:
            iterations.set_axis_off()
    iterations = rows[0][2]
    for name, color, label in (("objective", GREY, "objective with the penalty [m\u00b2]"),
                               ("infeasibility", PALE, "violation of the constraints")):
        iterations.semilogy(history["iteration"], np.maximum(history[name], 1e-12), color=color, lw=1, label=label)
    for k in np.flatnonzero(np.diff(history["start"])):
        iterations.axvline(history["iteration"][k + 1], color=INK, lw=0.7, ls=":")
    iterations.set(xlabel="iteration" + (", dotted: another start" if history["start"][-1] > 0 else ""))
    iterations.set_title(metrics["status"], fontsize=9)
    figure.legend(*map(sum, zip(*(one.get_legend_handles_labels() for one in rows[0])), ([], [])),
                  loc="outside upper left", ncol=3, fontsize=8)
    save(figure, "motion")


def online(run, flags, metrics, name, effort):
    """A figure of the estimates after each observation: tracks, friction over time, and what `effort` draws."""
    data, history = read_arrays(run / "fit.csv"), read_arrays(run / "history.csv")
    figure, rows = rows_of(len(metrics["mu"]))
    for k, (x, y, middle, right) in enumerate(rows):
        motion(x, y, select(data, "track", k), flags)
        one = select(history, "track", k)
        label = "mu \u00b1 2 standard deviations" + (" and the bias of the time steps" if flags["data"] else "")
        middle.fill_between(one["time"], one["mu_low"], one["mu_high"], color=BLUE, alpha=0.2, lw=0, label=label)
        middle.plot(one["time"], one["mu"], color=BLUE, lw=1.2)
        if not flags["data"] and len(metrics["mu"]) == 1:
            middle.axhline(flags["mu"], color=INK, lw=1, ls=":", label="true mu")
        middle.set(xlabel="time [s]", ylabel="friction coefficient")
        effort(right, one, flags)
        right.set(xlabel="time [s]")
    legend(figure, rows[0])
    save(figure, name)


def filtered(run, flags, metrics):
    """filter.png: the estimates of a filter, and the number of its distinct particles or its uncertainty."""

    def particles(axes, one, flags):
        axes.step(one["time"], one["distinct_particles"], color=ORANGE, where="post", label="distinct particles")
        axes.plot(one["time"], one["effective_particles"], ".", color=GREY, ms=2.5, label="effective particles")
        axes.set(ylabel="particles", yscale="log", ylim=(0.8, 1.3 * flags["particles"]))

    def deviation(axes, one, flags):
        axes.semilogy(one["time"], np.maximum(one["mu_std"], 1e-12), color=ORANGE, label="standard deviation of mu")
        if not flags["data"] and len(metrics["mu"]) == 1:
            axes.semilogy(one["time"], np.abs(one["mu"] - flags["mu"]), ".", color=GREY, ms=2.5, label="error of mu")

    online(run, flags, metrics, "filter", particles if flags["filter"] == "particle" else deviation)


def horizon(run, flags, metrics):
    """horizon.png: the estimates of a moving horizon, and the iterations after each observation."""

    def iterations(axes, one, flags):
        axes.plot(one["time"], one["iterations"], ".", color=ORANGE, ms=4, label="iterations")
        axes.set(ylabel="iterations", ylim=(0, None))

    online(run, flags, metrics, "horizon", iterations)


def study(run, flags, metrics):
    """study.png: the friction that other models identify, for runs with --study."""
    if not flags["study"]:
        return
    data = read_arrays(run / "study.csv")
    figure, panels = plt.subplots(1, 2, figsize=(6.4, 2.6), sharey=True, constrained_layout=True)
    for axes, name, fixed, label in zip(panels, ("directions", "com_height"), ("com_height", "directions"),
                                        ("directions", "height of the centre of mass [m]")):
        alike = select(data, fixed, flags[fixed.replace("_", "-")])
        for k in range(min(SHOWN, len(metrics["mu"]))):
            one = select(alike, "track", k)
            axes.errorbar(one[name], one["mu"], 2 * one["mu_std"], fmt="o", ms=4, color=COLORS[k], lw=1,
                          label=f"track {k}")
        if not flags["data"] and len(metrics["mu"]) == 1:
            axes.axhline(flags["mu"], color=INK, lw=1, ls=":", label="true mu")
        axes.set_xlabel("model: " + label)
    panels[0].set(ylabel="identified mu", xscale="log", xticks=[4, 8, 16, 32], xticklabels=[4, 8, 16, 32])
    panels[0].minorticks_off()
    panels[0].legend(fontsize=8)
    save(figure, "study")
