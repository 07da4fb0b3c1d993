"""convert_tosses: motion with conventions of its own becomes tosses, and wrong flags are told."""
import json
import pathlib
import re
import subprocess

import numpy as np
import pytest
import torch
from runs import WITHOUT_FIGURES, files, read_csv, write_csv

RECORDED = pathlib.Path(__file__).parents[3] / "shared" / "data" / "cube_tosses"
COLUMNS = ("x", "y", "z", "q_w", "q_x", "q_y", "q_z", "v_x", "v_y", "v_z", "omega_x", "omega_y", "omega_z")
RATE = 240
FLAGS = {"position": ("X", "Y", "Z"), "quaternion": ("qx", "qy", "qz", "qw"), "quaternion-order": "xyzw",
         "angular-velocity-frame": "world", "up": "y", "length-unit": "mm", "time": "Time"}


@pytest.fixture(scope="module")
def tosses(build, tmp_path_factory):
    """Three tosses of a cube about different axes, 350 samples each: [350, 13]."""
    folder = tmp_path_factory.mktemp("simulated")
    subprocess.run([build / "bin" / "simulate", "--system", "cube", "--trajectories", "3", "--steps", "350",
                    "--dt", str(1 / RATE), "--height", "0.4", "--animation", "none", "--out", folder, "--quiet"],
                   check=True, env=WITHOUT_FIGURES)
    data = read_csv(folder / "data.csv")
    tosses = [np.stack([data[name][data["trajectory"] == k] for name in COLUMNS], 1) for k in range(3)]
    for toss, symmetry in zip(tosses[1:], ([0.5, 0.5, 0.5, 0.5], [0.5**0.5, 0.5**0.5, 0, 0])):
        toss[:, 3:7] = times(toss[:, 3:7], np.broadcast_to(symmetry, (len(toss), 4)))
        toss[:, 10:] = turned(np.array(symmetry) * [1, -1, -1, -1], toss[:, 10:])
    return tosses


def times(a, b):
    """The products of quaternions, [..., 4]."""
    w, x, y, z = np.moveaxis(a, -1, 0)
    rows = np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])
    return np.einsum("ij...,...j->...i", rows, b)


def turned(q, x):
    """Vectors turned by quaternions."""
    conjugate = q * [1, -1, -1, -1]
    vectors = np.concatenate([np.zeros(x.shape[:-1] + (1,)), x], -1)
    q, conjugate = np.broadcast_to(q, vectors.shape), np.broadcast_to(conjugate, vectors.shape)
    return times(times(q, vectors), conjugate)[..., 1:]


def captured(toss, marker=(0, 0, 0)):
    """The toss in mm, y upward, with quaternions xyzw and angular velocities in the axes of the world, of a point marker
    (m) off the center."""
    upright = np.full((len(toss), 4), [0.5**0.5, -(0.5**0.5), 0, 0])  # from z upward to y upward
    q = times(upright, toss[:, 3:7])
    arm = turned(q, np.broadcast_to(marker, (len(toss), 3)))
    omega = turned(q, toss[:, 10:])
    position = 1000 * (turned(upright, toss[:, :3]) + arm)
    velocity = 1000 * (turned(upright, toss[:, 7:10]) + np.cross(omega, arm))
    return {"Frame": np.arange(len(toss)), "Time": np.arange(len(toss)) / RATE,
            **dict(zip(("X", "Y", "Z"), position.T)), **dict(zip(("qx", "qy", "qz", "qw"), np.roll(q, -1, 1).T)),
            **dict(zip(("v_x", "v_y", "v_z"), velocity.T)), **dict(zip(("omega_x", "omega_y", "omega_z"), omega.T))}


@pytest.fixture
def folder(tosses, tmp_path):
    (tmp_path / "captured").mkdir()
    for k, toss in enumerate(tosses):
        write_csv(tmp_path / "captured" / f"throw_{k}.csv", **captured(toss))
    return tmp_path / "captured"


@pytest.fixture
def convert(run, folder):
    def call(*switches, data=folder, out="out", **flags):
        flags = {**FLAGS, **{name.replace("_", "-"): value for name, value in flags.items()}}
        words = [word for name, value in flags.items() if value is not None
                 for word in ([f"--{name}={value}"] if isinstance(value, str) else [f"--{name}", *value])]
        return run("convert_tosses", "--data", data, *words, *switches, "--out", out)

    return call


def result_of(out, name="throw_0"):
    return np.stack(list(read_csv(out / "tosses" / f"{name}.csv").values()), 1)


def test_the_conventions_of_a_file_become_those_of_tosses(convert, run, tosses, tmp_path):
    result = convert()
    assert (result.returncode, result.stderr) == (0, "")
    for k, toss in enumerate(tosses):
        assert abs(result_of(tmp_path / "out", f"throw_{k}") - toss).max() < 1e-9
        assert f"throw_{k} " in result.stdout
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["gravity"] == pytest.approx(9.81, abs=1e-6) and metrics["rate"] == pytest.approx(RATE)
    assert metrics["flights"] == metrics["files"] == 3 and metrics["contradictions"] == []
    checks = read_csv(tmp_path / "out" / "checks.csv")
    assert (checks["flight_samples"] > 40).all() and (checks["flight_residual"] < 1e-9).all()
    command = result.stdout.splitlines()[-1].split()
    assert command[0] == "evaluate_tosses"
    assert run(*command, "--out", "judged", "--quiet").returncode == 0


def test_a_marker_is_not_the_center(convert, folder, tosses, tmp_path):
    for k, toss in enumerate(tosses):
        write_csv(folder / f"throw_{k}.csv", **captured(toss, (0.03, -0.02, 0.05)))
    result = convert()
    assert result.returncode == 2 and "--center -30 20 -50;" in result.stderr
    assert convert(center=("-30", "20", "-50")).returncode == 0
    assert abs(result_of(tmp_path / "out") - tosses[0]).max() < 1e-9


@pytest.mark.parametrize("wrong, advice", [
    ({"length-unit": "m"}, "gravity is 9810 +- "), ({"length-unit": "m"}, ": --length-unit mm;"),
    ({"length-unit": "cm"}, ": --length-unit mm;"), ({"length-unit": "0.0001"}, ": --length-unit mm;"),
    ({"rate": "120"}, ": --rate 240;"), ({"rate": "200"}, ": --rate 240;"),
    ({"rate": "120", "angular-velocity": ("none",)}, ": --rate 240 or --length-unit 0.004;"),
    ({"rate": "120", "length-unit": "m"}, ": --length-unit mm --rate 240;"),
    ({"time-unit": "ms"}, ": --time-unit s;"), ({"time-unit": "ms", "length-unit": "m"}, ": --length-unit mm --time-unit s;"),
    ({"up": "z"}, ": --up=y;"), ({"up": "-y"}, ": --up=y;"), ({"up": "-x"}, ": --up=y;"),
    ({"quaternion-order": "wxyz"}, "off with --quaternion-order xyzw;"),
    ({"quaternion-direction": "world_to_body"}, "off with --quaternion-direction body_to_world;"),
    ({"angular-velocity-frame": "body"}, "off with --angular-velocity-frame world;"),
    ({"angular-velocity-unit": "deg/s"}, "off with --angular-velocity-unit rad/s;"),
    ({"quaternion-order": "wxyz", "angular-velocity-frame": "body"},
     "off with --quaternion-order xyzw --angular-velocity-frame world;"),
    ({"quaternion-order": "wxyz", "angular-velocity": ("none",)}, "degrees askew, and upright with --quaternion-"),
    ({"ground-height": "60"}, ": --ground-height must be below "),
    ({"velocity": ("X", "Y", "Z")}, ": --velocity none;"),
    ({"angular-velocity": ("X", "Y", "Z")}, "not nearer in another reading: --angular-velocity none;"),
])
def test_a_wrong_flag_is_told(convert, tmp_path, wrong, advice):
    before = files(tmp_path)
    result = convert(**wrong)
    assert result.returncode == 2 and result.stderr.count("\n") == 1
    assert advice in result.stderr and result.stderr.endswith("--force converts all the same\n")
    assert result.stderr.count(": --") + result.stderr.count("with --") == 1, "one advice"
    assert files(tmp_path) == before
    assert convert("--force", "--quiet", **wrong).returncode == 0
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert any(advice.strip(";") in text for text in metrics["contradictions"])


def test_a_unit_without_name_is_told(convert, folder, tosses):
    for k, toss in enumerate(tosses):
        table = captured(toss)
        lengths = {name: table[name] / 52.4 for name in ("X", "Y", "Z", "v_x", "v_y", "v_z")}
        write_csv(folder / f"throw_{k}.csv", **{**table, **lengths})
    result = convert(**{"length-unit": "m"})
    assert result.returncode == 2 and "gravity is 187.2 +- " in result.stderr
    assert result.stderr.endswith(" m/s^2 instead of 9.81: --length-unit 0.0524; --force converts all the same\n")


def test_figures(build, folder, tmp_path):
    flags = [word for name, value in FLAGS.items() for word in (f"--{name}", *([value] if isinstance(value, str) else value))]
    subprocess.run([build / "bin" / "convert_tosses", "--data", folder, *flags, "--out", tmp_path / "out", "--quiet"], check=True)
    assert (tmp_path / "out" / "figures" / "checks.png").stat().st_size > 10_000


def test_all_wrong_flags_are_told_at_once(convert):
    result = convert(**{"up": "z", "length-unit": "m", "angular-velocity-frame": "body"})
    for advice in ("--up=y", "--length-unit mm", "--angular-velocity-frame world"):
        assert advice in result.stderr


def test_noise_is_no_contradiction(convert, folder, tosses, tmp_path):
    random = np.random.default_rng(0)
    for k, toss in enumerate(tosses):
        noisy = toss.copy()
        noisy[:, :3] += 0.0005 * random.normal(size=(len(toss), 3))
        noisy[:, 3:7] += 0.001 * random.normal(size=(len(toss), 4))
        noisy[:, 10:] += 0.2 * random.normal(size=(len(toss), 3))
        write_csv(folder / f"throw_{k}.csv", **captured(noisy))
    result = convert()
    assert (result.returncode, result.stderr) == (0, "")
    checks = read_csv(tmp_path / "out" / "checks.csv")
    assert (abs(checks["acceleration_y"] + 9.81) < 4 * checks["gravity_standard_error"] + 0.01).all()


def test_gravity_a_few_percent_off_is_reported(convert):
    result = convert(**{"length-unit": "0.000977"})
    assert result.returncode == 0
    assert re.search(r"note: gravity is 9.584 \+- \S+ m/s\^2 instead of 9.81: lengths or rate are a little off", result.stdout)


def test_missing_velocities_are_filtered_differences(convert, tosses, tmp_path):
    assert convert(velocity=("none",), angular_velocity=("none",)).returncode == 0
    result, toss = result_of(tmp_path / "out"), tosses[0]
    flight = slice(0, 50)
    # A simulated velocity is that of the step that ends there, half a step behind the central difference.
    fall = np.array([0, 0, 9.81 / RATE / 2])
    assert abs(result[flight, 7:10] + fall - toss[flight, 7:10]).max() < 1e-9
    assert abs(result[flight, 10:] - toss[flight, 10:]).max() < 1e-2 * abs(toss[flight, 10:]).max()


def test_the_file_that_differs_is_named(convert, folder, tosses):
    other = captured(tosses[2])
    write_csv(folder / "throw_2.csv", **{**other, **{name: 10 * other[name] for name in ("X", "Y", "Z")}})
    result = convert(velocity=("none",))
    assert result.returncode == 2 and "throw_2 cannot have the conventions of the other files" in result.stderr


def edited(name, row, value):
    return lambda table: {**table, name: np.where(table["Frame"] == row, value, table[name])}


@pytest.mark.parametrize("edit, message", [
    (lambda table: {name: np.delete(column, [100, 101]) for name, column in table.items()},
     "throw_1.csv: row 101: 2 samples are missing before it"),
    (edited("Time", 20, 0), "throw_1.csv: row 21: the time does not increase; got 0"),
    (edited("Time", 20, 20.4 / RATE), "throw_1.csv: row 21: the samples are unevenly spaced: its time is 0.4 steps off"),
    (edited("qw", 7, 3), "throw_1.csv: row 8: the quaternion must have the length 1; got "),
    (edited("X", 7, np.nan), 'throw_1.csv, line 9, column "X": "nan" is no finite number'),
    (lambda table: {name: column for name, column in table.items() if name != "v_y"}, 'throw_1.csv: has no column "v_y"'),
    (lambda table: {name: column for name, column in table.items() if name != "Time"},
     'throw_1.csv: has no column "Time"; --time names the column of times, --rate replaces it'),
    (lambda table: {**table, "Time": 2 * table["Time"]}, "throw_1.csv: has 120 samples per second, and the first file 240"),
    (lambda table: {name: column[:4] for name, column in table.items()}, "throw_1.csv: has 4 samples; a toss has at least 5"),
])
def test_broken_files_are_named(convert, folder, tosses, edit, message):
    write_csv(folder / "throw_1.csv", **edit(captured(tosses[1])))
    result = convert()
    assert result.returncode == 2 and message in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize("flags, message", [
    ((), "--data is missing"), (("--data", "none.csv"), "none.csv"),
    (("--data", "."), "holds no file of a toss, which ends with .csv"),
    (("--data", ".", "--length-unit", "inch"), '--length-unit must be m, cm, mm or a number > 0; got "inch"'),
    (("--data", ".", "--position", "x", "y"), "--position must be 3 names of columns")])
def test_mistakes_are_named(run, flags, message):
    result = run("convert_tosses", *flags, "--out", "out")
    assert result.returncode == 2 and message in result.stderr


def test_nothing_of_a_user_is_overwritten(convert, folder, tmp_path):
    before = files(tmp_path)
    result = convert(out=folder)
    assert result.returncode == 2 and "is in --out" in result.stderr
    (tmp_path / "out" / "tosses").mkdir(parents=True)
    (tmp_path / "out" / "tosses" / "throw_0.csv").write_text("mine")
    result = convert()
    assert result.returncode == 2 and "out holds tosses/throw_0.csv, which no run of this version wrote" in result.stderr
    (tmp_path / "out" / "tosses" / "throw_0.csv").unlink()
    assert files(tmp_path) == before


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded tosses are not here")
@pytest.mark.parametrize("flags, advice", [
    ((), None), (("--angular-velocity-frame", "world"), "off with --angular-velocity-frame body"),
    (("--quaternion-direction", "world_to_body"), "off with --quaternion-direction body_to_world")])
def test_recorded_tosses(run, tmp_path, flags, advice):
    (tmp_path / "recorded").mkdir()
    paths = sorted(RECORDED.glob("*.pt"))[:40]
    for path in paths:
        rows = torch.load(path).numpy()[0]
        write_csv(tmp_path / "recorded" / f"{path.stem}.csv", **dict(zip(COLUMNS, rows.T)))
    result = run("convert_tosses", "--data", "recorded", "--rate", 148, "--length-unit", 0.0524, *flags, "--out", "out")
    if advice:
        assert result.returncode == 2 and advice in result.stderr
        return
    assert (result.returncode, result.stderr) == (0, "")
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["gravity"] == pytest.approx(9.6, abs=0.05) and metrics["tilt_degrees"] < 1
    expected = torch.load(paths[0]).numpy()[0][:, :13] * np.repeat([0.0524, 1, 0.0524, 1], [3, 4, 3, 3])
    assert abs(result_of(tmp_path / "out", paths[0].stem) - expected).max() < 1e-9
