"""table.png: the error of the identified friction over the noise, and the filter's number of distinct particles;
estimators.png: trajectories and velocities of all estimators beside the observations."""
import numpy as np
from style import BLUE, GREY, INK, ORANGE, PALE, TEAL, plt, read_arrays, save, show_zero

SHOWN = {"MPEC": BLUE, "filter, roughened": ORANGE, "moving horizon": TEAL}


def estimators(run, flags, metrics):
    """estimators.png: the block on three supports with process noise, as each estimator sees it."""
    rows = [row for row in metrics["estimators"] if (row["system"], row["process_noise"]) == ("tripod", "0.3")]
    runs = {row["estimator"]: read_arrays(run / row["folder"] / "fit.csv") for row in rows if row["estimator"] in SHOWN}
    names = {"x": "m", "theta": "rad", "v_x": "m/s", "omega": "rad/s"}
    figure, axes = plt.subplots(2, len(names), figsize=(12, 4.6), sharex=True, constrained_layout=True)
    one = next(iter(runs.values()))
    time, position = one["time"], {"v_x": "x", "omega": "theta"}
    for (shown, errors), (name, unit) in zip(axes.T, names.items()):
        truth = one[name + "_true"]
        if name in position:
            seen, at = np.diff(one[position[name]]) / np.diff(time), time[1:]
        else:
            seen, at = one[name], time
        shown.plot(at, seen, "o", color=INK, mfc="none", ms=3, mew=0.5, label="observed, or its differences")
        shown.plot(time, truth, color=PALE, lw=4, zorder=0, label="truth")
        errors.semilogy(at, np.abs(seen - truth[-len(at):]), "o", color=INK, mfc="none", ms=3, mew=0.5)
        for estimator, data in runs.items():
            shown.plot(time, data[name + "_fit"], color=SHOWN[estimator], lw=1.1, label=estimator)
            errors.semilogy(time, np.maximum(np.abs(data[name + "_fit"] - truth), 1e-9), color=SHOWN[estimator], lw=1)
        if name in position:  # a velocity, whose error is exactly 0 at rest
            show_zero(errors.yaxis, 1e-9)
        shown.set_ylabel(f"{name} [{unit}]")
        errors.set(xlabel="time [s]", ylabel=f"error [{unit}]")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper left", ncol=5)
    save(figure, "estimators")


def table(run, flags, metrics):
    """table.png."""
    rows = metrics["by_noise"]
    noise = [row["noise"] for row in rows]
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.7), constrained_layout=True)
    left.loglog(noise, [abs(row["mu"] - 0.2) for row in rows], "o-", color=BLUE, label="shooting")
    left.loglog(noise, [row["mu_std"] for row in rows], "--", color=GREY, label="its predicted standard deviation")
    apart = [row["mpec_difference"] for row in rows]
    if None not in apart:
        left.loglog(noise, apart, "s-", ms=4, color=INK, label="difference of MPEC and shooting")
    left.loglog(noise, [abs(row["filter_mu"] - 0.2) for row in rows], "^-", ms=4, color=ORANGE, label="particle filter")
    left.set(xlabel="noise [m]", ylabel="error of the friction coefficient")
    for k, (marker, label) in enumerate((("o-", "at the first contact"), ("s-", "at the end"))):
        right.loglog(noise, [row["distinct_particles"][k] for row in rows], marker, ms=4, color=(ORANGE, INK)[k],
                     label=label)
    right.set(xlabel="noise [m]", ylabel="distinct particles of 500", ylim=(0.8, 600))
    right.legend(fontsize=7)
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper left", ncol=4, fontsize=8)
    save(figure, "table")
