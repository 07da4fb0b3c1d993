"""table.png: the error of the identified friction over the noise, and the filter's number of distinct particles."""
from learning import load
from style import BLUE, GREY, INK, ORANGE, plt, run_folder, save

run = run_folder()
_, metrics = load(run)
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
