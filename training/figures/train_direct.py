"""study.png: the fits of --study."""
import json

from style import BLUE, ORANGE, PALE, plt, save


def study(run, flags, metrics):
    """study.png: what each fit predicts, of known forces and as an LCP."""
    if not flags["study"]:
        return
    fits = json.loads((run / "table.json").read_text())["fits"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 0.21 * len(fits) + 1.2), sharey=True, constrained_layout=True)
    for prefix, color, marker, label in (
        ("", BLUE, "o", "f + G times the known forces"),
        ("lcp_", ORANGE, "D", "LCP, where all steps have a solution"),
    ):
        for axes, key in ((left, prefix + "rmse"), (right, prefix + "exact_zero_fraction")):
            rows = [(k, fit[key]) for k, fit in enumerate(fits) if fit[key] is not None]
            axes.plot([x for _, x in rows], [k for k, _ in rows], marker, color=color, ms=5, mfc="none", label=label)
    left.set_xscale("log")
    left.set_xlabel("held-out rmse [m/s]")
    right.set_xlabel("share of resting steps at exactly 0")
    left.set_yticks(range(len(fits)), [f"{fit['claim']}  ({fit['part']})" for fit in fits], fontsize=7)
    left.invert_yaxis()
    for axes in (left, right):
        for k in range(1, len(fits)):
            if fits[k]["part"] != fits[k - 1]["part"]:
                axes.axhline(k - 0.5, color=PALE, lw=0.8)
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncol=2)
    save(figure, "study")
