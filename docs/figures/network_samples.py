"""network_samples.png: the held-out error, the error of rollouts and the share of resting steps that train_network
reaches with few and with many samples, beside the best black box.

    .venv/bin/python docs/figures/network_samples.py [--run [--jobs 2]]

--run does the runs that network_samples.csv lacks, the quickest first, which takes many hours for all of them, and adds a
line for each; an interrupted study continues where it stopped. The figure shows medians over the seeds, and bands from
least to most; the black boxes, which take most of the time, are trained for the first seed. Rollouts that leave their panel
diverge.
"""
import argparse
import concurrent.futures
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TABLE = HERE / "network_samples.csv"
SAMPLES = (10, 20, 30, 50, 100, 300, 1000, 3000)
SEEDS = range(10)
BLACK_BOX_SEEDS = range(1)
SYSTEMS = {
    "sliding block": ("sliding_block",),
    "friction that depends on position": ("track",),
    "Stribeck friction, drag, slope": ("stribeck",),
    "planar block, 4 directions": ("planar_block", "--directions", "4"),
    "planar block, 8 directions": ("planar_block", "--directions", "8"),
    "falling mass": ("bouncing_mass",),
    "two blocks, one on the other": ("stacked_blocks",),
}
OVERFLOW = sys.float_info.max  # of the rollouts whose error metrics.json does not have
METRICS = ("heldout_rmse", "rollout_rmse", "sticking_exact_zero_fraction", "unknowns", "starts")
BLACK_BOX_METRICS = ("black_box_heldout_rmse", "black_box_rollout_rmse", "black_box_sticking_close_fraction")


def done():
    """The lines of the table by (system, samples, seed)."""
    if not TABLE.exists():
        return {}
    with open(TABLE, newline="") as stream:
        return {(row["system"], int(row["samples"]), int(row["seed"])): row for row in csv.DictReader(stream)}


def run(key):
    """One run of train_network: its line of the table."""
    system, samples, seed = key
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        command = [ROOT / "build/bin/train_network", "--system", *SYSTEMS[system], "--samples", str(samples), "--seed",
                   str(seed), "--out", out, "--threads", "1", "--quiet"]
        if seed not in BLACK_BOX_SEEDS:
            command += ["--black-box-iterations", "1"]
        subprocess.run(command, check=True, env={**os.environ, "TORCHLCP_PYTHON": "", "OMP_NUM_THREADS": "1"})
        metrics = json.loads((out / "metrics.json").read_text())
        times = json.loads((out / "times.json").read_text())
    of_black_box = [metrics[name] if seed in BLACK_BOX_SEEDS else "" for name in BLACK_BOX_METRICS]
    return [system, samples, seed, *(metrics[name] for name in METRICS), *of_black_box,
            round(times["search_seconds"], 1), round(times["black_box_seconds"], 1) if seed in BLACK_BOX_SEEDS else ""]


def study(jobs):
    known = done()
    seconds = {}
    for (system, samples, _), row in known.items():
        seconds.setdefault((system, samples), []).append(float(row["search_seconds"]))
    wanted = [(system, samples, seed) for seed in SEEDS for samples in SAMPLES for system in SYSTEMS]
    missing = sorted((key for key in wanted if key not in known),
                     key=lambda key: statistics.mean(seconds.get(key[:2], [0])))
    if not TABLE.exists():
        with open(TABLE, "w", newline="") as stream:
            csv.writer(stream).writerow(["system", "samples", "seed", *METRICS, *BLACK_BOX_METRICS,
                                         "search_seconds", "black_box_seconds"])
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for k, row in enumerate(concurrent.futures.as_completed([pool.submit(run, key) for key in missing])):
            with open(TABLE, "a", newline="") as stream:
                csv.writer(stream).writerow(row.result())
            print(f"{k + 1} of {len(missing)}", file=sys.stderr, flush=True)


def draw():
    sys.path.insert(0, str(ROOT / "training/figures"))
    from style import BLUE, ORANGE, plt

    rows = list(done().values())
    counts = [sum(row["system"] == system and int(row["samples"]) == samples for row in rows)
              for system in SYSTEMS for samples in SAMPLES]
    if min(counts) == 0:
        sys.exit(f"{TABLE} lacks a seed of all systems with all numbers of samples; --run goes on with it")
    seeds = f"{max(counts)} seeds" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)} seeds"
    panels = (("heldout_rmse", "black_box_heldout_rmse", "held-out rmse [m/s]"),
              ("rollout_rmse", "black_box_rollout_rmse", "rmse of 200 steps [m/s]"),
              ("sticking_exact_zero_fraction", "black_box_sticking_close_fraction", "share of resting steps"))
    figure, axes = plt.subplots(len(panels), len(SYSTEMS), figsize=(2.2 * len(SYSTEMS) + 0.6, 6.6), sharex=True,
                                sharey="row", constrained_layout=True)
    for column, system in enumerate(SYSTEMS):
        for line, (network, black_box, label) in enumerate(panels):
            panel = axes[line][column]
            for name, color, text in ((black_box, ORANGE, "best of 36 networks and the affine map, 1 seed"),
                                      (network, BLUE, f"network that ends in an LCP, {seeds}")):
                points = []
                for samples in SAMPLES:
                    found = [row for row in rows if row["system"] == system and int(row["samples"]) == samples]
                    if name in BLACK_BOX_METRICS:
                        found = [row for row in found if int(row["seed"]) in BLACK_BOX_SEEDS]
                    values = sorted(float(row[name] or OVERFLOW) for row in found)
                    if values:
                        points.append((samples, values[0], statistics.median(values), values[-1]))
                if not points:
                    continue
                x, least, median, most = zip(*points)
                panel.fill_between(x, least, most, color=color, alpha=0.2, lw=0)
                panel.plot(x, median, color=color, marker=".", label=text)
            panel.set_xscale("log")
            if line < 2:
                panel.set_yscale("log")
                panel.set_ylim(1e-17, 1e3)
            if line == 0:
                panel.set_title(system.replace(", ", ",\n", 1), fontsize=9)
            if column == 0:
                panel.set_ylabel(label)
        axes[-1][column].set_xlabel("samples")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncol=2)
    figure.savefig(HERE / "network_samples.png", bbox_inches="tight", dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="do the missing runs first")
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time")
    flags = parser.parse_args()
    if flags.run:
        study(flags.jobs)
    draw()


if __name__ == "__main__":
    main()
