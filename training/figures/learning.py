"""The figures of the training programs: rollouts of the learned block, loss and error during training."""
from style import BLUE, GREY, INK, LEAST, ORANGE, SIGNED, np, plt, read_arrays, save, select, shade_sticking
from style import show_zero

SHOWN = 3
TERMS = (r"$\lambda^+$", r"$\lambda^-$", r"$\gamma$", "$v$", "$u$", "1")
SAME = 1e-6  # an entry whose range is smaller counts as unique
COLORS = {"prediction": BLUE, "complementarity": ORANGE, "nonnegativity": GREY, "loss": INK}


def rollout(run, flags, metrics):
    """rollout.png: the velocities of the learned block and of the exact one, and the error below them."""
    if not (run / "rollouts.csv").exists():
        return  # the data are not those of the block of the flags
    data = read_arrays(run / "rollouts.csv")
    figure, panels = plt.subplots(2 * SHOWN, 1, figsize=(6.4, 2.3 * SHOWN + 0.6), sharex=True, constrained_layout=True,
                                  gridspec_kw={"height_ratios": [2, 1] * SHOWN})
    for k, (axes, errors) in enumerate(zip(panels[::2], panels[1::2])):
        one = select(data, "rollout", k)
        for panel in (axes, errors):
            band = shade_sticking(panel, one["time"], one["v_exact"], flags["dt"])
        time = np.append(one["time"][0] - flags["dt"], one["time"])
        for name, style in (("v_exact", {"color": GREY, "lw": 4, "alpha": 0.5, "label": "exact Coulomb friction"}),
                            ("v_model", {"color": BLUE, "marker": ".", "ms": 4, "lw": 1.2, "label": "learned LCP"})):
            axes.plot(time, np.append(one["v_start"][0], one[name]), **style)
        axes.set_ylabel("velocity [m/s]")
        errors.semilogy(one["time"], np.maximum(abs(one["v_model"] - one["v_exact"]), LEAST), ".", color=BLUE, ms=4)
        errors.set(ylabel="error [m/s]", ylim=(LEAST / 10, 10))
        show_zero(errors.yaxis)
        if k == 0:
            handles, labels = axes.get_legend_handles_labels()
            if band:
                handles, labels = handles + [band], labels + ["step ends at rest"]
            figure.legend(handles, labels, loc="outside upper center", ncol=3)
    panels[-1].set_xlabel("time [s]")
    figure.align_ylabels(panels)
    error = metrics["rollout_rmse"]
    result = "some steps unsolved" if error is None else f"rmse {error:.1e} m/s"
    panels[0].set_title(f"50 steps from the start alone, random forces; {result}", fontsize=9)
    save(figure, "rollout")


def reference(axes, flags, name):
    """A line for the parameter of the flags: the true one of simulated data, and of recorded data that of the flag."""
    whose = f"--{name}" if flags["data"] else "truth:"
    axes.axhline(flags[name], color=GREY, lw=1, ls="--", label=f"{whose} {flags[name]:g}")


def positive(axes, history, name):
    """A column over the iterations, on a logarithmic axis, at whose lower end 0 is drawn and what is less by round-off."""
    axes.semilogy(history["iteration"], np.maximum(history[name], LEAST), color=BLUE)
    if (history[name] <= LEAST).any():
        show_zero(axes.yaxis)
    if np.isnan(history[name]).any():
        axes.set_title("gaps: steps without a solution", fontsize=8)


def result(axes, history, metrics, name):
    """A point at the end for the result, where steps after the last iteration have changed it."""
    value = metrics[name]
    if isinstance(value, float) and max(value, LEAST) != max(history[name][-1], LEAST):
        axes.plot(history["iteration"][-1], max(value, LEAST), "o", color=ORANGE, ms=4, clip_on=False, zorder=3,
                  label=f"in the end: {value:.2g}")
        axes.legend(fontsize=8)


def training(run, metrics, terms, unit):
    """training.png: the columns `terms` of history.csv, in `unit`, or of a loss that has no such terms itself, and the
    held-out error."""
    history = read_arrays(run / "history.csv")
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.0), constrained_layout=True)
    shown = [name for name in terms if name in history]
    for name in shown or ["loss"]:
        left.semilogy(history["iteration"], history[name], color=COLORS[name], label=name)
    left.set_xlabel("iteration")
    left.set_ylabel(f"loss terms [{unit}]" if shown else "loss [dimensionless]")
    if shown:
        figure.legend(*left.get_legend_handles_labels(), loc="outside upper left", ncol=len(shown))
    positive(right, history, "heldout_rmse")
    result(right, history, metrics, "heldout_rmse")
    right.set_xlabel("iteration")
    right.set_ylabel("held-out rmse of the LCP [m/s]")
    save(figure, "training")


def direct(run, flags, metrics):
    if not flags.get("study"):
        training(run, metrics, ("prediction", "complementarity", "nonnegativity"), "m/s")


def penalty(run, flags, metrics):
    training(run, metrics, ("complementarity", "nonnegativity"), "dimensionless")


def friction(run, flags, metrics):
    """training.png: loss, friction coefficient and held-out error of a run that learns friction from motion."""
    history = read_arrays(run / "history.csv")
    if "zero_gradient_fraction" in history:
        history["zero_gradient_fraction"] *= 100
    panels = [("loss", "loss [dimensionless]"), ("mu", "friction coefficient"),
              ("zero_gradient_fraction", "samples without a gradient [%]"), ("heldout_rmse", "held-out rmse [m/s]")]
    panels = [(name, label) for name, label in panels if name in history]
    figure, axes = plt.subplots(1, len(panels), figsize=(2.9 * len(panels), 2.8), constrained_layout=True)
    for panel, (name, label) in zip(axes, panels):
        negative = min(history[name]) < -1e-12  # by more than round-off
        if name in ("loss", "heldout_rmse") and not negative:
            positive(panel, history, name)
        else:
            panel.plot(history["iteration"], history[name], color=BLUE)
        panel.set_xlabel("iteration")
        panel.set_ylabel(label)
        if name in ("mu", "heldout_rmse"):
            result(panel, history, metrics, name)
        if name == "mu":
            reference(panel, flags, "mu")
            panel.legend(fontsize=8)
        elif name == "zero_gradient_fraction":
            panel.set_ylim(-3, 103)
        elif negative:
            panel.set_yscale("symlog", linthresh=1e-6)
    save(figure, "training")


def short(x):
    return f"{0.0 if abs(x) < SAME else x:.3g}".replace("-", "\u2212")


def interval(lower, upper):
    left = "(\u2212\u221e" if lower is None else "[" + short(lower)
    right = "\u221e)" if upper is None else short(upper) + "]"
    return f"{left}, {right}"


def heat_map(axes, rows, title, families=None):
    """[M|W], 3 x 6, with its numbers, and the ranges of entries that the data do not determine."""
    axes.imshow(rows, cmap=SIGNED, vmin=-1.5, vmax=1.5, aspect=0.62)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.set_xticks(range(6), TERMS)
    axes.set_yticks(range(3), (r"$w_1$", r"$w_2$", r"$w_3$"))
    axes.tick_params(length=0)
    axes.axvline(2.5, color=INK, lw=1)
    axes.set_title(title, fontsize=9)
    for (i, j), value in np.ndenumerate(rows):
        axes.text(j, i, short(value), ha="center", va="center", fontsize=8,
                  color="white" if abs(value) > 1.1 else INK)
        if families is None:
            continue
        lower, upper = families[i]["lower"][j], families[i]["upper"][j]
        if lower is None or upper is None or upper - lower > SAME:
            axes.add_patch(plt.Rectangle((j - 0.47, i - 0.46), 0.94, 0.92, fill=False, ec=INK, ls=(0, (2, 2)), lw=0.8))
            axes.text(j, i + 0.33, interval(lower, upper), ha="center", va="center", fontsize=6,
                      color="white" if abs(value) > 1.1 else INK)


def both_rows(learned, truth, title, units, families=None):
    """rows.png: two matrices beside each other."""
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 2.1), constrained_layout=True)
    heat_map(axes[0], np.array(learned), title, families)
    heat_map(axes[1], np.array(truth), "of the block")
    figure.supxlabel(units, fontsize=8)
    save(figure, "rows")


def rows(run, flags, metrics):
    """rows.png: the learned [M|W] beside a true block's, in units of mu m g and dt mu g."""
    truth = [[1, -1, 1, 1, 1, 0], [-1, 1, 1, -1, -1, 0], [-1, -1, 0, 0, 0, 1]]
    both_rows(metrics["rows"], truth, "learned [M | W]", "forces in units of mu m g, velocities of dt mu g")


def fitted_rows(run, flags, metrics):
    """rows.png: fitted and true M and W, with the ranges of entries that are not unique."""
    families = metrics["families"]
    many = any(family["dimension"] > 0 for family in families)
    units = "forces in units of {:.3g} N, velocities of {:.3g} m/s".format(metrics["force_unit"], metrics["velocity_unit"])
    both_rows(metrics["rows_in_units"], metrics["true_rows_in_units"],
              "fitted [M | W]" + ("; dashed: not determined" if many else ""), units, families)


def compliant(run, flags, metrics):
    """training.png: the loss, the friction and the stiffness of a run that learns compliant ground."""
    history = read_arrays(run / "history.csv")
    figure, (loss, mu, stiffness) = plt.subplots(1, 3, figsize=(8.6, 2.8), layout="constrained")
    loss.semilogy(history["iteration"], history["loss"], color=BLUE)
    loss.set(xlabel="iteration", ylabel="loss [dimensionless]")
    for axes, name, label in ((mu, "mu", "friction coefficient"), (stiffness, "stiffness", "stiffness [N/m]")):
        axes.plot(history["iteration"], history[name], color=BLUE)
        reference(axes, flags, name)
        axes.set(xlabel="iteration", ylabel=label, ylim=(0, None))
        axes.legend(fontsize=8)
    rigid = metrics["lcp_gradient_at_start"]
    known = "" if rigid is None else f"; {rigid:.3g} on rigid ground, by the LCP"
    figure.suptitle(rf"$\partial$ loss / $\partial\mu$ at the start: {metrics['gradient_at_start']:.3g}{known}", fontsize=9)
    save(figure, "training")
