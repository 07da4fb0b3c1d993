"""What the programs that identify particles draw alike: tracks and what was identified of them."""
from learning import load
from style import BLUE, GREY, INK, ORANGE, PALE, plt, read_columns, run_folder, save, select

SHOWN = 3


def fit():
    """fit.png: tracks, what is left of them, and how sure the friction is."""
    run = run_folder()
    flags, metrics = load(run)
    data, grid = read_columns(run / "fit.csv"), read_columns(run / "objective.csv")
    count = min(SHOWN, len(metrics["mu"]))
    figure, rows = plt.subplots(count, 3, figsize=(9.6, 2.5 * count + 0.3), squeeze=False, constrained_layout=True)
    for k, (path, error, objective) in enumerate(rows):
        one = select(data, "track", k)
        path.plot(one["x"], one["y"], "o", color=GREY, ms=2.5, mew=0, alpha=0.6, label="observed")
        path.plot(one["x_fit"], one["y_fit"], color=BLUE, lw=1.3, label="identified")
        path.set(xlabel="x [m]", ylabel="y [m]")
        for name, color in (("x", BLUE), ("y", ORANGE)):
            error.plot(one["time"], [1e3 * (a - b) for a, b in zip(one[name], one[name + "_fit"])], ".", ms=3,
                       color=color, label=name)
        error.axhline(0, color=PALE, lw=1, zorder=0)
        error.set(xlabel="time [s]", ylabel="observed \u2212 identified [mm]")
        objective.plot(grid["mu"], grid[f"objective_{k}"], color=INK, lw=1.2)
        objective.set(xlabel="friction coefficient", ylabel="objective [m\u00b2]", yscale="log")
        mu, (low, high) = metrics["mu"][k], metrics["mu_interval"][k]
        if low is not None and high is not None:
            objective.axvspan(low, high, color=PALE, lw=0)
        objective.axvline(mu, color=BLUE, lw=1)
        std = metrics["mu_std"][k]
        objective.set_title(f"mu = {mu:.7g}" + ("" if std is None else f" \u00b1 {std:.1g}"), fontsize=9)
    handles, labels = (sum(pair, []) for pair in zip(*(axes.get_legend_handles_labels() for axes in rows[0][:2])))
    figure.legend(handles, [name + " (residual)" if name in "xy" else name for name in labels], loc="outside upper left",
                  ncol=4, markerscale=1.8)
    save(figure, run, "fit")
