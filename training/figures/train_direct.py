"""rollout.png: the learned block beside the exact one; training.png: how it was learned."""
import json

from style import BLUE, GREY, ORANGE, plt, read_columns, run_folder, save, select, shade_sticking

SHOWN = 3


def rollout(run, flags, metrics):
    data = read_columns(run / "rollouts.csv")
    figure, rows = plt.subplots(SHOWN, 1, figsize=(6.4, 1.7 * SHOWN + 0.6), sharex=True, constrained_layout=True)
    for k, axes in enumerate(rows):
        one = select(data, "rollout", k)
        band = shade_sticking(axes, one["time"], one["v_exact"], flags["dt"])
        time = [0.0] + one["time"]
        start = one["v_start"][:1]
        axes.plot(time, start + one["v_exact"], color=GREY, lw=4, alpha=0.5, label="exact Coulomb friction")
        axes.plot(time, start + one["v_model"], color=BLUE, marker=".", ms=4, lw=1.2, label="learned LCP")
        axes.set_ylabel("velocity [m/s]")
        if k == 0:
            handles, labels = axes.get_legend_handles_labels()
            if band:
                handles, labels = handles + [band], labels + ["step ends at rest"]
            figure.legend(handles, labels, loc="outside upper center", ncol=3)
    rows[-1].set_xlabel("time [s]")
    error = metrics["rollout_rmse"]
    result = "some steps unsolved" if error is None else f"rmse {error:.1e} m/s"
    rows[0].set_title(f"50 steps from the start alone, random forces; {result}", fontsize=9)
    save(figure, run, "rollout")


def training(run):
    history = read_columns(run / "history.csv")
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.0), constrained_layout=True)
    for name, color in (("prediction", BLUE), ("complementarity", ORANGE), ("nonnegativity", GREY)):
        left.semilogy(history["iteration"], history[name], color=color, label=name)
    left.set_xlabel("iteration")
    left.set_ylabel("loss terms, unweighted [m/s]")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper left", ncol=3)
    right.semilogy(history["iteration"], history["heldout_rmse"], color=BLUE)
    right.set_xlabel("iteration")
    right.set_ylabel("held-out rmse of the LCP [m/s]")
    save(figure, run, "training")


def main():
    run = run_folder()
    flags = json.loads((run / "config.json").read_text())
    metrics = json.loads((run / "metrics.json").read_text())
    rollout(run, flags, metrics)
    training(run)


main()
