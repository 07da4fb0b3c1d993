"""The figures of the training programs: rollouts of the learned block, loss and error during training."""
import json

from style import BLUE, GREY, INK, ORANGE, TEAL, plt, read_columns, run_folder, save, select, shade_sticking

SHOWN = 3
LEAST_ERROR = 1e-17  # m/s
COLORS = (BLUE, ORANGE, GREY, TEAL, INK)


def load(run):
    """A run's flags and metrics."""
    return (json.loads((run / name).read_text()) for name in ("config.json", "metrics.json"))


def draw(*figures):
    """The figures of the run that the command line names."""
    run = run_folder()
    flags, metrics = load(run)
    for figure in figures:
        figure(run, flags, metrics)


def rollout(run, flags, metrics):
    """rollout.png: the velocities of the learned block and of the exact one, and the error below them."""
    if not (run / "rollouts.csv").exists():
        return  # the data are not those of the block of the flags
    data = read_columns(run / "rollouts.csv")
    figure, panels = plt.subplots(2 * SHOWN, 1, figsize=(6.4, 2.3 * SHOWN + 0.6), sharex=True, constrained_layout=True,
                                  gridspec_kw={"height_ratios": [2, 1] * SHOWN})
    for k, (axes, errors) in enumerate(zip(panels[::2], panels[1::2])):
        one = select(data, "rollout", k)
        for panel in (axes, errors):
            band = shade_sticking(panel, one["time"], one["v_exact"], flags["dt"])
        time = [one["time"][0] - flags["dt"]] + one["time"]
        start = one["v_start"][:1]
        axes.plot(time, start + one["v_exact"], color=GREY, lw=4, alpha=0.5, label="exact Coulomb friction")
        axes.plot(time, start + one["v_model"], color=BLUE, marker=".", ms=4, lw=1.2, label="learned LCP")
        axes.set_ylabel("velocity [m/s]")
        # What is exact has no place on a logarithmic axis: it is drawn at its lower end.
        errors.semilogy(one["time"], [max(abs(a - b), LEAST_ERROR) for a, b in zip(one["v_model"], one["v_exact"])],
                        ".", color=BLUE, ms=4)
        errors.set(ylabel="error [m/s]", ylim=(LEAST_ERROR, 10), yticks=[1e-16, 1e-8, 1])
        errors.minorticks_off()
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


def training(terms, unit):
    """Returns a function that draws training.png: the columns `terms` of history.csv, in `unit`, and the held-out error."""

    def figure_of(run, flags, metrics):
        history = read_columns(run / "history.csv")
        figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.0), constrained_layout=True)
        for name, color in zip(terms, COLORS):
            left.semilogy(history["iteration"], history[name], color=color, label=name.replace("_", " "))
        left.set_xlabel("iteration")
        left.set_ylabel(f"loss terms [{unit}]")
        figure.legend(*left.get_legend_handles_labels(), loc="outside upper left", ncol=len(terms))
        right.semilogy(history["iteration"], history["heldout_rmse"], color=BLUE)
        right.set_xlabel("iteration")
        right.set_ylabel("held-out rmse of the LCP [m/s]")
        save(figure, "training")

    return figure_of


def friction(run, flags, metrics):
    """training.png: loss, friction coefficient and held-out error of a run that learns friction from motion."""
    history = read_columns(run / "history.csv")
    panels = [("loss", "loss [dimensionless]"), ("mu", "friction coefficient"),
              ("zero_gradient_fraction", "samples without a gradient"), ("heldout_rmse", "held-out rmse [m/s]")]
    panels = [(name, label) for name, label in panels if name in history]
    figure, axes = plt.subplots(1, len(panels), figsize=(2.9 * len(panels), 2.8), constrained_layout=True)
    for panel, (name, label) in zip(axes, panels):
        panel.plot(history["iteration"], history[name], color=BLUE)
        panel.set_xlabel("iteration")
        panel.set_ylabel(label)
        if name == "mu":
            panel.axhline(flags["mu"], color=GREY, lw=1, ls="--", label=f"--mu {flags['mu']:g}")
            panel.legend(fontsize=8)
        elif name == "zero_gradient_fraction":
            panel.set_ylim(-0.03, 1.03)
        else:
            panel.set_yscale("symlog" if min(history[name]) < -1e-12 else "log",
                             **({"linthresh": 1e-6} if min(history[name]) < -1e-12 else {"nonpositive": "mask"}))
    save(figure, "training")


def rows(run, flags, metrics):
    """rows.png: the learned [M|W] beside a true block's, in units of mu m g and dt mu g."""
    truth = [[1, -1, 1, 1, 1, 0], [-1, 1, 1, -1, -1, 0], [-1, -1, 0, 0, 0, 1]]
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.3), constrained_layout=True, sharey=True)
    for panel, numbers, title in zip(axes, (truth, metrics["rows"]), ("true block", "learned")):
        panel.imshow(numbers, cmap="RdBu_r", vmin=-2, vmax=2, aspect="auto")
        panel.set_xticks(range(6), [r"$\lambda_+$", r"$\lambda_-$", r"$\gamma$", "$v$", "$u$", "1"])
        panel.set_yticks(range(3), [r"$\perp \lambda_+$", r"$\perp \lambda_-$", r"$\perp \gamma$"])
        panel.grid(False)
        panel.axvline(2.5, color=INK, lw=1)
        panel.set_title(title, fontsize=9)
        for i, row in enumerate(numbers):
            for j, number in enumerate(row):
                panel.text(j, i, f"{number:.3g}", ha="center", va="center", fontsize=7,
                           color="white" if abs(number) > 1.3 else INK)
    save(figure, "rows")
