"""What every figure of the programs shares: reading a run's CSV files, a quiet style, sticking shaded."""
import contextlib
import csv
import json
import os
import pathlib
import sys

try:
    import matplotlib
except ImportError:
    print("matplotlib is not installed", file=sys.stderr)
    sys.exit(3)

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

# Velocities, friction, inputs and references; normal forces, positions, and trajectories beside the first. They differ
# in lightness as well as in hue.
BLUE, ORANGE, GREY = "#1f5fa8", "#d9730d", "#8a8f98"
TEAL, INK, PALE = "#12a08c", "#2b2f36", "#c6cad1"
STICKING, SLIDING = "#e8ebf0", "#fcecd9"

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


def run_folder():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {pathlib.Path(sys.argv[0]).name} RUN_FOLDER")
    return pathlib.Path(sys.argv[1])


def read_columns(path):
    """A CSV file as {column: list of numbers}."""
    with open(path, newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def select(columns, name, value):
    """The rows in which column `name` is `value`."""
    keep = [i for i, x in enumerate(columns[name]) if x == value]
    return {key: [x[i] for i in keep] for key, x in columns.items()}


def shade(axes, edges, steps, color):
    """Bands behind the `steps` of a mask, step k from edges[k] to edges[k + 1]; the first band, or None."""
    turns = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(steps, dtype=int), [0]])))
    bands = [axes.axvspan(edges[a], edges[b], color=color, lw=0, zorder=0) for a, b in turns.reshape(-1, 2)]
    return bands[0] if bands else None


def shade_sticking(axes, time, velocity, dt):
    """Grey bands over the steps that end at rest; returns a handle for the legend."""
    return shade(axes, [time[0] - dt, *time], [v == 0 for v in velocity], STICKING)


def legend_above(axes):
    """A legend outside the axes, where it covers nothing, if there is anything to tell."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.legend(handles, labels, loc="lower right", bbox_to_anchor=(1, 1), ncol=len(handles), borderaxespad=0,
                    fontsize=8, handlelength=1.5, columnspacing=1.2)


@contextlib.contextmanager
def whole_file(run, name):
    """Where to write run/figures/name, which is replaced once the new one is complete, or not at all.

    The program that drew the run listed the name in config.json; see run/output_folder.h for these rules.
    """
    path = run / "figures" / name
    if f"figures/{name}" not in json.loads((run / "config.json").read_text())["files"]:
        sys.exit(f"cannot write {path}: config.json does not list it")
    try:
        path.parent.mkdir(exist_ok=True)
        if path.parent.is_symlink():
            sys.exit(f"cannot write {path}: {path.parent} is a link")
        # A new file, with the suffix that tells the format, which no link can stand in for.
        unfinished = path.with_name(f".torchlcp-{os.getpid()}-{name}")
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666))
        try:
            yield unfinished
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        print(f"cannot write {path}: {error.strerror}", file=sys.stderr)
        sys.exit(4)


def save(figure, run, name):
    with whole_file(run, name + ".png") as path:
        figure.savefig(path, bbox_inches="tight")
