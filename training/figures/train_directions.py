"""directions.png: the learned polygon of friction forces, and the error of other directions beside its own."""
import numpy as np
from style import BLUE, GREY, INK, LEAST, ORANGE, PALE, plt, save


def cross(a, b):
    return a[0] * b[1] - a[1] * b[0]


def hull(points):
    """The convex hull of points, [n, 2], closed."""
    start = points[:, 0].argmin()
    corners = [start]
    while True:
        last = points[corners[-1]]
        best = None
        for k, point in enumerate(points):
            if k == corners[-1]:
                continue
            if best is None or cross(points[best] - last, point - last) < 0:
                best = k
        if best in corners:
            return points[corners + [start]]
        corners.append(best)


def directions(run, flags, metrics):
    """directions.png."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.4), constrained_layout=True,
                                         gridspec_kw={"width_ratios": [1, 1.5]})
    angle = np.linspace(0, 2 * np.pi, 200)
    if flags["data"] is None and flags["true-directions"] > 0:
        turns = 0.3 + 2 * np.pi * np.arange(flags["true-directions"]) / flags["true-directions"]
        size = np.where(np.arange(len(turns)) % 2, 0.6, 1.0)
        truth = hull(np.stack([size * np.cos(turns), size * np.sin(turns)], 1))
        left.plot(*truth.T, color=GREY, lw=4, alpha=0.5, label="truth")
    else:
        left.plot(np.cos(angle), np.sin(angle), color=GREY, lw=4, alpha=0.5, label="mu m g")
    D = np.array(metrics["D"]).T
    left.plot(*hull(D).T, color=BLUE, lw=1, label="learned")
    left.plot(*D.T, "o", color=BLUE, ms=4)
    left.set_aspect("equal")
    left.set_xlabel("friction along x over mu m g")
    left.set_ylabel("friction along y over mu m g")
    left.legend(fontsize=8, loc="center")

    rows = metrics["table"]
    errors = [max(row["rmse"] or np.nan, LEAST) for row in rows]
    colors = [BLUE if row["directions"].startswith("learned") else
              ORANGE if row["directions"].startswith("aligned") else PALE for row in rows]
    places = np.arange(len(rows))[::-1]
    right.barh(places, errors, color=colors)
    right.set_xscale("log")
    right.set_yticks(places, [row["directions"] for row in rows])
    right.set_xlabel("held-out rmse [m/s]")
    for place, error in zip(places, errors):
        right.text(error, place, f" {error:.1e}", va="center", fontsize=7, color=INK)
    right.margins(x=0.15)
    save(figure, "directions")
