"""rows.png: fitted and true M and W, with the ranges of entries that are not unique; rollout.png: the learned block."""
import numpy as np
from learning import load, rollout
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle
from style import BLUE, INK, ORANGE, plt, run_folder, save

COLUMNS = (r"$\lambda^+$", r"$\lambda^-$", r"$\gamma$", "$v$", "$u$", "1")
SIGNED = LinearSegmentedColormap.from_list("signed", (ORANGE, "white", BLUE))
SAME = 1e-6  # an entry whose range is smaller counts as unique


def short(x):
    return f"{0.0 if abs(x) < SAME else x:.3g}".replace("-", "\u2212")


def interval(lower, upper):
    left = "(\u2212\u221e" if lower is None else "[" + short(lower)
    right = "\u221e)" if upper is None else short(upper) + "]"
    return f"{left}, {right}"


def heat_map(axes, rows, title, families=None):
    axes.imshow(rows, cmap=SIGNED, vmin=-1.5, vmax=1.5, aspect=0.62)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.set_xticks(range(6), COLUMNS)
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
            axes.add_patch(Rectangle((j - 0.47, i - 0.46), 0.94, 0.92, fill=False, ec=INK, ls=(0, (2, 2)), lw=0.8))
            axes.text(j, i + 0.33, interval(lower, upper), ha="center", va="center", fontsize=6,
                      color="white" if abs(value) > 1.1 else INK)


def rows(metrics):
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 2.1), constrained_layout=True)
    families = metrics["families"]
    many = any(family["dimension"] > 0 for family in families)
    heat_map(axes[0], np.array(metrics["rows_in_units"]),
             "fitted [M | W]" + ("; dashed: not determined" if many else ""), families)
    heat_map(axes[1], np.array(metrics["true_rows_in_units"]), "of the block")
    figure.supxlabel("forces in units of {:.3g} N, velocities of {:.3g} m/s".format(
        metrics["force_unit"], metrics["velocity_unit"]), fontsize=8)
    save(figure, "rows")


def main():
    run = run_folder()
    flags, metrics = load(run)
    rows(metrics)
    rollout(run, flags, metrics)


main()
