"""sticking.png, errors.png and single_entries.png: what a run of `study_noise` counted."""
import numpy as np
from style import BLUE, GREY, INK, ORANGE, PALE, SIGNED, TEAL, plt, read_arrays, save

NOISES = {"q": BLUE, "M": ORANGE, "M and q": INK, "mu": TEAL}
TITLES = {"rest": "at rest, no force", "held": "at rest, pushed", "random": "v and u at random",
          "data": "steps of the file"}


def panels(count, **keywords):
    figure, axes = plt.subplots(1, count, figsize=(2.6 * max(count, 2) + 0.6, 2.9), squeeze=False, sharey=True,
                                constrained_layout=True, **keywords)
    return figure, axes[0]


def legend(figure, axes):
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncol=len(labels), fontsize=8, handlelength=1.6,
                  columnspacing=1.2)


def noise(name):
    return r"noise in " + {"q": "$q$", "M": "$M$", "M and q": "$M$ and $q$", "mu": r"$\mu$"}[name]


def states_of(metrics):
    return list(dict.fromkeys(x["state"] for x in metrics["sticking_fraction"]))


def sticking(run, flags, metrics):
    records, states = metrics["sticking_fraction"], states_of(metrics)
    figure, all_axes = panels(len(states))
    for axes, state in zip(all_axes, states):
        of_state = [x for x in records if x["state"] == state]
        axes.axhline(of_state[0]["exact"], color=PALE, lw=4, zorder=1, label="without noise")
        for (name, color), size in zip(NOISES.items(), (8, 6, 4, 4)):  # those that coincide stay visible
            cells = sorted((x for x in of_state if x["noise"] == name), key=lambda x: x["sigma"])
            sigma = [x["sigma"] for x in cells]
            axes.plot(sigma, [x["lemke"] for x in cells], "o-", ms=size, color=color, label=noise(name))
            axes.plot(sigma, [x["any"] for x in cells], ":", color=color, lw=1)
        axes.plot([], [], ":", color=GREY, lw=1, label="in some solution")
        axes.set(title=TITLES[state], xscale="log", ylim=(-0.03, 1.03), xlabel=r"noise $\sigma$")
    all_axes[0].set_ylabel("steps that end at rest")
    legend(figure, all_axes[0])
    save(figure, "sticking")


def errors(run, flags, metrics):
    data, states = read_arrays(run / "errors.csv"), states_of(metrics)
    kind = {"q": (0, 1, 0), "M": (1, 0, 0), "M and q": (1, 1, 0), "mu": (0, 0, 1)}
    sigmas = np.stack([data["sigma_M"], data["sigma_q"], data["sigma_mu"]])
    figure, all_axes = panels(len(states), sharex=True)
    for k, axes in enumerate(all_axes):
        for name, color in NOISES.items():
            rows = (data["state"] == k) & ((sigmas > 0).T == np.array(kind[name], dtype=bool)).all(axis=1)
            for j, sigma in enumerate(np.unique(sigmas.max(axis=0)[rows])):
                one = rows & (sigmas.max(axis=0) == sigma)
                axes.plot(data["error_over_sigma"][one], data["probability"][one], color=color, lw=0.9, alpha=0.7,
                          label=None if j else noise(name))
        axes.set(title=TITLES[states[k]], xlim=(0, 4), xlabel=r"|error of $v_{k+1}$| / $\sigma \Delta t \mu g$")
    all_axes[0].set_ylabel("share of the solved steps,\none line for each $\\sigma$")
    legend(figure, all_axes[0])
    save(figure, "errors")


def single_entries(run, flags, metrics):
    data, singles = read_arrays(run / "single_entries.csv"), metrics["single_entries"]
    v_next = data["v_next"] / metrics["unit_velocity"]
    largest = max(abs(v_next).max(), 1e-12)
    figure, rows = plt.subplots(2, len(singles), figsize=(2.7 * len(singles) + 0.6, 4.2), constrained_layout=True)
    for k, single in enumerate(singles):
        for axes, sign in zip(rows[:, k], (1, -1)):
            chosen = (data["state"] == k) & (np.sign(data["change"]) == sign)
            grid = v_next[chosen].reshape(3, 4)
            image = axes.imshow(grid, cmap=SIGNED, vmin=-largest, vmax=largest)
            for (i, j), rests in np.ndenumerate(data["sticks"][chosen].reshape(3, 4)):
                axes.text(j, i, "0" if rests else f"{grid[i, j]:.2g}", ha="center", va="center", fontsize=7,
                          color=GREY if rests else "white" if abs(grid[i, j]) > largest / 2 + 1e-9 else INK)
            axes.grid(False)
            axes.axvline(2.5, color=INK, lw=0.8)
            axes.tick_params(length=0)
            axes.set_xticks(range(4), ["$M_{i1}$", "$M_{i2}$", "$M_{i3}$", "$q_i$"])
            axes.set_yticks(range(3), ["$i=1$", "2", "3"])
        rows[0, k].set_title(f"v = {single['v']:.3g} m/s, u = {single['u']:.3g} N\n"
                             f"at rest in {single['sticking']} of {single['changes']}", fontsize=9)
    change = max(data["change"])
    for axes, sign in zip(rows[:, 0], "+\u2212"):
        axes.set_ylabel(f"entry {sign} {change:g}")
    figure.colorbar(image, ax=rows, label=r"$v_{k+1} / \Delta t \mu g$", shrink=0.6)
    save(figure, "single_entries")
