"""toss_curves.png: the errors of train_tosses on tosses that were not learned from, against the number of those that
were, for a cube and for a network, beside published numbers.

    .venv/bin/python docs/figures/toss_curves.py [--run TOSSES [--jobs 2] [--threads 1]]

--run does the runs that toss_curves.csv lacks, about four hours of one core for all of them, and adds a line for each; an
interrupted study continues where it stopped. TOSSES is the folder of recorded tosses that docs/tosses.md names. For each
seed, 256 of them are drawn to learn from and the others to judge by. The figure shows medians over the seeds, and bands
from least to most.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TABLE = HERE / "toss_curves.csv"
COUNTS = (4, 8, 16, 32, 64, 128, 256)
SEEDS = range(5)
MODELS = {"cube": (), "network": ("--model", "network", "--iterations", "2000", "--learning-rate", "0.002")}
ERRORS = [f"{protocol}/{error}" for protocol in ("whole", "from_first_contact", "windows_80")
          for error in ("position_error_m", "position_error_percent", "rotation_error_deg", "penetration_percent")]
PARAMETERS = ("mu", "restitution", "side", "center_z", "rounding", "inertia_x", "inertia_y", "inertia_z")
COLUMNS = ["model", "tosses", "seed", *ERRORS, "unsolved", "training_seconds", *PARAMETERS]


def done():
    """The lines of the table by (model, tosses, seed)."""
    if not TABLE.exists():
        return {}
    with open(TABLE, newline="") as stream:
        return {(row["model"], int(row["tosses"]), int(row["seed"])): row for row in csv.DictReader(stream)}


def run(key, tosses, threads):
    """One run of train_tosses: its line of the table."""
    model, count, seed = key
    files = sorted(path for path in tosses.iterdir() if path.suffix in (".pt", ".csv"))
    random.Random(seed).shuffle(files)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, some in (("training", files[:256]), ("heldout", files[256:])):
            (folder / name).mkdir()
            for path in some:
                (folder / name / path.name).symlink_to(path.resolve())
        subprocess.run([ROOT / "build/bin/train_tosses", "--tosses", folder / "training", "--heldout-tosses",
                        folder / "heldout", "--train", str(count), "--seed", str(seed), "--threads", str(threads),
                        *MODELS[model], "--out", folder / "out", "--quiet"], check=True,
                       env={**os.environ, "TORCHLCP_PYTHON": ""})
        metrics = json.loads((folder / "out" / "metrics.json").read_text())
    errors = [metrics[name.split("/")[0]][name.split("/")[1]] for name in ERRORS]
    parameters = metrics.get("parameters", {})
    return [model, count, seed, *errors, metrics["unsolved"], round(metrics["training_seconds"], 1),
            *(parameters[name]["value"] if name in parameters else "" for name in PARAMETERS)]


def study(tosses, jobs, threads):
    known = done()
    missing = [key for model in MODELS for seed in SEEDS for count in COUNTS
               if (key := (model, count, seed)) not in known]
    if not TABLE.exists():
        with open(TABLE, "w", newline="") as stream:
            csv.writer(stream).writerow(COLUMNS)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        rows = [pool.submit(run, key, tosses, threads) for key in missing]
        for k, row in enumerate(concurrent.futures.as_completed(rows)):
            with open(TABLE, "a", newline="") as stream:
                csv.writer(stream).writerow(row.result())
            print(f"{k + 1} of {len(missing)}", file=sys.stderr, flush=True)


def seeds_of(points):
    """How many seeds the points are of."""
    least, most = min(map(len, points)), max(map(len, points))
    return f"{most} seed{'s' if most > 1 else ''}" if least == most else f"{least} to {most} seeds"


def draw():
    sys.path.insert(0, str(ROOT / "training/figures"))
    from style import BLUE, GREY, INK, ORANGE, TEAL, plt

    rows = done()
    if not rows:
        sys.exit(f"{TABLE} has no runs; --run does them")
    panels = (("from_first_contact/position_error_percent", "from first contact: position error [% of the side]",
               (("Drake", 13.5, INK, "top"), ("Bullet", 14.9, GREY, "bottom"), ("MuJoCo", 25.1, TEAL, "bottom"))),
              ("from_first_contact/rotation_error_deg", "rotation error [degrees]",
               (("Drake, Bullet", 16.5, INK, "bottom"), ("MuJoCo", 21.7, TEAL, "bottom"))),
              ("windows_80/position_error_m", "windows of 80 steps: position error [m]",
               (("ContactNets", 0.017, INK, "top"), ("NeRD", 0.018, GREY, "bottom"),
                ("network of NeRD", 0.023, TEAL, "bottom"))))
    figure, axes = plt.subplots(1, len(panels), figsize=(11.4, 3.4), layout="constrained")
    for panel, (column, label, published) in zip(axes, panels):
        for model, color, text in (("network", ORANGE, "network"), ("cube", BLUE, "cube, by lcp::solve_friction")):
            values = {count: sorted(float(rows[model, count, seed][column]) for seed in SEEDS
                                    if (model, count, seed) in rows) for count in COUNTS}
            counts = [count for count in COUNTS if values[count]]
            points = [values[count] for count in counts]
            if not points:
                continue
            panel.fill_between(counts, [p[0] for p in points], [p[-1] for p in points], color=color, alpha=0.2, lw=0)
            panel.plot(counts, [statistics.median(p) for p in points], color=color, marker=".",
                       label=f"{text}, {seeds_of(points)}")
        for name, value, color, side in published:
            panel.axhline(value, color=color, lw=1, ls="--")
            panel.annotate(name, (1.02, value), xycoords=("axes fraction", "data"), fontsize=7, va=side, color=color)
        panel.set(xscale="log", xlabel="tosses to learn from", ylabel=label, ylim=(0, None))
        panel.set_xticks(COUNTS, COUNTS)
        panel.minorticks_off()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncol=2)
    figure.savefig(HERE / "toss_curves.png", bbox_inches="tight", dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=pathlib.Path, metavar="TOSSES", help="do the missing runs first")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    parser.add_argument("--threads", type=int, default=1, help="threads of each run")
    flags = parser.parse_args()
    if flags.run:
        study(flags.run, flags.jobs, flags.threads)
    draw()


if __name__ == "__main__":
    main()
