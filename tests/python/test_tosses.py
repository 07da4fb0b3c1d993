"""Recorded tosses of a cube: reading them, and comparing motion with them."""
import pathlib

import numpy as np
import pytest
from runs import read_csv, write_csv

RECORDED = pathlib.Path(__file__).parents[3] / "shared" / "data" / "cube_tosses"
CUBE = ("--mu", 0.3, "--restitution", 0.2, "--side", 0.1, "--inertia", 0.1**2 / 6)
SAMPLED = ("--length-unit", 1, "--rate", 150, "--substeps", 1)


@pytest.fixture
def tosses(run, tmp_path):
    """Files of six tosses of a cube, 90 steps each."""
    result = run("simulate", "--system", "cube", "--trajectories", 6, "--steps", 90, "--dt", 1 / 150, "--mu", 0.3,
                 "--restitution", 0.2, "--height", 0.15, "--animation", "none", "--out", "simulated", "--quiet")
    assert result.returncode == 0, result.stderr
    data = read_csv(tmp_path / "simulated" / "data.csv")
    folder = tmp_path / "tosses"
    folder.mkdir()
    for k in range(6):
        write_csv(folder / f"{k}.csv", **{name: column[data["trajectory"] == k] for name, column in data.items()})
    return folder


def test_a_cube_is_exact_on_its_own_tosses(learn, tosses, tmp_path):
    metrics = learn("evaluate_tosses", "--tosses", tosses, *CUBE, *SAMPLED)
    assert metrics["tosses"] == 6 and metrics["unsolved"] == 0
    for protocol, error in (("whole", 1e-6), ("from_first_contact", 0.2), ("windows_80", 1e-6)):
        assert metrics[protocol]["position_error_percent"] < 100 * error, protocol
    assert metrics["whole"]["rotation_error_deg"] < 1e-4 and metrics["whole"]["penetration_percent"] < 1
    errors = read_csv(tmp_path / "out" / "errors.csv")
    whole = errors["position_error_m"][errors["protocol"] == 0]
    assert len(whole) == 6 and whole.mean() == pytest.approx(metrics["whole"]["position_error_m"])
    other = learn("evaluate_tosses", "--tosses", tosses, *CUBE[2:], "--mu", 0.1, *SAMPLED, out="other")
    assert other["whole"]["position_error_percent"] > 1
    assert np.isfinite(other["whole"]["position_error_percent_std"])


@pytest.mark.parametrize("flags, message", [
    ((), "--tosses is missing"), (("--tosses", "none"), "cannot read the folder none"),
    (("--tosses", ".", "--restitution", 2), "--restitution must be in [0, 1]; got 2")])
def test_mistakes_are_named(run, flags, message):
    result = run("evaluate_tosses", *flags, "--out", "out")
    assert result.returncode == 2 and message in result.stderr


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded tosses are not here")
def test_recorded_tosses(learn):
    """What is measured and published of the cube predicts the tosses about as well as published simulators."""
    metrics = learn("evaluate_tosses", "--tosses", RECORDED, "--gravity", 9.58)
    assert metrics["tosses"] == 450 and metrics["unsolved"] == 0
    assert metrics["from_first_contact"]["position_error_percent"] < 15
    assert metrics["windows_80"]["rotation_error_rad"] < 0.32
