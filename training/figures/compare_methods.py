"""comparison.png: the results of each learning method for all seeds, from near, far and random starts."""
import json

from style import BLUE, GREY, INK, LEAST, ORANGE, plt, save, show_zero

COLORS = {"none": GREY, "random": INK, "near": BLUE, "far": ORANGE}
LABELS = {"none": "no start", "random": "random start", "near": "near start", "far": "far start"}
OFFSETS = {"near": -0.27, "far": 0.27}  # random starts are between them


def numbers(row, name):
    """The metric of each run that has it."""
    return [run[name] for run in row["runs"] if run.get(name) is not None]


def rmse(axes, row, y, color, none):
    values = [max(x, LEAST) for x in numbers(row, "heldout_rmse")]
    if values:
        axes.plot([min(values), max(values)], [y, y], color=color, lw=1, alpha=0.5)
        axes.plot(values, [y] * len(values), "o", color=color, ms=4.5, alpha=0.8, mew=0)
    missing = len(row["runs"]) - len(values) + ("not_built" in row)
    if missing:
        axes.plot([none] * missing, [y] * missing, "x", color=color, ms=5, clip_on=False)


def sticking(axes, row, y, color):
    for name, style in (("sticking_close_fraction", {"mfc": "white", "ms": 6}),
                        ("sticking_exact_zero_fraction", {"mew": 0, "ms": 4})):
        values = numbers(row, name)
        axes.plot(values, [y] * len(values), "o", color=color, **style)


def comparison(run, flags, metrics):
    rows = json.loads((run / "table.json").read_text())
    methods = list(dict.fromkeys(row["method"] for row in rows))
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(9.2, 0.36 * len(methods) + 1.7), sharey=True, width_ratios=(2.2, 1, 1), constrained_layout=True)
    errors = [max(x, LEAST) for row in rows for x in numbers(row, "heldout_rmse")]
    none = 10 * max(errors, default=1)
    for row in rows:
        y, color = methods.index(row["method"]) + OFFSETS.get(row["start"], 0), COLORS[row["start"]]
        rmse(left, row, y, color, none)
        sticking(middle, row, y, color)
        times = numbers(row, "time")
        right.plot(times, [y] * len(times), "o", color=color, ms=4, alpha=0.8, mew=0)
    handles = [left.plot([], [], "o", color=COLORS[start], ms=4.5, label=LABELS[start])[0]
               for start in LABELS if any(row["start"] == start for row in rows)]
    handles.append(left.plot([], [], "x", color=GREY, ms=5, label="unsolved steps, failed or not built")[0])
    handles.append(middle.plot([], [], "o", color=GREY, mew=0, ms=4, label="exactly 0")[0])
    handles.append(middle.plot([], [], "o", color=GREY, mfc="white", ms=6, label=r"within .001 $\Delta t\,\mu g$")[0])
    figure.legend(handles=handles, loc="outside upper center", ncol=(len(handles) + 1) // 2, fontsize=8, handletextpad=0.2,
                  columnspacing=1.2)
    left.set_yticks(range(len(methods)), [name.replace("_", " ") for name in methods])
    left.set_ylim(len(methods) - 0.5, -0.5)
    left.set(xscale="log", xlabel="held-out rmse [m/s], one dot for each seed")
    if min(errors, default=1) <= LEAST:
        show_zero(left.xaxis)
    middle.set(xlim=(-0.05, 1.05), xlabel="share of steps at rest")
    right.set(xscale="log", xlabel="time [s]")
    for axes in (left, middle, right):
        axes.tick_params(axis="y", length=0)
    save(figure, "comparison")
