"""motion.png: velocity and forces of a simulated sliding block."""
import json

from style import BLUE, GREY, ORANGE, plt, read_columns, run_folder, save, select, shade_sticking


def friction(data, mass, dt):
    """The force on the block that explains the change of velocity, N."""
    return [mass * (b - a) / dt - u for a, b, u in zip(data["v"], data["v_next"], data["u"])]


def motion(data, mass, dt, limit):
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(6.4, 4.6), sharex=True, constrained_layout=True)
    time = [dt * (k + 1) for k in data["step"]]
    edges = [0.0] + time
    for axes in (top, bottom):
        band = shade_sticking(axes, time, data["v_next"], dt)
    if band:
        band.set_label("step ends at rest")
    top.plot(edges, data["v"][:1] + data["v_next"], color=BLUE, marker=".", ms=4)
    top.set_ylabel("velocity [m/s]")
    bottom.stairs(data["u"], edges, baseline=None, color=GREY, lw=1, label="input force")
    bottom.stairs(friction(data, mass, dt), edges, baseline=None, color=ORANGE, lw=1.5, label="friction")
    for sign in (-1, 1):
        bottom.axhline(sign * limit, color=ORANGE, lw=0.8, ls=":", label=r"$\pm\mu m g$" if sign > 0 else None)
    bottom.set_ylabel("force [N]")
    bottom.set_xlabel("time [s]")
    bottom.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncol=4)
    return figure


def steps(data, mass, dt, limit):
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.2), constrained_layout=True)
    free = [v + dt * u / mass for v, u in zip(data["v"], data["u"])]
    left.plot(free, data["v_next"], ".", ms=3, color=BLUE)
    left.set_xlabel("velocity without friction [m/s]")
    left.set_ylabel("velocity after the step [m/s]")
    right.plot(free, friction(data, mass, dt), ".", ms=3, color=ORANGE, label="friction")
    for sign in (-1, 1):
        right.axhline(sign * limit, color=ORANGE, lw=0.8, ls=":", label=r"$\pm\mu m g$" if sign > 0 else None)
    right.set_xlabel("velocity without friction [m/s]")
    right.set_ylabel("force [N]")
    right.legend()
    return figure


def main():
    run = run_folder()
    flags = json.loads((run / "config.json").read_text())
    data = read_columns(run / "data.csv")
    draw = steps if flags["inputs"] else motion
    if not flags["inputs"]:
        data = select(data, "trajectory", 0)
    figure = draw(data, flags["mass"], flags["dt"], flags["mu"] * flags["mass"] * flags["gravity"])
    figure.suptitle(f"Sliding block, {flags['formulation']} formulation", fontsize=10)
    save(figure, run, "motion")


main()
