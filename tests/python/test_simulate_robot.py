"""The program simulate with the robot of a file."""
import importlib
import json
import math
import pathlib
import sys

import numpy as np
import pytest
from runs import files, read_csv, write_csv

ARM = pathlib.Path(__file__).parents[2] / "examples" / "arm.json"
BEHIND = [0, 1.13, 0, -1.577, 0, 0.828, 0]  # the keyframe of this name
JOINTS = [f"joint{k}" for k in range(1, 8)]
BOX = ["x", "y", "z", "q_w", "q_x", "q_y", "q_z"], ["v_x", "v_y", "v_z", "omega_x", "omega_y", "omega_z"]
CONTROLS = [f"actuator_{k}_control" for k in range(7)]  # the actuators have no names
COLUMNS = ["trajectory", "step", *JOINTS, *(f"box_{x}" for x in BOX[0]), *(f"{x}_v" for x in JOINTS),
           *(f"box_{x}" for x in BOX[1]), *CONTROLS, "normal_force", "touching", "gap_before", "residual", "margin", "status"]


@pytest.fixture
def simulate(run, tmp_path):
    """Runs without figures; returns the data and the metrics."""

    def call(*flags, out="out"):
        result = run("simulate", "--robot", ARM, *flags, "--out", out, "--quiet")
        assert result.returncode == 0, result.stderr
        return read_csv(tmp_path / out / "data.csv"), json.loads((tmp_path / out / "metrics.json").read_text())

    return call


def test_an_arm_holds_a_keyframe(simulate, tmp_path):
    data, metrics = simulate("--keyframe", "behind", "--control", "keyframe", "--steps", 300)
    assert list(data) == COLUMNS
    assert metrics["unsolved"] == 0 and metrics["max_residual"] < 1e-9 and metrics["max_penetration"] < 1e-6
    assert metrics["row"] == 0.005 and metrics["weight"] > 9.81 * 20
    assert abs(data["box_x"] - 0.62).max() < 1e-9 and abs(data["box_z"] - 0.06).max() < 1e-9
    assert data["normal_force"][-1] == pytest.approx(0.5 * 9.81, rel=1e-6) and data["touching"].max() >= 3
    for name, column, aim in zip(JOINTS, CONTROLS, BEHIND):
        assert abs(data[name] - aim).max() < 0.05 and (data[column] == aim).all()
    assert (data["status"] == 0).all() and abs(data["gap_before"]).max() < 1e-9 and (data["residual"] < 1e-9).all()
    # The tables of the figure: bodies where the joints place them.
    places, shapes, planes = (read_csv(tmp_path / "out" / f"{x}.csv") for x in ("places", "shapes", "planes"))
    bodies = int(places["body"].max()) + 1
    assert bodies == 8 and len(places["step"]) == 301 * bodies
    of_box = places["body"] == 7
    assert np.array_equal(places["x"][of_box][1:], data["box_x"]) and places["x"][of_box][0] == 0.62
    turns = np.stack([places[f"r_{i}{j}"] for i in "xyz" for j in "xyz"], -1).reshape(-1, 3, 3)
    assert np.allclose(turns @ turns.swapaxes(1, 2), np.eye(3), atol=1e-9)
    assert len(shapes["body"]) == 9 and sorted(set(shapes["kind"])) == [0, 1, 3]  # a ball, capsules and a box
    assert planes["normal_z"].tolist() == [1] and planes["offset"].tolist() == [0]


def test_controls_of_a_file(simulate, run, tmp_path):
    steps = 120
    share = np.minimum(np.arange(steps) / 60, 1)
    aims = [0, 1.193, 0, -1.348, 0, 0.730, 0]
    write_csv(tmp_path / "controls.csv",
              **{column: a + share * (b - a) for column, a, b in zip(CONTROLS, np.array(BEHIND, float), aims)})
    data, metrics = simulate("--keyframe", "behind", "--control", "./controls.csv", "--steps", steps)
    assert metrics["unsolved"] == 0 and data["box_x"][-1] > 0.66  # the tool has pushed it
    assert np.array_equal(data[CONTROLS[1]], BEHIND[1] + share * (aims[1] - BEHIND[1]))
    again, _ = simulate("--keyframe", "behind", "--control", "out/data.csv", "--steps", steps, out="again")
    assert np.array_equal(again["box_x"], data["box_x"])  # a run's own table is such a file
    write_csv(tmp_path / "one.csv", **{column: np.array([float(aim)]) for column, aim in zip(CONTROLS, aims)})
    data, _ = simulate("--keyframe", "behind", "--control", "./one.csv", "--steps", 3, out="one")
    assert (data[CONTROLS[3]] == aims[3]).all()
    few = "--control must have a row for each of 121 steps, or one for all; "
    refused(run, few, "--control", "./controls.csv", "--steps", 121)
    write_csv(tmp_path / "few.csv", **{CONTROLS[0]: np.zeros(1)})
    refused(run, 'few.csv: has no column "actuator_1_control"', "--control", "./few.csv")


def test_random_controls_and_starts(simulate):
    one, metrics = simulate("--control", "random", "--steps", 50)
    assert metrics["unsolved"] == 0
    controls = np.stack([one[column] for column in CONTROLS])
    assert -1 <= controls.min() < -0.8 and 0.8 < controls.max() <= 1 and len(np.unique(controls)) == controls.size
    other, _ = simulate("--control", "random", "--steps", 50, "--seed", 1, out="other")
    assert (other["joint1"] != one["joint1"]).all()
    many, _ = simulate("--keyframe", "behind", "--steps", 30, "--trajectories", 3, out="many")
    alone, _ = simulate("--keyframe", "behind", "--steps", 30, out="alone")
    first = many["trajectory"] == 0
    for name in COLUMNS:
        assert np.array_equal(many[name][first], alone[name]), name
    assert len({column.tobytes() for column in np.split(many["joint1"], 3)}) == 3
    noisy, _ = simulate("--keyframe", "behind", "--steps", 30, "--velocity-noise", 0.1, out="noisy")
    assert (noisy["joint1"] == alone["joint1"]).all() and 0.05 < (noisy["joint1_v"] - alone["joint1_v"]).std() < 0.15


def test_steps_may_be_others_than_those_of_the_file(simulate):
    coarse, metrics = simulate("--keyframe", "behind", "--dt", 0.01, "--steps", 20)
    assert metrics["row"] == 0.01
    fine, metrics = simulate("--keyframe", "behind", "--dt", 0.01, "--substeps", 8, "--steps", 20, out="fine")
    finer, _ = simulate("--keyframe", "behind", "--dt", 0.00125, "--steps", 160, out="finer")
    assert np.allclose(fine["joint2"], finer["joint2"][7::8], rtol=0, atol=1e-13)
    assert 0 < abs(coarse["joint2"] - fine["joint2"]).max() < 0.05
    single, _ = simulate("--keyframe", "behind", "--steps", 20, "--dtype", "float32", out="single")
    double, _ = simulate("--keyframe", "behind", "--steps", 20, out="double")
    assert 0 < abs(single["joint2"] - double["joint2"]).max() < 1e-5


def refused(run, message, *flags, robot=ARM):
    result = run("simulate", *([] if robot is None else ["--robot", robot]), *flags)
    assert result.returncode != 0 and message in result.stderr and len(result.stderr.splitlines()) == 1, result.stderr
    assert not result.stdout


def test_what_cannot_be_simulated_is_refused(run, tmp_path):
    (tmp_path / "arm.xml").write_text("<mujoco/>")
    refused(run, f"python -m torchlcp.convert_robot {tmp_path / 'arm.xml'}", robot=tmp_path / "arm.xml")
    refused(run, "--system robot needs --robot FILE", "--system", "robot", robot=None)
    refused(run, "--keyframe: the robot has no keyframe home; it has behind", "--keyframe", "home")
    refused(run, "--control keyframe needs --keyframe NAME", "--control", "keyframe")
    refused(run, "--control must be zero, keyframe, random or a file", "--control", "hold")
    refused(run, "--trajectories must be 1, since all would be the same with --spread 0", "--trajectories", 2, "--spread", 0)
    refused(run, "unknown argument --mu", "--mu", 1)
    refused(run, "unknown argument --inputs", "--inputs", "x.csv")
    (tmp_path / "broken.json").write_text(ARM.read_text().replace('"hinge"', '"screw"', 1))
    refused(run, "kind must be free, ball, slide, hinge; got screw", robot=tmp_path / "broken.json")


def test_steps_that_are_not_solved_are_told(run, tmp_path):
    text = ARM.read_text()
    mass = text.index('"values": [', text.index('"mass"')) + len('"values": [')
    (tmp_path / "light.json").write_text(text[:mass] + "-" + text[mass:])
    result = run("simulate", "--robot", tmp_path / "light.json", "--steps", 4, "--out", "out", env=None)
    assert result.returncode != 0 and result.stderr == "simulate: 4 steps were not solved; see data.csv\n"
    assert (tmp_path / "out" / "figures" / "motion.png").exists()  # of the start
    data = read_csv(tmp_path / "out" / "data.csv")
    assert (data["status"] != 0).all() and np.isnan(data["joint1"]).all()


def test_a_start_within_the_ground_is_told(run, tmp_path):
    robot = json.loads(ARM.read_text())
    robot["keyframes"][0]["qpos"][9] = 0.05
    (tmp_path / "low.json").write_text(json.dumps(robot))
    result = run("simulate", "--robot", tmp_path / "low.json", "--keyframe", "behind", "--steps", 2, "--out", "out")
    assert result.returncode == 0 and "the robot starts 0.01 m within what it touches" in result.stdout
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["max_penetration"] == pytest.approx(0.01)


def test_figures(run, tmp_path):
    flags = ("--robot", ARM, "--keyframe", "behind", "--control", "keyframe", "--steps", 12)
    result = run("simulate", *flags, "--out", "out", env=None)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    assert {str(path) for path in files(tmp_path / "out")} == {
        "config.json", "data.csv", "metrics.json", "places.csv", "shapes.csv", "planes.csv", "figures/motion.png",
        "figures/motion.gif"}
    image = importlib.import_module("matplotlib.image").imread(tmp_path / "out" / "figures" / "motion.png")
    colours = np.unique((255 * image[..., :3]).astype(int).reshape(-1, 3), axis=0)
    assert len(colours) > 500  # shaded bodies


def area(faces):
    return sum(np.linalg.norm(np.cross(faces[:, k + 1] - faces[:, 0], faces[:, k + 2] - faces[:, 0]), axis=-1).sum() / 2
               for k in (0, 1))


def test_shapes_are_drawn_as_they_are(build):
    folder = str(build / "share" / "torchlcp" / "figures")
    sys.path.insert(0, folder)
    robot = importlib.import_module("robot")
    sys.path.remove(folder)
    size = np.array([0.2, 0.5, 0.3])
    expected = {
        robot.BALL: (4 * math.pi * 0.04, [0.2] * 3), robot.CAPSULE: (4 * math.pi * 0.04 + 0.4 * math.pi, [0.2, 0.2, 0.7]),
        robot.CYLINDER: (2 * math.pi * 0.04 + 0.4 * math.pi, [0.2, 0.2, 0.5]),
        robot.BOX: (8 * (0.1 + 0.06 + 0.15), size), robot.ELLIPSOID: (1.333, size)}
    for kind, (whole, extent) in expected.items():
        faces = robot.mesh_of(kind, size)
        assert faces.shape[1:] == (4, 3) and np.allclose(abs(faces).max(axis=(0, 1)), extent, rtol=0.05)
        assert area(faces) == pytest.approx(whole, rel=0.08), kind


def test_help(run):
    result = run("simulate", "--system", "robot", "--help")
    assert result.returncode == 0 and "These are the flags of robot" in result.stdout
    for flag in ("--robot", "--keyframe", "--control", "--spread", "--dt", "--substeps"):
        assert flag in result.stdout
    assert "--mu" not in result.stdout and "--inputs" not in result.stdout
