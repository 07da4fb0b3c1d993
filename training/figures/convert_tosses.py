"""checks.png: the flight and the rotation of the toss with the longest flight, and the gravity of all."""
from style import BLUE, GREY, INK, ORANGE, PALE, SLIDING, TEAL, legend_above, np, plt, read_arrays, save


def turning(q, rate):
    """The angular velocity in the axes of the body, from the sample before to the one after: [T, 3]."""
    a, b = q[np.maximum(np.arange(len(q)) - 1, 0)], q[np.minimum(np.arange(len(q)) + 1, len(q) - 1)]
    w = (a * b).sum(1)
    v = a[:, :1] * b[:, 1:] - b[:, :1] * a[:, 1:] - np.cross(a[:, 1:], b[:, 1:])
    size = np.linalg.norm(v, axis=1)
    angle = 2 * np.arctan2(size, abs(w)) * np.sign(w)
    steps = np.r_[1, np.full(len(q) - 2, 2), 1]
    return v * np.divide(angle, size, where=size > 0, out=np.zeros_like(size))[:, None] * (rate / steps)[:, None]


def checks(run, flags, metrics):
    checks = read_arrays(run / "checks.csv")
    chosen = int(checks["flight_samples"].argmax())
    name, rate = metrics["names"][chosen], metrics["rate"]
    toss = read_arrays(run / "tosses" / f"{name}.csv")
    time = np.arange(len(toss["z"])) / rate
    first, count = int(checks["flight_first"][chosen]), int(checks["flight_samples"][chosen])

    figure, axes = plt.subplots(1, 3, figsize=(11, 3), layout="constrained", width_ratios=(1, 1.5, 0.8))
    height, rotation, gravity = axes
    height.plot(time, toss["z"], ".", color=PALE, markersize=4, label="measured")
    if count:
        flight = slice(first, first + count)
        parabola = np.polynomial.Polynomial.fit(time[flight], toss["z"][flight], 2)
        wide = time[max(0, first - 4):first + count + 4]
        residual = 1000 * max(checks["flight_residual"][chosen], 1e-9)
        height.plot(wide, parabola(wide), color=ORANGE, label=f"parabola: {residual:.2g} mm off")
        for panel in (height, rotation):
            panel.axvspan(time[first], time[first + count - 1], color=SLIDING, lw=0, zorder=0,
                          label="free flight" if panel is height else None)
    height.axhline(0, color=INK, lw=0.8)
    height.set(xlabel="time [s]", ylabel=f"height of {name} [m]")

    orientation = np.stack([toss[f"q_{axis}"] for axis in "wxyz"], 1)
    derivative = turning(orientation, rate)
    for axis, color, values in zip("xyz", (BLUE, ORANGE, TEAL), derivative.T):
        rotation.plot(time, values, ".", color=color, markersize=3, alpha=0.5)
        rotation.plot(time, toss[f"omega_{axis}"], color=color, lw=1, label=axis)
    rotation.plot([], [], ".", color=GREY, label="from quaternions")
    rotation.set(xlabel="time [s]", ylabel="angular velocity of the body [rad/s]")

    found = checks["flight_samples"] > 0
    size, error = checks["gravity"][found], checks["gravity_standard_error"][found]
    order = np.argsort(size)
    gravity.errorbar(size[order], np.arange(len(size)), xerr=error[order], fmt=".", color=BLUE, ecolor=PALE, markersize=4)
    gravity.axvline(flags["gravity"], color=INK, lw=0.8, label=f"{flags['gravity']:g}")
    if found.any():
        middle = metrics["gravity"]
        gravity.axvline(middle, color=ORANGE, label=f"all: {middle:.4g} ± {metrics['gravity_standard_error']:.1g}")
        wide = max(4 * np.median(abs(size - middle)), 3 * np.median(error), 1.5 * abs(middle - flags["gravity"]), 0.02 * middle)
        gravity.set_xlim(middle - wide, middle + wide)
    gravity.set(xlabel="gravity in flight [m/s²]", ylabel="files", yticks=[])
    for panel in axes:
        legend_above(panel)
    save(figure, "checks")
