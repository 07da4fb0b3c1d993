"""rows.png: fitted and true M and W, with the ranges of entries that are not unique; rollout.png: the learned block."""
import numpy as np
from learning import heat_map, load, rollout
from style import plt, run_folder, save


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
