"""rollout.png: the learned network and the black box beside the truth; search.png: errors in each round of the search."""
from learning import draw
from style import BLUE, GREY, INK, ORANGE, STICKING, plt, read_columns, run_folder, save, select, shade

SHOWN = 2
STEPS = 60


def rollout(run, flags, metrics):
    """rollout.png: velocities of some rollouts, and the errors below them."""
    data = read_columns(run / "rollouts.csv")
    velocities = [name[: -len("_network")] for name in data if name.endswith("_network")]
    columns = min(len(velocities), 2)
    figure, axes = plt.subplots(2 * SHOWN, columns, figsize=(4.6 * columns + 1.8, 2.3 * SHOWN + 0.8), sharex=True,
                                squeeze=False, constrained_layout=True,
                                gridspec_kw={"height_ratios": [2, 1] * SHOWN})
    for column, velocity in enumerate(velocities[:columns]):
        for k in range(SHOWN):
            one = select(data, "rollout", k)
            if not one["step"]:
                continue
            shown, errors = axes[2 * k][column], axes[2 * k + 1][column]
            steps = [step + 1 for step in one["step"][:STEPS]]
            truth = one[velocity][:STEPS]
            for panel in (shown, errors):
                shade(panel, [steps[0] - 1, *steps], [v == 0 for v in truth], STICKING)
            shown.plot(steps, truth, color=GREY, lw=4, alpha=0.5, label="truth")
            for name, label, color, marker in (("black_box", "black box: " + metrics["black_box"], ORANGE, None),
                                               ("network", "network that ends in an LCP", BLUE, ".")):
                learned = one[f"{velocity}_{name}"][:STEPS]
                shown.plot(steps, learned, color=color, marker=marker, ms=3, lw=1, label=label)
                # What is exact has no place on a logarithmic axis: it is drawn at its lower end.
                errors.semilogy(steps, [max(abs(a - b), 1e-17) for a, b in zip(learned, truth)], color=color, lw=1)
            shown.set_ylabel(f"{velocity} [m/s]")
            errors.set_ylabel("error [m/s]")
            errors.set_ylim(1e-17, None)
        axes[-1][column].set_xlabel("step")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncol=3)
    save(figure, "rollout")


def search(run, flags, metrics):
    """search.png: training and validation error of the best network of each round."""
    history = read_columns(run / "history.csv")
    figure, axes = plt.subplots(figsize=(6.0, 3.2), constrained_layout=True)
    for network, label, color in ((0, "q affine", BLUE), (1, "q a network", ORANGE)):
        part = select(history, "q_is_network", network)
        if not part["round"]:
            continue
        axes.semilogy(part["round"], part["validation_rmse"], "o-", color=color, label=label + ", validation")
        axes.semilogy(part["round"], part["training_rmse"], "o--", color=color, mfc="none", lw=1,
                      label=label + ", training")
    best = min(box["validation_rmse"] for box in metrics["black_boxes"])
    axes.axhline(best, color=INK, lw=1, ls=":", label="best black box, validation")
    axes.set_xticks(history["round"], [f"{n:g}" for n in history["unknowns"]])
    axes.set_xlabel("unknowns of the LCP in each round of the search")
    axes.set_ylabel("rmse [m/s]")
    axes.legend(fontsize=8)
    save(figure, "search")


draw(*([rollout] if (run_folder() / "rollouts.csv").exists() else []), search)
