"""rollout.png: the learned network and the black box beside the truth; search.png: the errors of all networks."""
from style import BLUE, GREY, INK, LEAST, ORANGE, STICKING, TEAL, np, plt, read_arrays, save, select, shade
from style import legend_above, show_zero

SHOWN = 2
STEPS = 60


def rollout(run, flags, metrics):
    """rollout.png: velocities of some rollouts, and the errors below them."""
    if not (run / "rollouts.csv").exists():
        return
    data = read_arrays(run / "rollouts.csv")
    velocities = [name[: -len("_network")] for name in data if name.endswith("_network")]
    columns = min(len(velocities), 2)
    figure, axes = plt.subplots(2 * SHOWN, columns, figsize=(4.6 * columns + 1.8, 2.3 * SHOWN + 0.8), sharex=True,
                                squeeze=False, constrained_layout=True,
                                gridspec_kw={"height_ratios": [2, 1] * SHOWN})
    for column, velocity in enumerate(velocities[:columns]):
        for k in range(SHOWN):
            one = select(data, "rollout", k)
            if not one["step"].size:
                continue
            shown, errors = axes[2 * k][column], axes[2 * k + 1][column]
            steps = one["step"][:STEPS] + 1
            truth = one[velocity][:STEPS]
            for panel in (errors, shown):
                band = shade(panel, [steps[0] - 1, *steps], truth == 0, STICKING)
            if band and not (column or k):
                band.set_label("step ends at rest")
            shown.plot(steps, truth, color=GREY, lw=4, alpha=0.5, label="truth")
            for name, label, color, marker in (("black_box", "black box: " + metrics["black_box"], ORANGE, None),
                                               ("network", "network that ends in an LCP", BLUE, ".")):
                learned = one[f"{velocity}_{name}"][:STEPS]
                shown.plot(steps, learned, color=color, marker=marker, ms=3, lw=1, label=label)
                errors.semilogy(steps, np.maximum(abs(learned - truth), LEAST), color=color, lw=1)
            shown.set_ylabel(f"{velocity} [m/s]")
            errors.set_ylabel("error [m/s]")
            show_zero(errors.yaxis)
        axes[-1][column].set_xlabel("step")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper center", ncol=2)
    save(figure, "rollout")


def models(axes, metrics):
    """The held-out errors of the network and of all black boxes, the best at the top."""
    errors = {box["name"]: box["heldout_rmse"] for box in metrics["black_boxes"]}
    names = sorted((name for name in errors if errors[name] is not None), key=errors.get)
    values = [errors[name] for name in names]
    axes.plot(values, range(1, 1 + len(names)), "o", color=ORANGE, ms=4, label="black boxes")
    if metrics["heldout_rmse"] is not None:
        axes.plot(max(metrics["heldout_rmse"], LEAST), 0, "D", color=BLUE, ms=5, label="network that ends in an LCP")
    axes.set_xscale("log")
    if metrics["heldout_rmse"] is not None and metrics["heldout_rmse"] <= LEAST:
        show_zero(axes.xaxis)
    axes.set_yticks(range(1 + len(names)), [f"LCP with {metrics['unknowns']} unknowns", *names], fontsize=7)
    axes.set_ylim(len(names) + 0.5, -0.5)
    legend_above(axes)
    axes.set_xlabel("held-out rmse [m/s]")


def rounds(axes, history, metrics):
    """Training and validation error of the best network of each round of the search."""
    for network, label, color in ((0, "q affine", BLUE), (1, "q a network", TEAL)):
        part = select(history, "q_is_network", network)
        if not part["round"].size:
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


def search(run, flags, metrics):
    """search.png: the errors of the network and of the black boxes, and of the rounds where the search took several."""
    history = read_arrays(run / "history.csv")
    several = len(history["round"]) > 1
    figure, axes = plt.subplots(1, 1 + several, figsize=(5.4 + 4.6 * several, 3.4), squeeze=False,
                                constrained_layout=True)
    models(axes[0, -1], metrics)
    if several:
        rounds(axes[0, 0], history, metrics)
    save(figure, "search")
