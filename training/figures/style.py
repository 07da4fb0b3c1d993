"""What every figure of the programs shares: reading a run's CSV files, a quiet style, sticking shaded."""
import contextlib
import csv
import json
import math
import pathlib
import subprocess
import sys

try:
    import matplotlib
except ImportError:
    print("matplotlib is not installed", file=sys.stderr)
    sys.exit(3)

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.animation import FFMpegWriter, PillowWriter  # noqa: E402
from matplotlib.colors import LinearSegmentedColormap  # noqa: E402
from matplotlib.ticker import NullLocator  # noqa: E402

# Velocities, friction, inputs and references; normal forces, positions, and trajectories beside the first. They differ
# in lightness as well as in hue.
BLUE, ORANGE, GREY = "#1f5fa8", "#d9730d", "#8a8f98"
TEAL, INK, PALE = "#12a08c", "#2b2f36", "#c6cad1"
SIGNED = LinearSegmentedColormap.from_list("signed", (ORANGE, "white", BLUE))  # of numbers from negative to positive
STICKING, SLIDING = "#e8ebf0", "#fcecd9"
# Errors below this, in m/s, are drawn here on a logarithmic axis, which has no place for 0. Round-off of velocities of
# about 1 m/s is 1e-16.
LEAST = 1e-17

plt.rcParams.update(
    {
        "figure.dpi": 150,
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": "#eceef2",
        "axes.axisbelow": True,
        "legend.frameon": False,
        "lines.linewidth": 1.5,
    }
)


FRAMES, SECONDS = 80, 4  # of an animation: at most, and about


def pace(duration):
    """The factor by which the animation is slowed down, 1, 2 or 5 times a power of ten; the times of its frames; ms per frame."""
    factors = [digit * 10.0**power for power in range(-9, 10) for digit in (1, 2, 5)]
    slower = min(factors, key=lambda x: abs(math.log(duration * x / SECONDS)))
    delay = max(40, 10 * math.ceil(100 * duration * slower / (FRAMES - 1)))  # a GIF counts in 10 ms
    return slower, np.append(np.arange(0, duration * (1 - 1e-9), delay / 1000 / slower), duration), delay


def speed_text(duration):
    slower, _, _ = pace(duration)
    return f"{max(slower, 1 / slower):g} times {'slower' if slower > 1 else 'faster'} than " * (slower != 1) + "real time"


def frames(figure, kind, dt, steps):
    """Writes motion.KIND, of `steps` steps. Yields the time of each frame as a number and as a text, and the step that the
    time is in, for the caller to move what moves.
    """
    _, times, delay = pace(dt * steps)
    decimals = max(0, 2 - math.floor(math.log10(times[-1])))
    # Pillow rounds the ms of a frame down.
    writer = (FFMpegWriter if kind == "mp4" else PillowWriter)(fps=1000 / (delay + 0.001))
    with new_file(f"motion.{kind}") as path, writer.saving(figure, path, dpi=80):
        for t in np.append(times, times[-1:].repeat(500 // delay)):  # and a pause
            yield t, f"t = {t:.{decimals}f} s", min(max(math.ceil(t / dt - 1e-6) - 1, 0), steps - 1)
            writer.grab_frame()


def run_folder():
    """The folder of the run, the first argument; the second is the folder to draw into."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: {pathlib.Path(sys.argv[0]).name} RUN_FOLDER FOLDER_FOR_FIGURES")
    return pathlib.Path(sys.argv[1])


def load(run):
    """A run's flags, and its metrics, if it has any."""
    return (json.loads(path.read_text()) if path.exists() else {} for path in (run / "config.json", run / "metrics.json"))


def read_arrays(path):
    """A CSV file as {column: array of numbers}."""
    with open(path, newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def select(columns, name, value):
    """The rows in which column `name` is `value`."""
    return {key: x[columns[name] == value] for key, x in columns.items()}


def shade(axes, edges, steps, color):
    """Bands behind the `steps` of a mask, step k from edges[k] to edges[k + 1]; the first band, or None."""
    turns = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(steps, dtype=int), [0]])))
    bands = [axes.axvspan(edges[a], edges[b], color=color, lw=0, zorder=0) for a, b in turns.reshape(-1, 2)]
    return bands[0] if bands else None


def shade_sticking(axes, time, velocity, dt):
    """Grey bands over the steps that end at rest; returns a handle for the legend."""
    return shade(axes, [time[0] - dt, *time], velocity == 0, STICKING)


def show_zero(axis, least=LEAST):
    """Labels the value `least` of a logarithmic axis, at which errors of exactly 0 are drawn, by 0."""
    low, high = sorted(axis.get_view_interval())
    stride = max(1, math.ceil(math.log10(high / least) / 4))  # decades between two labels, of which there are up to five
    powers = [10.0 ** (math.log10(least) + stride * k) for k in range(1, 1 + int(math.log10(high / least) / stride))]
    axis.set_ticks([least, *powers], ["0", *(f"$10^{{{round(math.log10(x))}}}$" for x in powers)])
    axis.set_minor_locator(NullLocator())
    axis.set_view_interval(min(low, least / 10), high, ignore=True)


def legend_above(axes):
    """A legend outside the axes, where it covers nothing, if there is anything to tell."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.legend(handles, labels, loc="lower right", bbox_to_anchor=(1, 1), ncol=len(handles), borderaxespad=0,
                    fontsize=8, handlelength=1.5, columnspacing=1.2)


@contextlib.contextmanager
def new_file(name):
    """Where to write the figure of that name. A file that is there already is an error, and an unfinished one is removed.

    The program that made the run moves the figures into its folder; see run/python.h.
    """
    path = pathlib.Path(sys.argv[2]) / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(exist_ok=False)
        try:
            yield path
        except BaseException:
            path.unlink()
            raise
    except OSError as error:
        reason = error.strerror
    except subprocess.CalledProcessError as error:  # of the program that encodes an animation
        reason = f"{pathlib.Path(error.cmd[0]).name} ended with exit status {error.returncode}"
    else:
        return
    print(f"{name}: {reason}", file=sys.stderr)
    sys.exit(4)


def save(figure, name):
    with new_file(name + ".png") as path:
        figure.savefig(path, bbox_inches="tight")
