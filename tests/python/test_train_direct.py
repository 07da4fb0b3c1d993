"""train_direct: f and G learned from known friction forces."""
import json
import re
import subprocess

import numpy as np
import pytest
from runs import files, read_csv, variants


@pytest.fixture(scope="module")
def trained(build, tmp_path_factory):
    """A default run."""
    out = tmp_path_factory.mktemp("default") / "run"
    result = subprocess.run([build / "bin" / "train_direct", "--out", out], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return out, result


@pytest.fixture
def learn(run, tmp_path):
    """The metrics of a run that prints nothing."""

    def call(*arguments, out="out"):
        result = run("train_direct", *arguments, "--out", out, "--quiet")
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
        return json.loads((tmp_path / out / "metrics.json").read_text())

    return call


def test_the_default_run_learns_friction(trained):
    out, result = trained
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["heldout_rmse"] <= 1e-3 and metrics["sticking_exact_zero_fraction"] == 1.0
    assert metrics["rollout_rmse"] <= 1e-3 and metrics["parameter_error"] < 1e-3
    assert 0.2 < metrics["heldout_sticking_fraction"] < 0.6
    assert metrics["identifiable_parameters"] == metrics["parameters"] == 18
    assert metrics["unidentifiable_directions"] == []
    assert "held-out rmse" in result.stdout and str(out / "model.pt") in result.stdout


def test_the_default_run_writes_every_file(trained):
    out, _ = trained
    assert {str(path) for path in files(out)} == {
        "checkpoint.pt", "config.json", "history.csv", "metrics.json", "model.pt", "model.pt2", "rollouts.csv",
        "figures/rollout.png", "figures/training.png",
    }
    history = read_csv(out / "history.csv")
    assert history["iteration"][0] == 0 and history["iteration"][-1] == 2000
    assert history["heldout_rmse"][-1] == json.loads((out / "metrics.json").read_text())["heldout_rmse"]


def test_the_default_run_shows_progress_and_time_left(trained):
    lines = trained[1].stderr.splitlines()
    assert re.fullmatch(r"iteration 1000 of 2000  loss [\d.e-]+  \d+ (s|min \d+ s) left", lines[5]), lines


@pytest.mark.parametrize("forces, seed", [("physical", seed) for seed in variants(0, 1, 2)]
                         + [("fictitious", seed) for seed in variants(1, 2)])
def test_other_seeds_and_physical_forces_learn_it_too(learn, forces, seed):
    metrics = learn("--forces", forces, "--seed", seed)
    assert metrics["heldout_rmse"] <= 1e-3 and metrics["sticking_exact_zero_fraction"] == 1.0
    assert metrics["parameter_error"] < 1e-3
    assert metrics["identifiable_parameters"] == (18 if forces == "fictitious" else 6)


@pytest.mark.parametrize("flags", [("--mass", 2.5, "--dt", 0.02, "--mu", 0.6), ("--dtype", "float32"),
                                   ("--head", "none", "--alpha", 1, 0, 0), ("--no-bias",), ("--velocity-noise", 1e-3),
                                   ("--velocity-noise", 1e-3, "--forces", "physical")])
def test_other_blocks_precisions_and_losses_learn_it_too(learn, flags):
    metrics = learn(*flags)
    assert metrics["heldout_rmse"] <= 1e-3
    assert metrics["sticking_exact_zero_fraction"] >= (0.99 if "float32" in flags else 1.0)
    assert metrics["parameters"] == (16 if "--no-bias" in flags else 18)


def test_the_hidden_layer_learns_it_too(learn):
    metrics = learn("--network", "hidden")
    assert metrics["heldout_rmse"] <= 1e-2 and metrics["sticking_exact_zero_fraction"] > 0.97


def test_physical_forces_leave_open_what_never_acts_on_a_moving_component(learn):
    """The diagonal of G, and with one friction coefficient a constant force or the bias."""
    diagonal = {"v+: lambda_plus", "v+: lambda_plus v", "v+: lambda_plus u",
                "v-: lambda_minus", "v-: lambda_minus v", "v-: lambda_minus u"}
    one = learn("--forces", "physical", "--iterations", 1)["unidentifiable_directions"]
    several = learn("--forces", "physical", "--iterations", 1, "--more-mus", 0.1, 0.6)["unidentifiable_directions"]
    assert len(one) == 12 and diagonal < set(one)
    for direction in set(one) - diagonal:  # such as "v+: 1 - 0.34 v+: lambda_minus", with 0.34 = 1 / mu m g
        assert re.fullmatch(r"(v[+-]): [vu1] - 0.34 \1: lambda_(plus|minus)( [vu])?", direction), direction
    assert set(several) == diagonal


def test_physical_forces_need_a_head(learn):
    metrics = learn("--forces", "physical", "--head", "none", "--iterations", 1000)
    assert metrics["heldout_rmse_known_force"] > 5e-3 and metrics["parameter_error"] > 0.1


def test_a_model_without_a_solution_is_reported(run, tmp_path):
    result = run("train_direct", "--iterations", 1, "--learning-rate", 100, "--out", "out", env=None)
    assert result.returncode == 0
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["heldout_unsolved"] > 0 and metrics["heldout_rmse"] is None
    assert "warning: the learned LCP has no solution in" in result.stderr and "no figures" not in result.stderr
    assert (tmp_path / "out" / "figures" / "rollout.png").exists()


def test_many_samples_and_threads_change_nothing(learn, tmp_path):
    many = ("--samples", 60_000, "--iterations", 2)
    assert learn(*many)["identifiable_parameters"] == 18
    learn(*many, "--threads", 2, out="threads")
    assert (tmp_path / "out" / "metrics.json").read_bytes() == (tmp_path / "threads" / "metrics.json").read_bytes()


@pytest.mark.parametrize("formulation, forces", [("direct", "fictitious"), ("traditional", "physical")])
def test_data_of_the_users_own(run, learn, tmp_path, formulation, forces):
    data = tmp_path / "data" / "data.csv"
    block = ("--mu", 0.5, "--animation", "none")
    result = run("simulate", "--formulation", formulation, "--trajectories", 40, *block, "--out", "data")
    assert result.returncode == 0
    metrics = learn("--data", data, "--mu", 0.5, "--forces", forces, "--iterations", 1000)
    assert metrics["training_samples"] == 1600 and metrics["heldout_samples"] == 400
    assert metrics["heldout_rmse"] <= 1e-3 and metrics["sticking_exact_zero_fraction"] == 1.0
    if forces == "physical":
        return
    assert learn("--config", "out/config.json", out="again") == metrics
    data.rename(tmp_path / "moved.csv")
    assert learn("--data", tmp_path / "moved.csv", "--resume") == metrics
    result = run("train_direct", "--data", "moved.csv", "--mu", 0.4, "--out", "wrong", "--iterations", 1)
    assert "warning: " in result.stderr and "above mu m g" in result.stderr


def test_says_what_the_data_cannot_tell(run, tmp_path):
    """A block that always slides to the right under its own friction: forces that never vary are a bias."""
    v = np.random.default_rng(0).uniform(5, 9, 60)
    limit = 0.3 * 9.81
    rows = "".join(f"{a!r},0,{a - 0.1 * limit!r},{-10 * a!r},{limit!r}\n" for a in v.tolist())
    (tmp_path / "slides.csv").write_text("v,u,v_next,lambda_plus,lambda_minus\n" + rows)
    result = run("train_direct", "--data", "slides.csv", "--iterations", 20, "--out", "out")
    assert result.returncode == 0, result.stderr
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["identifiable_parameters"] < metrics["parameters"] == 18
    assert len(metrics["unidentifiable_directions"]) == 18 - metrics["identifiable_parameters"]
    assert "without effect there" in result.stdout and "lambda_minus" in result.stdout
    assert metrics["sticking_exact_zero_fraction"] is None  # nothing sticks, so there is no fraction


def test_prints_some_of_many_directions(run, tmp_path):
    result = run("train_direct", "--network", "hidden", "--samples", 40, "--iterations", 1, "--out", "out")
    many = len(json.loads((tmp_path / "out" / "metrics.json").read_text())["unidentifiable_directions"])
    assert many > 100 and result.stdout.count("without effect there") == 5
    assert f"and {many - 5} more in metrics.json" in result.stdout
    assert max(map(len, result.stdout.splitlines())) < 160


def test_all_weights_of_a_network_are_counted(learn):
    metrics = learn("--network", "hidden", "--iterations", 20, "--samples", 300)
    assert metrics["parameters"] > 100 and 18 < metrics["identifiable_parameters"] < metrics["parameters"]
    free = len(metrics["unidentifiable_directions"])
    assert free == metrics["parameters"] - metrics["identifiable_parameters"]


# --study


@pytest.fixture(scope="module")
def study(build, tmp_path_factory):
    """The table of the fits, by claim."""
    out = tmp_path_factory.mktemp("study") / "run"
    command = [build / "bin" / "train_direct", "--study", "--samples", "300", "--iterations", "600", "--out", out]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert {str(path) for path in files(out)} == {"config.json", "table.json", "table.md", "figures/study.png"}
    assert (out / "table.md").read_text() in result.stdout
    table = json.loads((out / "table.json").read_text())
    fits = {(fit["part"], fit["forces"], fit["learned"], fit["loss"]): fit for fit in table["fits"]}
    return fits, {row["claim"]: row["measured"] for row in table["data"]}


def test_the_study_finds_what_forces_determine(study):
    fits, data = study
    for part, forces, learned in (("a", "fictitious", "f, G"), ("a", "fictitious", "f, G(v, u)"),
                                  ("d", "fictitious", "f without bias, G"), ("f", "slack of fictitious", "f, G")):
        fit = fits[part, forces, learned, "least squares"]
        assert fit["parameter_error"] < 1e-10 and fit["lcp_rmse"] < 1e-12 and fit["lcp_exact_zero_fraction"] == 1
    for part, forces in (("b", "physical"), ("f", "slack of physical")):
        fit = fits[part, forces, "f, G", "least squares"]
        assert fit["rmse"] > 0.1 and fit["net_rmse"] < 1e-12
    assert fits["d", "slack of fictitious", "f without bias, G", "least squares"]["rmse"] > 0.05
    assert fits["e", "fictitious", "f", "least squares"]["close_fraction"] < 0.2
    assert data["share of negative fictitious forces"] == pytest.approx(0.5)
    assert data["share of draws of 40 samples that give f, G(v, u) to 1e-6"] == 1
    several = "of the 5 numbers of v+, those that samples with v+ > 0 determine, "
    assert data[several + "one friction coefficient"] == 3 and data[several + "three"] == 4


def test_the_study_finds_what_losses_do(study):
    fits, _ = study
    fictitious = {loss: fit for (part, _, learned, loss), fit in fits.items() if part == "a" and learned == "f, G"}
    assert 0.01 < fictitious["squared (1, 0.1, 0.1)"]["parameter_error"] < 0.9
    assert fictitious["squared (1, 1, 1)"]["parameter_error"] == pytest.approx(1, abs=1e-3)  # all is 0
    assert fictitious["plain (1, 0.1, 0.1)"]["parameter_error"] < 1e-3
    assert fictitious["plain (1, 1, 1)"]["parameter_error"] == pytest.approx(1, abs=1e-3)


def test_the_study_finds_what_a_relu_does(study):
    fits, _ = study
    for forces in ("fictitious", "physical", "slack of fictitious"):
        part = {"fictitious": "a", "physical": "b", "slack of fictitious": "f"}[forces]
        fit = fits[part, forces, "f, G", "plain (1, 0, 0), relu"]
        assert fit["rmse"] < 1e-4 and fit["exact_zero_fraction"] == 1 and fit["parameter_error"] > 0.1
    for loss in ("plain (1, 0, 1 of what moves), relu", "plain (1, 1, 1 of what moves), relu"):
        fit = fits["b", "physical", "f, G", loss]
        assert fit["rmse"] < 1e-4 and fit["exact_zero_fraction"] == 1 and fit["lost_starts"] == 0
    several = fits["b", "physical of three mu", "f, G", "plain (1, 0, 1 of what moves), relu"]
    assert several["parameter_error_beside_diagonal"] < 1e-3 < 0.05 < several["parameter_error"]
    noisy = fits["c", "fictitious, noisy v_next", "f, G", "least squares"]
    assert noisy["exact_zero_fraction"] < 0.1 and noisy["lcp_exact_zero_fraction"] == noisy["close_fraction"] == 1
    assert fits["c", "fictitious, noisy v_next", "f, G", "plain (1, 0, 0), relu"]["exact_zero_fraction"] == 1
    for part, forces in (("a", "fictitious"), ("f", "slack of fictitious")):  # what the programs do
        fit = fits[part, forces, "f, G", "plain (1, 0.01, 1), relu"]
        assert fit["parameter_error"] < 1e-3 and fit["lcp_exact_zero_fraction"] == 1 and fit["lost_starts"] == 0


@pytest.mark.parametrize("seed", variants(0, 1, 2, 3, 4))
def test_motion_alone_is_enough_from_random_starts(learn, seed):
    metrics = learn("--start", "random", "--seed", seed)
    assert metrics["heldout_rmse"] < 1e-9 and metrics["rollout_rmse"] < 1e-9 and metrics["parameter_error"] < 1e-9
    assert metrics["sticking_exact_zero_fraction"] == 1
    assert metrics["parameters"] == metrics["identifiable_parameters"] == 6


def test_noisy_motion_rests_exactly(learn):
    metrics = learn("--forces", "none", "--velocity-noise", 0.02)
    assert metrics["heldout_rmse"] < 0.01 and metrics["sticking_exact_zero_fraction"] > 0.9


def test_motion_of_the_users_own_needs_no_forces(learn, tmp_path):
    rows = [(k % 9 - 4, k % 13 - 6) for k in range(200)]
    step = lambda s: (abs(s) - 2) * (1 if s > 0 else -1) if abs(s) > 2 else 0  # noqa: E731
    (tmp_path / "motion.csv").write_text("v,u,v_next\n" + "".join(f"{v},{u},{step(v + u)}\n" for v, u in rows))
    metrics = learn("--forces", "none", "--data", "motion.csv", "--mu", 2, "--dt", 1, "--gravity", 1)
    assert metrics["heldout_rmse"] < 1e-9
    again = learn("--start", "out/model.pt", "--data", "motion.csv", "--mu", 2, "--dt", 1, "--gravity", 1,
                  "--iterations", 10, out="again")
    assert again["heldout_rmse"] < 1e-9


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--forces", "none", "--alpha", "1", "1", "1"], "--alpha has no meaning with --forces none"),
        (["--starts", "3"], "--starts has no meaning with known --forces"),
        (["--start", "x"], "--start must be random or a file"),
    ],
)
def test_a_mistake_about_motion_is_named(run, tmp_path, arguments, message):
    result = run("train_direct", *arguments, "--out", "out")
    assert result.returncode == 2 and message in result.stderr and result.stderr.count("\n") == 1
