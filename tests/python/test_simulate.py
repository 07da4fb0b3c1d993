"""The program simulate: every system and formulation, with the numbers of its section's example by default."""
import importlib
import json
import os
import sys

import numpy as np
import pytest
from runs import files, read_csv, variants, write_csv

FORMULATIONS = {
    "sliding_block": ["forward", "direct", "traditional", "mixed", "direct_supported"],
    "falling_block": ["direct"],
    "planar_block": ["exact_direction", "fixed_point", "polyhedral"],
    "point_mass": ["stewart_trinkle", "belbute_peres"],
    "tripod": ["polyhedral"],
    "compliant_particle": ["convex"],
    "compliant_block": ["convex"],
    **dict.fromkeys(("cube", "rolling", "stack", "spheres"), ["exact_cone", "polyhedral", "compliant"]),
}
BODY = "x,y,z,q_w,q_x,q_y,q_z,v_x,v_y,v_z,omega_x,omega_y,omega_z"
BODIES = {"cube": 1, "rolling": 1, "stack": 3, "spheres": 8}
COLUMNS = {
    "sliding_block": "v,u,v_next,lambda_plus,lambda_minus,gamma",
    "falling_block": "x,v,lambda",
    "planar_block": "v_x,v_y,u_x,u_y,v_next_x,v_next_y,force_x,force_y",
    "point_mass": "x,y,v_x,v_y,lambda_n,lambda_plus,lambda_minus,gamma",
    "tripod": "x,y,theta,v_x,v_y,omega",
    "compliant_particle": "x,y,z,v_x,v_y,v_z,gamma_x,gamma_y,gamma_n",
    "compliant_block": "x,z,theta,v_x,v_z,omega," + ",".join(f"gamma_{x}{k}" for k in range(1, 5) for x in "tn"),
}
for name, count in BODIES.items():
    bodies = [BODY] if count == 1 else [",".join(f"{x}_{b}" for x in BODY.split(",")) for b in range(count)]
    COLUMNS[name] = ",".join([*bodies, "kinetic,potential,gap,normal_force,support_force"])
COMPLIANT = ["compliant_particle", "compliant_block"]
ALL = [(system, formulation) for system, names in FORMULATIONS.items() if system not in BODIES for formulation in names]
RIGID = [(system, formulation) for system in BODIES for formulation in FORMULATIONS[system]]


def coulomb(v, u, mass, dt, mu, gravity=9.81):
    free = v + dt * u / mass
    return np.sign(free) * np.maximum(np.abs(free) - dt * mu * gravity, 0)


@pytest.fixture
def simulate(run, tmp_path):
    """Runs without figures; returns the data and the metrics."""

    def call(*flags, out="out"):
        result = run("simulate", *flags, "--out", out, "--quiet")
        assert result.returncode == 0, result.stderr
        return read_csv(tmp_path / out / "data.csv"), json.loads((tmp_path / out / "metrics.json").read_text())

    return call


# Numbers of the examples


@pytest.mark.parametrize("system, formulation", ALL)
def test_default_flags(simulate, system, formulation):
    data, metrics = simulate("--system", system, "--formulation", formulation)
    assert ",".join(data) == "trajectory,step," + COLUMNS[system]
    assert metrics["unsolved"] == 0 and metrics["max_residual"] < (1e-10 if system in COMPLIANT else 1e-11)
    assert metrics["kinked_steps"] == 0
    if formulation != "polyhedral":
        assert metrics["max_error_vs_exact"] < (1e-9 if system in COMPLIANT else 1e-11)
    assert len(data["step"]) == metrics["steps"]


def test_falling_block(simulate):
    data, metrics = simulate("--system", "falling_block")
    at = {step: {name: column[i] for name, column in data.items()} for i, step in enumerate(data["step"])}
    assert at[44]["x"] == pytest.approx(0.02881) and at[44]["v"] == pytest.approx(-4.3164)
    assert (at[45]["x"], at[45]["v"]) == (0, pytest.approx(-2.881)) and at[45]["lambda"] == pytest.approx(153.35)
    assert (at[46]["v"], at[46]["lambda"], at[50]["lambda"]) == (0, pytest.approx(297.91), pytest.approx(9.81))
    assert 0.01 * data["lambda"].sum() == pytest.approx(19.62, rel=1e-12) and data["x"].min() == 0
    assert metrics["sticking_fraction"] == 155 / 200


def on_the_ground(simulate, system, *flags, stiffness=1e5):
    return simulate("--system", system, "--height", 0, "--stiffness", stiffness, *flags)


def test_what_sticks_on_compliant_ground_creeps(simulate):
    for push in [1, 4]:
        data, metrics = on_the_ground(simulate, "compliant_particle", "--speed", 0, "--push", push)
        assert metrics["sticking_fraction"] == 1
        assert data["v_x"][-1] == pytest.approx(1e-3 * 0.01 * push, rel=1e-6)  # sigma dt u / m
        assert data["z"][-1] == pytest.approx(-9.81e-5, rel=1e-4)  # -m g / k
        coarse, _ = on_the_ground(simulate, "compliant_particle", "--speed", 0, "--push", push, "--sigma", 0.1)
        assert coarse["v_x"][-1] == pytest.approx(0.1 * 0.01 * push, rel=1e-6)


@pytest.mark.parametrize("system", COMPLIANT)
def test_what_slides_on_compliant_ground_hovers(simulate, system):
    for tau in variants(0.02, 0):
        flags = ("--speed", 0, "--push", 0.5 * 9.81 * 1.2, "--dissipation", tau, "--steps", 300)
        data, metrics = on_the_ground(simulate, system, *flags)
        assert (data["v_x"][-1] - data["v_x"][-101]) == pytest.approx(0.2 * 0.5 * 9.81, rel=1e-2)  # Coulomb's
        height = data["z"][-1] - (0.1 if system == "compliant_block" else 0)
        assert height == pytest.approx(0.5 * (0.01 + tau) * data["v_x"][-1], rel=0.05)
        assert metrics["max_hover"] == pytest.approx(height, rel=0.05)


def test_what_starts_to_slide_on_compliant_ground_at_once_hops(simulate):
    """On stiff ground by mu v / (1 + mu^2), whatever the time step is."""
    for dt in [1e-2, 1e-3]:
        data, _ = on_the_ground(simulate, "compliant_particle", "--speed", 1, "--dissipation", 0, "--dt", dt,
                                "--gravity", 0, "--beta", 0, "--sigma", 1e-9, stiffness=1e12)
        assert data["v_z"][0] == pytest.approx(0.5 / 1.25, rel=1e-3)


@pytest.mark.parametrize("system", COMPLIANT)
def test_stiffer_ground_is_nearer_to_rigid_ground(simulate, tmp_path, system):
    simulate("--system", system)
    table = read_csv(tmp_path / "out" / "convergence.csv")
    push, dt, stiffness, error = (table[x] for x in ("push", "dt", "stiffness", "rms_error"))
    sticks = push == push.min()
    far, stiff = stiffness == 1e8, stiffness == 1e6
    assert (error[sticks & far] < 0.02 * error[sticks & stiff]).all() and error[sticks & far].max() < 1e-5
    coarse, fine = (error[~sticks & far & (dt == x)].item() for x in (0.01, 0.001))
    assert 5 < coarse / fine < 20  # hovering, which costs mu dt a


def test_second_direct_formulation_is_reported_infeasible(run, tmp_path):
    result = run("simulate", "--formulation", "direct2", "--out", "out")
    assert result.returncode == 0 and "50 steps reported infeasible, 50 proved so" in result.stdout
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["unsolved"] == metrics["infeasible"] == metrics["farkas_proofs"] == 50
    assert metrics["max_residual"] is None and metrics["max_error_vs_exact"] is None
    data = read_csv(tmp_path / "out" / "data.csv")
    assert np.isnan(data["v_next"]).all() and not np.isnan(data["v"]).any()


def test_second_direct_formulation_solves_rest(simulate):
    data, metrics = simulate("--formulation", "direct2", "--speed", 0, "--mu", 0)
    assert metrics["unsolved"] == 0 and (data["v_next"] == 0).all()


@pytest.mark.parametrize("supports", [1, 2, 7])
def test_supports_of_one_block_move_as_one(simulate, supports):
    data, metrics = simulate("--formulation", "direct_supported", "--supports", supports, "--trajectories", 20)
    assert metrics["unsolved"] == 0 and metrics["max_error_vs_exact"] < 1e-13 and metrics["max_residual"] < 1e-13
    assert 0.2 < metrics["sticking_fraction"] < 0.8
    exact, _ = simulate("--formulation", "traditional", "--trajectories", 20, out="exact")
    assert ((data["v_next"] == 0) == (exact["v_next"] == 0)).all()


def test_forward_formulation_says_where_it_glues(run, tmp_path):
    write_csv(tmp_path / "inputs.csv", v=np.array([0.0, 1.0]), u=np.array([-5.0, 1.0]))
    result = run("simulate", "--formulation", "forward", "--inputs", "inputs.csv", "--out", "out")
    assert result.returncode == 0 and "1 steps have v + dt u / m < 0" in result.stdout
    data = read_csv(tmp_path / "out" / "data.csv")
    assert (data["v_next"][0], data["lambda_minus"][0]) == (0, -5)
    assert data["v_next"][1] == pytest.approx(coulomb(1, 1, 1, 0.1, 0.3))


@pytest.mark.parametrize("passes, error", [(1, 0.238), (2, 0.064), (5, 0.0013), (30, 0.0)])
def test_fixed_point_scheme_of_the_planar_block(simulate, passes, error):
    _, metrics = simulate("--system", "planar_block", "--formulation", "fixed_point", "--passes", passes)
    assert metrics["max_error_vs_exact"] == pytest.approx(error, abs=5e-4 if passes < 5 else 5e-5)
    assert (metrics["converged_fraction"] == 1) == (passes == 30)


def test_relaxed_scheme_needs_fewer_passes(simulate):
    _, plain = simulate("--system", "planar_block", "--formulation", "fixed_point")
    _, relaxed = simulate("--system", "planar_block", "--formulation", "fixed_point", "--relaxed")
    assert relaxed["converged_fraction"] == 1 and relaxed["max_passes"] < 10 < plain["max_passes"]


@pytest.mark.parametrize("directions", [4, 8, 16, 64])
def test_polygons_of_the_planar_block(simulate, directions):
    data, metrics = simulate("--system", "planar_block", "--formulation", "polyhedral", "--directions", directions)
    assert 0 < metrics["max_error_vs_exact"] < 2.5 / directions
    force = np.hypot(data["force_x"], data["force_y"])
    limit = 0.2 * 9.81
    assert force.max() <= limit * (1 + 1e-12) and force.min() >= limit * np.cos(np.pi / directions) * (1 - 1e-12)


@pytest.mark.parametrize("formulation", FORMULATIONS["point_mass"])
def test_point_mass_at_position_level(simulate, formulation):
    data, metrics = simulate("--system", "point_mass", "--formulation", formulation)
    touch = int(np.argmax(data["lambda_n"] > 0))
    assert data["step"][touch] == 45
    assert data["lambda_n"][touch:touch + 3] == pytest.approx([1.5335, 2.9791, 0.0981])
    assert data["v_x"][touch:touch + 2] == pytest.approx([2.23325, 0.7437])
    assert data["step"][np.argmax(data["v_x"] == 0)] == 62 and (data["v_x"][61:] == 0).all()
    assert metrics["final_x"] == pytest.approx(1.4024645, abs=1e-12) and metrics["lowest_point"] == 0
    assert data["lambda_n"].sum() == pytest.approx(39.24, rel=1e-12)
    assert (data["lambda_plus"] - data["lambda_minus"]).sum() == pytest.approx(-3, rel=1e-12)


def test_point_mass_at_velocity_level(simulate):
    data, metrics = simulate("--system", "point_mass", "--stabilization", "velocity")
    assert data["step"][np.argmax(data["lambda_n"] > 0)] == 46
    assert metrics["final_x"] == pytest.approx(1.410132, abs=1e-12)
    assert metrics["final_y"] == pytest.approx(-0.015335, abs=1e-12)


@pytest.mark.parametrize("restitution", [0.5, 0.8, 1.0])
def test_point_mass_bounces(simulate, restitution):
    data, _ = simulate("--system", "point_mass", "--stabilization", "velocity", "--restitution", restitution, "--mu", 0.2)
    hit = int(np.argmax(data["lambda_n"] > 0))
    assert data["v_y"][hit] == pytest.approx(-restitution * data["v_y"][hit - 1], rel=1e-12)
    assert data["lambda_minus"][hit] == pytest.approx(0.2 * data["lambda_n"][hit], rel=1e-12)


def test_tripod(simulate):
    _, metrics = simulate("--system", "tripod")
    assert metrics["steps_until_rest"] == 71
    assert metrics["final_pose"] == pytest.approx([0.172465, 0.048428, 1.307901], abs=5e-7)


def test_tripod_with_many_directions(simulate):
    _, metrics = simulate("--system", "tripod", "--directions", 256)
    assert metrics["final_pose"] == pytest.approx([0.167350, 0.048711, 1.491087], abs=5e-7)
    assert metrics["max_error_vs_exact"] < 1e-3


def test_tripod_that_would_tip(run, tmp_path):
    result = run("simulate", "--system", "tripod", "--com-height", 0.5, "--out", "out")
    assert result.returncode == 1 and "80 steps were not solved" in result.stderr
    assert "the block would tip" in result.stdout
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["unsolved"] == 80 and metrics["max_residual"] is None and metrics["steps_until_rest"] is None


# Inputs


@pytest.mark.parametrize("formulation", ["direct", "traditional", "mixed"])
@pytest.mark.parametrize("mass, dt, mu", [(1, 0.1, 0.3), (2.5, 0.01, 0.8), (0.3, 1, 0.05), (40, 0.002, 0)])
def test_10000_sliding_steps(simulate, tmp_path, formulation, mass, dt, mu):
    v, u = np.random.default_rng(0).normal(size=(2, 10_000))
    v, u = v * (2 * dt * mu * 9.81 + dt), u * (2 * mu * mass * 9.81 + mass)
    write_csv(tmp_path / "inputs.csv", v=v, u=u)
    data, metrics = simulate("--formulation", formulation, "--inputs", "inputs.csv", "--mass", mass, "--dt", dt,
                             "--mu", mu)
    assert np.array_equal(data["v"], v) and np.array_equal(data["u"], u)
    exact = coulomb(v, u, mass, dt, mu)
    assert np.abs(data["v_next"] - exact).max() <= 1e-11
    assert np.array_equal(data["v_next"] == 0, exact == 0)
    assert metrics["max_error_vs_exact"] <= 1e-11
    assert metrics["sticking_fraction"] == pytest.approx((exact == 0).mean())
    assert metrics["unsolved"] == 0 and metrics["max_residual"] < 1e-9


@pytest.mark.parametrize("formulation", ["exact_direction", "polyhedral"])
def test_planar_steps(simulate, tmp_path, formulation):
    v, u = np.random.default_rng(1).normal(size=(2, 2, 1000))
    write_csv(tmp_path / "inputs.csv", v_x=v[0], v_y=v[1], u_x=u[0], u_y=u[1])
    data, metrics = simulate("--system", "planar_block", "--formulation", formulation, "--inputs", "inputs.csv")
    free = v + 0.1 * u
    exact = free * np.maximum(1 - 0.1 * 0.2 * 9.81 / np.hypot(*free), 0)
    error = np.abs(np.stack([data["v_next_x"], data["v_next_y"]]) - exact).max()
    assert error == pytest.approx(metrics["max_error_vs_exact"], abs=1e-12)
    assert error < (1e-12 if formulation == "exact_direction" else 0.4 * 0.1 * 0.2 * 9.81)


def test_point_mass_steps_touch_the_ground_where_y_is_missing(simulate, tmp_path):
    v, u = np.random.default_rng(2).normal(size=(2, 2, 1000))
    write_csv(tmp_path / "inputs.csv", v_x=v[0], v_y=v[1], u_x=u[0], u_y=u[1])
    data, metrics = simulate("--system", "point_mass", "--inputs", "inputs.csv")
    normal = v[1] + 0.01 * (u[1] - 9.81)
    assert np.abs(data["v_y"] - np.maximum(normal, 0)).max() < 1e-12 and metrics["max_error_vs_exact"] < 1e-12


def test_falling_and_tripod_steps(simulate, tmp_path):
    random = np.random.default_rng(3)
    x, v = random.random(100) * 0.1, random.normal(size=100)
    write_csv(tmp_path / "inputs.csv", x=x, v=v)
    data, _ = simulate("--system", "falling_block", "--inputs", "inputs.csv")
    assert np.abs(data["x"] - np.maximum(x + 0.01 * v - 9.81e-4, 0)).max() < 1e-15
    write_csv(tmp_path / "inputs.csv", theta=random.random(50), v_x=random.random(50), v_y=random.random(50),
              omega=random.normal(size=50))
    data, metrics = simulate("--system", "tripod", "--inputs", "inputs.csv", "--directions", 64)
    assert len(data["x"]) == 50 and metrics["unsolved"] == 0 and metrics["max_error_vs_exact"] < 1e-2


def test_inputs_repeat_from_a_config(run, tmp_path):
    write_csv(tmp_path / "inputs.csv", v_x=np.ones(5), v_y=np.ones(5), u_x=np.ones(5), u_y=np.zeros(5))
    flags = ("--system", "planar_block", "--inputs", "inputs.csv", "--mu", 0.7)
    assert run("simulate", *flags, "--out", "a", "--quiet").returncode == 0
    (tmp_path / "elsewhere").mkdir()
    assert run("simulate", "--config", "a/config.json", "--out", "elsewhere/b", "--quiet").returncode == 0
    assert (tmp_path / "a" / "data.csv").read_bytes() == (tmp_path / "elsewhere" / "b" / "data.csv").read_bytes()


# Trajectories, noise, precision


def test_steps_of_a_trajectory_are_chained(simulate):
    data, _ = simulate("--trajectories", 3, "--steps", 20, "--speed", -2)
    assert len(data["v"]) == 60
    for k in range(3):
        rows = data["trajectory"] == k
        assert data["v"][rows][0] == -2 and np.array_equal(data["step"][rows], np.arange(20))
        assert np.array_equal(data["v"][rows][1:], data["v_next"][rows][:-1])


@pytest.mark.parametrize("system", [
    "falling_block", "planar_block", "point_mass", "tripod", *COMPLIANT, "cube", "rolling", "spheres"
])
def test_first_trajectory_is_that_of_the_flags(simulate, system):
    one, _ = simulate("--system", system, "--steps", 60)
    many, _ = simulate("--system", system, "--steps", 60, "--trajectories", 5)
    first = many["trajectory"] == 0
    for name, column in one.items():
        assert np.array_equal(many[name][first], column)
    assert len({column.tobytes() for column in np.split(many[COLUMNS[system].split(",")[0]], 5)}) == 5


def test_trajectories_of_a_stack_have_other_shifts_and_pushes(simulate):
    data, metrics = simulate("--system", "stack", "--trajectories", 4, "--steps", 5)
    assert len(set(data["x_1"].round(9))) == 4 and metrics["max_error_vs_exact"] < 1e-9
    data, _ = simulate("--system", "stack", "--trajectories", 4, "--steps", 5, "--bodies", 1, "--push", 6, out="pushed")
    assert len(set(data["v_x"])) == 20


@pytest.mark.parametrize("system", FORMULATIONS)
def test_noise_is_on_the_measured_columns_alone(simulate, system):
    positions = [] if system in ("sliding_block", "planar_block") else ["--position-noise", 0.01]
    size = ["--trajectories", 40, *(["--steps", 40] if system in BODIES else [])]
    clean, truth = simulate("--system", system, *size)
    noisy, metrics = simulate("--system", system, *size, "--velocity-noise", 0.02, *positions)
    assert metrics == truth
    for name in COLUMNS[system].split(","):
        difference = noisy[name] - clean[name]
        if name.startswith(("v", "omega")):
            assert difference.std() == pytest.approx(0.02, rel=0.1) and abs(difference.mean()) < 0.002
        elif name.split("_")[0] in ("x", "y", "z", "theta"):
            assert difference.std() == pytest.approx(0.01, rel=0.1)
        else:
            assert (difference == 0).all()


def test_a_noisy_state_is_measured_once(simulate):
    data, _ = simulate("--velocity-noise", 0.1)
    assert np.array_equal(data["v"][1:], data["v_next"][:-1])


@pytest.mark.parametrize("system, formulation", ALL + RIGID)
def test_float32(simulate, system, formulation):
    data, metrics = simulate("--system", system, "--formulation", formulation, "--dtype", "float32")
    assert metrics["unsolved"] == 0
    largest = 0.2 if formulation == "polyhedral" else 1e-3 if system == "falling_block" else 1e-4
    if formulation == "compliant":
        largest = {"rolling": 0.3, "stack": 0.02}.get(system)
    error = metrics["max_error_vs_exact"]
    assert error < largest if system not in ("cube", "spheres") else error is None
    assert all(np.array_equal(column, column.astype(np.float32)) for column in data.values())


def test_the_same_seed_gives_the_same_data(run, tmp_path):
    for out, seed in (("a", 1), ("b", 1), ("c", 2)):
        flags = ("--trajectories", 4, "--velocity-noise", 0.1, "--seed", seed, "--out", out, "--quiet")
        assert run("simulate", *flags).returncode == 0
    a, b, c = ((tmp_path / x / "data.csv").read_bytes() for x in "abc")
    assert a == b != c


# Rigid bodies


@pytest.mark.parametrize("system, formulation", RIGID)
def test_rigid_bodies(simulate, tmp_path, system, formulation):
    data, metrics = simulate("--system", system, "--formulation", formulation)
    assert ",".join(data) == "trajectory,step," + COLUMNS[system]
    assert metrics["unsolved"] == 0 and metrics["max_residual"] < 1e-8
    compliant = formulation == "compliant"
    assert metrics["max_penetration"] < 1e-3
    # Friction, dampers and impacts take energy.
    assert metrics["max_energy_gain"] < 1e-9 and metrics["energy_last"] <= metrics["energy_first"] * (1 + 1e-12)
    if system == "cube":
        assert metrics["energy_last"] == pytest.approx(9.81 * 0.05, abs=1e-3)  # it lies on a face
        assert metrics["sticking_fraction"] > 0.3
    if system == "rolling":
        assert metrics["max_error_vs_exact"] < (0.3 if compliant else 1e-12)
        assert data["v_x"][-1] == pytest.approx(5 / 7 * 2, abs=1e-3 if compliant else 1e-12)
    if system == "stack":
        assert metrics["max_error_vs_exact"] < (0.02 if compliant else 1e-9)
    bodies = read_csv(tmp_path / "out" / "bodies.csv")
    assert len(bodies["mass"]) == BODIES[system] and min(bodies["size_x"]) > 0


@pytest.mark.parametrize("bodies, steps", [(4, 40), (8, 100)])
def test_polyhedral_stacks_stay_at_rest(simulate, bodies, steps):
    _, metrics = simulate("--system", "stack", "--bodies", bodies, "--formulation", "polyhedral", "--steps", steps)
    assert metrics["unsolved"] == 0 and metrics["max_error_vs_exact"] < 1e-9


@pytest.mark.parametrize("system, flags, message", [
    ("cube", ("--orientation", 0, 0, 0, 0), "--orientation must be 4 numbers, not all 0"),
    ("cube", ("--height", 0.04), "bodies overlap at the start"),
    ("spheres", ("--radius", 0.2), "bodies overlap at the start"),
    ("rolling", ("--slope", 1.5), "--slope must be at least 0 and less than 1.5"),
    ("rolling", ("--speed", 0, "--trajectories", 2), "--trajectories must be 1, since all would be the same"),
    ("stack", ("--shift", 0, "--trajectories", 2), "--trajectories must be 1, since all would be the same"),
    ("stack", ("--shift", -0.051), "--shift must be at most half of --side, 0.05 m"),
])
def test_starts_that_cannot_be_are_refused(run, system, flags, message):
    result = run("simulate", "--system", system, *flags, "--out", "out", "--quiet")
    assert result.returncode == 2 and message in result.stderr


def test_a_stack_ends_where_a_cube_would_tip(run, simulate):
    flags = ("--system", "stack", "--bodies", 2, "--push", 5)
    data, _ = simulate(*flags, "--steps", 30)
    assert 0.02 < data["x_1"][-1] < 0.03
    result = run("simulate", *flags, "--steps", 200, "--out", "beyond", "--quiet")
    assert result.returncode == 1 and "cube 1 would tip over the edge of the one below" in result.stderr


def test_the_start_counts_for_the_penetration(simulate, tmp_path):
    write_csv(tmp_path / "rows.csv", x=np.zeros(1), y=np.zeros(1), z=np.full(1, 0.04), v_z=np.zeros(1))
    _, metrics = simulate("--system", "cube", "--inputs", tmp_path / "rows.csv")
    assert metrics["max_penetration"] == pytest.approx(0.01, abs=1e-12)


def test_a_row_of_inputs_is_a_step_of_a_body(simulate, tmp_path):
    row = np.array
    write_csv(tmp_path / "rows.csv", x=row([0.0, 0.0]), y=row([0.0, 0.0]), z=row([0.05, 0.5]), v_x=row([1.0, 0.0]),
              v_z=row([0.0, -1.0]), u_y=row([0.0, 2.0]))
    data, metrics = simulate("--system", "cube", "--inputs", tmp_path / "rows.csv", "--mu", 0.5, "--dt", 0.01)
    assert metrics["steps"] == 2 and metrics["unsolved"] == 0
    assert data["v_x"] == pytest.approx([1 - 0.5 * 0.0981, 0], abs=1e-12)
    assert data["v_y"] == pytest.approx([0, 0.02], abs=1e-12)
    assert data["z"] == pytest.approx([0.05, 0.5 - 0.010981], abs=1e-12)


def test_substeps_are_steps_between_the_rows(simulate):
    fine, _ = simulate("--system", "cube", "--dt", 0.0025, "--steps", 200, out="fine")
    coarse, _ = simulate("--system", "cube", "--dt", 0.005, "--steps", 100, "--substeps", 2, out="coarse")
    assert np.array_equal(coarse["x"], fine["x"][1::2]) and np.array_equal(coarse["omega_z"], fine["omega_z"][1::2])


# Figures and help


def check_figures(out, system):
    drawn = {path.name: path.stat().st_size for path in (out / "figures").iterdir()}
    expected = {"motion.png", "motion.gif"} | ({"convergence.png"} if system in COMPLIANT else set())
    assert set(drawn) == expected and min(drawn.values()) > 10_000
    return drawn


DRAWN = ["sliding_block", "compliant_block"]


@pytest.mark.parametrize("system", DRAWN)
def test_figures(run, tmp_path, system):
    result = run("simulate", "--system", system, "--steps", 10, "--trajectories", 2, "--out", "out", env=None)
    assert result.returncode == 0 and result.stderr == ""
    for name in check_figures(tmp_path / "out", system):
        assert str(os.path.join("out", "figures", name)) in result.stdout


@pytest.fixture(scope="module")
def script(build):
    """The script of the figures, as a module, with animations of few frames."""
    folder = str(build / "share" / "torchlcp" / "figures")
    sys.path.insert(0, folder)
    module = importlib.import_module("simulate")
    sys.path.remove(folder)
    sys.modules["style"].FRAMES = 8
    return module


@pytest.mark.parametrize("system", [system for system in FORMULATIONS if system not in DRAWN])
def test_the_other_systems_are_drawn(simulate, script, tmp_path, monkeypatch, system):
    simulate("--system", system, "--steps", 10, "--trajectories", 2)
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["draw.py", str(out), str(out / "figures")])
    script.simulate(out, *sys.modules["style"].load(out))
    check_figures(out, system)


def test_the_ground_ends_at_the_walls(script):
    rigid = sys.modules["rigid"]
    ground, walls = np.array([0.0, 0, 1, 0]), [np.array([-x, -y, 0.0, -1]) for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1))]
    lines = np.array(rigid.net(ground, walls, np.array([0.0, 0, 3]), 2))
    assert len(lines) == 10 and (lines[..., 2] == 0).all() and abs(lines).max() == pytest.approx(1)
    corners = rigid.edges([ground, *walls], [np.array([0.0, 0, -1, -2])])
    assert len(corners) == 8 and max(line[:, 2].max() for line in corners) == pytest.approx(2)


def test_animation_can_be_left_out(run, tmp_path):
    assert run("simulate", "--animation", "none", "--out", "out", "--quiet", env=None).returncode == 0
    assert {str(path) for path in files(tmp_path / "out")} == {
        "config.json", "data.csv", "metrics.json", "figures/motion.png"
    }


@pytest.mark.parametrize("system", FORMULATIONS)
def test_help_shows_the_flags_and_defaults_of_a_system(run, system):
    result = run("simulate", "--system", system, "--help")
    assert result.returncode == 0 and f"These are the flags of {system}" in result.stdout
    for other, formulations in FORMULATIONS.items():
        assert other in result.stdout and all(name in result.stdout for name in formulations)
    assert ("--directions" in result.stdout) == (system in ("planar_block", "tripod", *BODIES))
    assert ("--height" in result.stdout) == (system in ("falling_block", "point_mass", "cube", "spheres", *COMPLIANT))
