"""The figures of report.py: cost against n and B with its floor, methods, memory, contact with friction."""

import math
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "training" / "figures"))
from style import BLUE, GREY, ORANGE, plt  # noqa: E402

GREEN, PURPLE, RED, BROWN, BLACK = "#3a8f5c", "#7a5aa6", "#b8434e", "#8c6d46", "#3c4148"
LIGHT_BLUE = "#7fa8d6"


def curve(measured, group, who, work=str):
    """Sorted (x, ns) of the works that are numbers."""
    points = [
        (int(work(of)), row["ns"])
        for (one, of, name), row in measured.rows.items()
        if one == group and name == who and work(of).isdigit()
    ]
    return tuple(zip(*sorted(points))) or ((), ())


def apart(wanted, gap, low, high):
    """Places as near to the wanted ones, sorted, as a distance of `gap` between neighbours allows."""
    places = list(wanted)
    for _ in range(1000):
        crowded = [k for k in range(len(places) - 1) if places[k + 1] - places[k] < 0.999 * gap]
        for k in crowded:
            middle = (places[k] + places[k + 1]) / 2
            places[k], places[k + 1] = middle - gap / 2, middle + gap / 2
        places = [min(max(place, low), high) for place in places]
        if not crowded:
            break
    return places


def name_ends(axes, ends):
    """Writes each curve's name at the right, and joins it with the curve's last point: (y, x, name, colour)."""
    low, high = (math.log10(limit) for limit in axes.get_ylim())
    ends = sorted(ends)
    places = apart([math.log10(end[0]) for end in ends], (high - low) / 22, low, high)
    for (y, x, name, colour), place in zip(ends, places):
        axes.annotate(
            name,
            (x, y),
            (1.06, (place - low) / (high - low)),
            textcoords="axes fraction",
            color=colour,
            va="center",
            fontsize=7.5,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.5, "alpha": 0.6, "shrinkA": 1, "shrinkB": 2},
        )


def time_axis(axes):
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = {10.0**k: f"{10 ** (k % 3)} {('ns', 'µs', 'ms', 's')[k // 3]}" for k in range(12)}
    low, high = axes.get_ylim()
    kept = {at: text for at, text in ticks.items() if low <= at <= high}
    axes.set_yticks(list(kept), list(kept.values()))
    axes.minorticks_off()


def plain_ticks(axes, values):
    axes.set_xticks(values, [f"{value:,}".replace(",", "\u2009") for value in values])


def draw_curves(axes, curves):
    ends = []
    for (x, y), name, colour, style in curves:
        if x:
            axes.plot(x, y, color=colour, **style)
            ends.append((y[-1], x[-1], name, colour))
    time_axis(axes)
    name_ends(axes, ends)


def family_order(work):
    kind, _, n = work.partition("_")
    return n if kind == "definite" else ""


def by_order(measured):
    figure, axes = plt.subplots(figsize=(6.4, 4.6), constrained_layout=True)
    dots = {"lw": 0.9, "marker": "o", "ms": 3}
    curves = [
        (curve(measured, "order", "auto"), "lcp::solve", BLUE, {"lw": 2.4, "zorder": 5}),
        (curve(measured, "order", "forward and backward"), "with gradients", LIGHT_BLUE, {"lw": 1.6}),
        (curve(measured, "order", "copy"), "copy of M and q", GREY, {"lw": 1.6, "ls": "--"}),
        (curve(measured, "order", "LU"), "LU of M (LibTorch)", BLACK, {"lw": 1.2, "ls": ":"}),
        (curve(measured, "family", "Siconos: Lemke", family_order), "Siconos Lemke", ORANGE, dots),
        (curve(measured, "family", "Siconos: FB-Newton", family_order), "Siconos FB-Newton", BROWN, dots),
        (curve(measured, "family", "Bullet: Dantzig", family_order), "Bullet Dantzig", GREEN, dots),
        (curve(measured, "family", "Bullet: Lemke", family_order), "Bullet Lemke", RED, dots),
        (curve(measured, "python", "Drake: Lemke", family_order), "Drake Lemke", PURPLE, dots),
        (curve(measured, "python", "ProxSuite", family_order), "ProxSuite", "#c58fb5", dots),
    ]
    draw_curves(axes, curves)
    plain_ticks(axes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
    axes.set_xlabel("order n")
    axes.set_title("Time per LCP: symmetric positive definite, one core, float64", fontsize=10, loc="left")
    return figure


def by_size(measured):
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.6), constrained_layout=True)
    for axes, name, title, ticks in (
        (left, "sliding_3", "3x3 sliding blocks", [1, 100, 10_000, 1_000_000]),
        (right, "friction_24", "friction, n = 24", [1, 10, 100, 1000, 10_000]),
    ):

        def of(who):
            points = sorted((int(count), row["ns"]) for count, row in sizes(measured, name, who).items())
            return tuple(zip(*points)) or ((), ())

        draw_curves(axes, [
            (of("forward"), "solve", BLUE, {"lw": 2.4, "marker": "o", "ms": 3}),
            (of("forward and backward"), "with gradients", LIGHT_BLUE, {"lw": 1.6, "marker": "o", "ms": 3}),
            (of("copy"), "copy of M, q", GREY, {"lw": 1.6, "ls": "--"}),
        ])
        axes.set_xticks(ticks, [f"{tick:,}".replace(",", "\u2009") for tick in ticks])
        axes.set_xlabel("batch size B")
        axes.set_title(f"Time per LCP: {title}", fontsize=10, loc="left")
    return figure


def sizes(measured, name, who):
    """{count: row} of one set; the names are size/NAME/COUNT/WHO."""
    found = {}
    for (group, work, rest), row in measured.rows.items():
        count, _, one = rest.partition("/")
        if group == "size" and work == name and one == who:
            found[count] = row
    return found


def by_method(measured):
    figure, axes = plt.subplots(figsize=(6.4, 3.8), constrained_layout=True)
    curves = [
        (curve(measured, "order", "auto"), "auto", BLUE, {"lw": 3.2, "alpha": 0.45}),
        (curve(measured, "order", "enumeration"), "enumeration", GREEN, {"lw": 1.3}),
        (curve(measured, "order", "lemke"), "lemke", ORANGE, {"lw": 1.3}),
        (curve(measured, "order", "newton_min"), "newton_min", PURPLE, {"lw": 1.3}),
        (curve(measured, "order", "central_path"), "central_path", RED, {"lw": 1.3}),
    ]
    draw_curves(axes, curves)
    plain_ticks(axes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
    axes.set_xlabel("order n")
    axes.set_title("Time per LCP by method: symmetric positive definite", fontsize=10, loc="left")
    return figure


def memory(measured):
    figure, axes = plt.subplots(figsize=(6.4, 3.8), constrained_layout=True)

    def of(kind, value):
        points = sorted((int(work), value(row)) for (group, work, who), row in measured.rows.items()
                        if group == "memory" and who == kind)
        return tuple(zip(*points)) or ((), ())

    ends = []
    for (x, y), name, colour, style in (
        (of("batched", lambda row: row["inputs"]), "M and q", GREY, {"ls": "--"}),
        (of("batched", lambda row: row["held"]), "z, w, status, all saved", BLUE, {"lw": 2.2}),
        (of("batched", lambda row: row["peak"]), "peak of backward", LIGHT_BLUE, {}),
        (of("shared", lambda row: row["peak"]), "peak, one shared M", GREEN, {}),
    ):
        if x:
            axes.plot(x, y, color=colour, **style)
            ends.append((y[-1], x[-1], name, colour))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.minorticks_off()
    axes.set_yticks([10, 100, 1e3, 1e4, 1e5, 1e6], ["10 B", "100 B", "1 kB", "10 kB", "100 kB", "1 MB"])
    plain_ticks(axes, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
    name_ends(axes, ends)
    axes.set_xlabel("order n")
    axes.set_title("Memory per LCP beyond its inputs, float64", fontsize=10, loc="left")
    return figure


def contacts_of(work):
    kind, _, number = work.partition("_")
    return number if kind in ("c", "stack") else ""


def by_contacts(measured):
    figure, axes = plt.subplots(figsize=(6.4, 4.2), constrained_layout=True)
    dots = {"lw": 0.9, "marker": "o", "ms": 3}

    def of(who):
        return curve(measured, "friction", who, contacts_of)

    draw_curves(axes, [
        (of("ours"), "lcp::solve_friction", BLUE, {"lw": 2.4, "zorder": 5}),
        (of("forward and backward"), "with gradients", LIGHT_BLUE, {"lw": 1.6}),
        (of("LU"), "one LU of W (LibTorch)", BLACK, {"lw": 1.2, "ls": ":"}),
        (of("Siconos: NSGS"), "Siconos NSGS", ORANGE, dots),
        (of("Siconos: NSN_AC"), "Siconos NSN_AC", BROWN, dots),
        (of("polyhedral 4"), "4 directions, lcp::solve", "#9bc7ac", {"lw": 1.1}),
        (of("polyhedral 8"), "8 directions", GREEN, {"lw": 1.1}),
        (of("polyhedral 16"), "16 directions", "#1f5a39", {"lw": 1.1}),
        (of("compliant"), "convex, lcp::solve_contact", PURPLE, {"lw": 1.1}),
    ])
    plain_ticks(axes, [1, 2, 4, 8, 12, 24, 40, 60])
    axes.set_xlabel("contacts: of one body up to 8, of stacked boxes beyond")
    axes.set_title("Time per problem of contact with friction, one core, float64", fontsize=10, loc="left")
    return figure


def draw(measured, folder):
    """The figures of all groups that were measured."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, make, group in (("order", by_order, "order"), ("size", by_size, "size"), ("methods", by_method, "order"),
                              ("memory", memory, "memory"), ("friction", by_contacts, "friction")):
        if not measured.works(group):
            continue
        figure = make(measured)
        paths.append(folder / f"performance_{name}.png")
        figure.savefig(paths[-1], bbox_inches="tight")
        plt.close(figure)
    return paths
