"""branches.png: outcomes of one start by the truth, the chain and the single LCP; training.png: the likelihood."""
import numpy as np
from style import BLUE, GREY, ORANGE, plt, read_arrays, save

BINS = 60


def branches(run, flags, metrics):
    """branches.png: the velocities of blocks that were pushed from rest for ten steps."""
    if not (run / "branches.csv").exists():
        return  # the data were not simulated
    data = read_arrays(run / "branches.csv")
    edges = np.linspace(min(map(min, data.values())), max(map(max, data.values())), BINS + 1)
    figure, axes = plt.subplots(figsize=(6.0, 3.2), constrained_layout=True)
    axes.hist(data["truth"], edges, color=GREY, alpha=0.5, label="truth")
    for name, label, color in (("chain", "Markov chain with an LCP in each state", BLUE),
                               ("single", "one LCP with normal noise", ORANGE)):
        axes.hist(data[name], edges, histtype="step", color=color, lw=1.5, label=label)
    axes.set_yscale("log")
    axes.set_xlabel("velocity after ten steps of .6 mu m g from rest [m/s]")
    axes.set_ylabel(f"blocks of {len(data['truth'])}")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncol=3, fontsize=8)
    save(figure, "branches")


def training(run, flags, metrics):
    """training.png: the log likelihood of a step."""
    history = read_arrays(run / "history.csv")
    figure, axes = plt.subplots(figsize=(5.0, 3.0), constrained_layout=True)
    axes.plot(history["iteration"], -history["chain"], color=BLUE, label="chain, training")
    axes.plot(history["iteration"], history["heldout_log_likelihood"], color=BLUE, ls=":", label="chain, held out")
    axes.plot(history["iteration"], -history["single"], color=ORANGE, label="one LCP, training")
    axes.set_xlabel("iteration")
    axes.set_ylabel("log likelihood of a step")
    axes.legend(fontsize=8)
    save(figure, "training")
