"""What every figure of the programs shares: reading a run's CSV files, a quiet style, sticking shaded."""
import csv
import pathlib
import sys

try:
    import matplotlib
except ImportError:
    print("matplotlib is not installed", file=sys.stderr)
    sys.exit(3)

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

BLUE, ORANGE, GREY = "#1f5fa8", "#d9730d", "#8a8f98"
STICKING = "#e8ebf0"

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


def shade_sticking(axes, time, velocity, dt):
    """Grey bands over the steps that end at rest; returns a handle for the legend."""
    band = None
    for end, v in zip(time, velocity):
        if v == 0:
            band = axes.axvspan(end - dt, end, color=STICKING, lw=0, zorder=0)
    return band


def save(figure, run, name):
    folder = run / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / (name + ".tmp.png"), bbox_inches="tight")
    (folder / (name + ".tmp.png")).replace(folder / (name + ".png"))
