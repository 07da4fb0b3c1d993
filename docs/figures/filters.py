"""filters.png: where Kalman and particle filters of friction fail.  filters.py BIN OUTPUT.png, BIN: the folder of the programs"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "training" / "figures"))
from style import BLUE, INK, ORANGE, PALE, TEAL, plt, read_arrays  # noqa: E402

TRACKS = {"at the defaults: mu = 0.2": (0.2, ["--noise", "0.005"]),
          "mu = 0.02, noise of 0.5 m": (0.02, ["--mu", "0.02", "--noise", "0.5"]),
          "mu = 0.9: the particle sticks, so that\nall mu above 0.596 are as likely": (0.9, ["--mu", "0.9"])}
FILTERS = {"extended Kalman": (BLUE, ["--filter", "extended"]), "unscented Kalman": (TEAL, ["--filter", "unscented"]),
           "particles": (ORANGE, [])}

figure, panels = plt.subplots(1, 3, figsize=(11, 3.2), constrained_layout=True)
for axes, (title, (mu, flags)) in zip(panels, TRACKS.items()):
    for name, (color, choice) in FILTERS.items():
        with tempfile.TemporaryDirectory() as folder:
            command = [f"{sys.argv[1]}/track_particle_filter", *flags, *choice, "--out", f"{folder}/run", "--quiet"]
            subprocess.run(command, check=True, env={**os.environ, "TORCHLCP_PYTHON": ""}, stderr=subprocess.DEVNULL)
            history = read_arrays(pathlib.Path(folder) / "run" / "history.csv")
        reach = 2 * history["mu_std"]
        axes.fill_between(history["time"], history["mu"] - reach, history["mu"] + reach, color=color, alpha=0.15, lw=0)
        axes.plot(history["time"], history["mu"], color=color, lw=1.3, label=name + " \u00b1 2 standard deviations")
    axes.axhline(mu, color=INK, lw=1, ls=":", label="truth")
    axes.axhspan(-1, 0, color=PALE, lw=0, zorder=0, label="impossible")
    axes.set(xlabel="time [s]", ylim=(-0.5, 1.1))
    axes.set_title(title, fontsize=9)
panels[0].set_ylabel("friction coefficient")
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncol=5, fontsize=8)
figure.savefig(sys.argv[2], dpi=150)
