"""The program train_compliant: friction and stiffness of compliant ground, from thrown masses."""
import json

import pytest
from runs import check_a_killed_run_resumes, read_csv, variants

SHORT = ("--steps", 30)  # a mass lands in the 10th


@pytest.fixture
def train(run, tmp_path):
    """Runs without figures; returns the metrics."""

    def call(*flags, out="out"):
        result = run("train_compliant", *flags, "--out", out, "--quiet")
        assert result.returncode == 0, result.stderr
        return json.loads((tmp_path / out / "metrics.json").read_text())

    return call


def test_ground_is_learned_where_the_lcp_has_no_gradient(run, tmp_path):
    result = run("train_compliant", "--out", "out", env=None)
    assert result.returncode == 0 and "on rigid ground, by lcp::solve: 0\n" in result.stdout
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["lcp_gradient_at_start"] == 0 and abs(metrics["gradient_at_start"]) > 1e-3
    assert metrics["mu"] == pytest.approx(0.5, abs=2e-3) and metrics["stiffness"] == pytest.approx(1000, rel=1e-2)
    assert metrics["heldout_rmse"] < 2e-3  # m/s: the noise is 1e-3, and that of the initial states adds as much
    history = read_csv(tmp_path / "out" / "history.csv")
    assert history["mu"][0] == pytest.approx(3) and history["stiffness"][0] == pytest.approx(3000)
    assert history["loss"][-1] < 1e-4 * history["loss"][0]
    assert (tmp_path / "out" / "figures" / "training.png").stat().st_size > 10_000


@pytest.mark.parametrize("mu, stiffness, iterations", variants((5, 5000, 200), (0.05, 300, 400)))
def test_from_elsewhere(train, mu, stiffness, iterations):
    noise = ("--position-noise", 0, "--velocity-noise", 0, *SHORT)
    metrics = train("--initial-mu", mu, "--initial-stiffness", stiffness, "--iterations", iterations, *noise)
    assert metrics["mu"] == pytest.approx(0.5, rel=1e-3) and metrics["stiffness"] == pytest.approx(1000, rel=1e-2)


def test_data_of_the_users_own(run, train, tmp_path):
    flags = ("--system", "compliant_particle", "--mu", 0.3, "--stiffness", 2000, "--height", 0.05, "--speed", 1)
    flags = (*flags, "--trajectories", 10, *SHORT, "--animation", "none", "--quiet")
    assert run("simulate", *flags, "--out", "data").returncode == 0
    metrics = train("--data", "data/data.csv", "--iterations", 300)
    assert metrics["mu"] == pytest.approx(0.3, rel=1e-2) and metrics["stiffness"] == pytest.approx(2000, rel=2e-2)
    assert (metrics["training_trajectories"], metrics["heldout_trajectories"]) == (8, 2)


def test_a_killed_run_resumes_bit_for_bit(run, build, tmp_path):
    flags = ("--iterations", 60, "--checkpoint-every", 5, "--trajectories", 5, *SHORT)
    check_a_killed_run_resumes(run, build, tmp_path, "train_compliant", flags)


def test_float32(train):
    metrics = train("--dtype", "float32", "--iterations", 100, *SHORT)
    assert metrics["mu"] == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--initial-mu", "0"], "--initial-mu must be finite and > 0; got 0.0"),
        (["--stiffness", "-1"], "--stiffness must be finite and > 0; got -1.0"),
        (["--trajectories", "1"], "--trajectories must be >= 2; got 1"),
        (["--data", "x.csv", "--speed", "3"], "--speed has no meaning with --data"),
        (["--data", "no.csv"], "no.csv"),
    ],
)
def test_mistakes_are_named(run, tmp_path, arguments, message):
    result = run("train_compliant", *arguments, "--out", "out")
    assert result.returncode == 2 and message in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_bad_files_are_named(run, tmp_path):
    header = "trajectory,x,z,v_x,v_z\n"
    row = "{},0,0,1,0\n"
    for content, message in [
        (header + row.format(0) * 5, "one trajectory; it takes two"),
        (header + row.format(0) * 5 + row.format(1) * 4, "line 7: a trajectory of 4 rows; all must be equally long"),
        ("x,z\n0,0\n", "v_x"),
    ]:
        (tmp_path / "bad.csv").write_text(content)
        result = run("train_compliant", "--data", "bad.csv", "--out", "out")
        assert result.returncode == 2 and "bad.csv" in result.stderr and message in result.stderr
