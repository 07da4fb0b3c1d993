"""agreement.png and ends.png: what layers of contact say of the same gradient, and where training ends with each."""
import numpy as np
from style import BLUE, GREY, INK, ORANGE, PALE, TEAL, plt, read_arrays, save


def panels(layers, count, width):
    """Panels beside each other with a row for each layer, the first at the top."""
    figure, axes = plt.subplots(1, count, figsize=(width, 0.8 + 0.26 * len(layers)), layout="constrained", sharey=True)
    axes[0].set_yticks(range(len(layers)), [layer["name"] for layer in layers], fontsize=8)
    axes[0].invert_yaxis()
    for panel in axes:
        panel.tick_params(axis="y", length=0)
        panel.grid(axis="y", visible=False)
    return figure, axes


def agreement(run, flags, metrics):
    """The cosines with the wide differences, the sizes, and the shares of zeros and of NaN."""
    layers = metrics["layers"]
    figure, (cosines, sizes, shares) = panels(layers, 3, 8.4)
    rows = np.arange(len(layers))
    values = {name: np.array([layer[name] for layer in layers], dtype=float) for name in layers[0] if name != "name"}
    cosines.hlines(rows, 0, values["cosine"], color=PALE, lw=1)
    for name, steps, color in (("cosine_short", flags["short-window"], BLUE), ("cosine_long", flags["window"], ORANGE)):
        cosines.plot(values[name], rows, "o", color=color, ms=4, label=f"{steps} steps")
    cosines.plot(values["own_cosine"], rows, "|", color=INK, ms=8, label="with its own loss")
    cosines.set(xlabel="cosine with wide differences", xlim=(min(-0.05, 1.05 * values["cosine_long"].min()), 1.05))
    sizes.plot(values["own_relative_size"], rows, "o", color=TEAL, ms=4)
    sizes.axvline(1, color=PALE, lw=1, zorder=0)
    sizes.set(xlabel="size / that of wide differences\nof its own loss", xlim=(0, None))
    for name, label, color, shift in (("zero_fraction", "zero", GREY, -0.2), ("nan_fraction", "NaN", INK, 0.2),
                                      ("blind_fraction", "zero, but the loss changes", ORANGE, 0)):
        shares.barh(rows + shift, 100 * values[name], height=0.2, color=color, label=label)
    shares.set(xlabel="of all derivatives [%]", xlim=(0, None))
    for panel in (cosines, shares):
        handles, labels = panel.get_legend_handles_labels()
        panel.legend(handles, labels, loc="lower left", bbox_to_anchor=(0, 1), ncol=1, fontsize=7, borderaxespad=0.2)
    save(figure, "agreement")


def ends(run, flags, metrics):
    """Each start's end: mu, side, and the misfit there."""
    layers, found = metrics["layers"], read_arrays(run / "ends.csv")
    figure, axes = panels(layers, 3, 8.4)
    shift = 0.3 * (found["start"] / max(1, found["start"].max()) - 0.5)
    for panel, name, label in zip(axes, ("mu", "side", "misfit"),
                                  (r"$\mu$ at the end", "side at the end [m]", "misfit of the exact cone there")):
        panel.plot(found[name], found["layer"] + shift, ".", color=BLUE, ms=3.5, alpha=0.7)
        panel.axvline(metrics["best"][name], color=ORANGE, lw=1, zorder=0)
        medians = [np.median(found[name][found["layer"] == k]) for k in range(len(layers))]
        panel.plot(medians, range(len(layers)), "|", color=INK, ms=10)
        panel.set_xlabel(label)
    axes[2].axvline(metrics["start_misfit"], color=PALE, lw=2, zorder=0)
    figure.legend([plt.Line2D([], [], color=BLUE, marker=".", ls=""), plt.Line2D([], [], color=INK, marker="|", ls="", ms=9),
                   plt.Line2D([], [], color=ORANGE), plt.Line2D([], [], color=PALE, lw=2)],
                  ["a start", "median", "best of all layers", "misfit before training"], loc="outside upper center", ncol=4,
                  fontsize=8)
    save(figure, "ends")
