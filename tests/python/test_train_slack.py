"""train_slack: f and G learned from the slack of known friction forces."""
import json

import pytest
import torch
from runs import check_a_killed_run_resumes, files, variants


@pytest.fixture
def learn(run, tmp_path):
    """The metrics of a run that prints nothing but warnings."""

    def call(*arguments, out="out"):
        result = run("train_slack", *arguments, "--out", out)
        assert result.returncode == 0, result.stderr
        return json.loads((tmp_path / out / "metrics.json").read_text())

    return call


@pytest.mark.parametrize("seed", variants(0, 1, 2))
def test_learns_friction_at_the_defaults(learn, seed):
    metrics = learn("--seed", seed)
    assert metrics["heldout_rmse"] <= 1e-3 and metrics["sticking_exact_zero_fraction"] == 1.0
    assert metrics["rollout_rmse"] <= 1e-3 and metrics["parameter_error"] < 1e-3
    assert metrics["identifiable_parameters"] == metrics["parameters"] == 18


def test_writes_every_file(library, run, tmp_path):
    result = run("train_slack", "--iterations", 300, "--mass", 2, "--out", "out", env=None)
    assert result.returncode == 0 and "held-out rmse" in result.stdout
    assert {str(path) for path in files(tmp_path / "out")} == {
        "checkpoint.pt", "config.json", "history.csv", "metrics.json", "model.pt", "model.pt2", "rollouts.csv",
        "figures/rollout.png", "figures/training.png",
    }
    model = torch.jit.load(tmp_path / "out" / "model.pt")
    assert (model.format_version, model.mass, model.dt, model.mu, model.gravity) == (2, 2.0, 0.1, 0.3, 9.81)


def test_other_heads_blocks_and_data_learn_it_too(learn):
    metrics = learn("--head", "none", "--mass", 2.5, "--dt", 0.02, "--mu", 0.6, "--velocity-noise", 1e-3)
    assert metrics["heldout_rmse"] <= 1e-3 and metrics["sticking_exact_zero_fraction"] == 1.0


def test_slack_needs_a_bias(learn):
    assert learn("--no-bias", "--iterations", 500)["heldout_rmse_known_force"] > 0.05


def test_slack_of_physical_forces_fails_visibly(run, tmp_path):
    result = run("train_slack", "--forces", "physical", "--out", "out")
    assert "warning: the learned LCP has no solution in" in result.stderr
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["heldout_rmse"] is None and metrics["heldout_rmse_known_force"] < 1e-3
    assert metrics["identifiable_parameters"] == 6 and "v+: slack_minus" in metrics["unidentifiable_directions"]


def test_data_of_the_users_own(run, learn):
    result = run("simulate", "--trajectories", 40, "--animation", "none", "--out", "data")
    assert result.returncode == 0
    metrics = learn("--data", "data/data.csv")
    assert metrics["training_samples"] == 1600 and metrics["heldout_rmse"] <= 1e-3


def test_a_killed_run_resumes_bit_for_bit(run, build, tmp_path):
    check_a_killed_run_resumes(run, build, tmp_path, "train_slack", ("--iterations", 1500, "--checkpoint-every", 50))
