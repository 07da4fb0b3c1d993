"""train_in_the_loop and train_bilevel: friction learned from motion alone."""
import json

import pytest
from runs import check_a_killed_run_resumes, files, read_csv, variants


FAST = ("--iterations", 300, "--learning-rate", 0.05)


@pytest.mark.parametrize("seed", variants(0, 1, 2))
def test_both_find_friction_at_their_defaults(learn, seed):
    for program in ("train_in_the_loop", "train_bilevel"):  # from 1.5 and from 4
        metrics = learn(program, "--seed", seed, out=program)
        assert abs(metrics["mu"] - 1) < 1e-9 and metrics["heldout_rmse"] < 1e-9 and metrics["status"] == "solved"
        assert metrics["sticking_exact_zero_fraction"] == 1 and metrics["rollout_rmse"] < 1e-9
        assert metrics["identifiable_parameters"] == metrics["parameters"] == 1
    assert abs(metrics["objective_at_truth"]) < 1e-6


def test_the_loop_is_stuck_where_all_is_predicted_to_stick_and_the_bilevel_loss_is_not(learn, tmp_path):
    stuck = learn("train_in_the_loop", *FAST, "--states", "gentle", "--initial-mu", 4)
    assert stuck["mu"] == 4 and stuck["zero_gradient_fraction"] == 1
    assert stuck["status"] == "the fit does not explain the data" and len(stuck["unexplained"]) == 1
    assert stuck["final_loss"] == pytest.approx(0.07, abs=0.015)
    history = read_csv(tmp_path / "out" / "history.csv")
    assert (history["zero_gradient_fraction"] == 1).all() and (history["mu"] == 4).all()
    assert stuck["identifiable_parameters"] == 0 and stuck["unidentifiable_directions"] == ["mu"]
    assert abs(learn("train_bilevel", *FAST, "--states", "gentle")["mu"] - 1) < 1e-6
    assert abs(learn("train_bilevel", *FAST, "--states", "gentle", "--hard")["mu"] - 1) < 1e-6
    smoothed = learn("train_in_the_loop", *FAST, "--states", "gentle", "--initial-mu", 4, "--kappa", 0.01)
    assert abs(smoothed["mu"] - 1) < 1e-6


def test_the_bilevel_loss_has_the_dead_zone_that_its_weights_predict(learn):
    """v* + 2 (a1 / a2) v: at most 3.4 for a1 = a2 and gentle states."""
    weights = (*FAST, "--states", "gentle", "--alpha", 1, 1, 10, "--continuation", 1)
    assert abs(learn("train_bilevel", *weights, "--initial-mu", 2.5)["mu"] - 1) < 1e-6
    assert learn("train_bilevel", *weights, "--initial-mu", 4)["mu"] == 4


def test_a_small_third_weight_is_warned_of(run, tmp_path):
    result = run("train_bilevel", *FAST, "--alpha", 1, 1, 1, "--finishing-iterations", 0, "--out", "out")
    assert result.returncode == 0
    assert "warning: --alpha: A3 = 1 is below A2 max lambda*" in result.stderr
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["objective_at_truth"] < -0.005 and abs(metrics["mu"] - 1) > 0.02


def test_noise_biases_the_minimum_less_for_a_large_second_weight(learn):
    noise = (*FAST, "--states", "gentle", "--velocity-noise", 0.2, "--samples", 2000)
    noise += ("--finishing-iterations", 0)
    small, large = (learn("train_bilevel", *noise, "--alpha", 1, *rest)["mu"] for rest in ((0.1, 1), (10, 100)))
    assert small > 1.08 and abs(large - 1) < 0.03


def test_friction_of_a_block_that_never_slides_is_reported_as_unknown(run, tmp_path):
    result = run("train_bilevel", *FAST, "--states", "sticking", "--out", "out")
    assert result.returncode == 0 and "without effect there  mu" in result.stdout
    assert "predicted at exactly 0  100 % of the held-out steps that end at rest\n" in result.stdout
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["heldout_rmse"] < 1e-12 and metrics["mu"] > 0.8  # all that sticking tells


def test_the_error_of_mu_is_told_as_it_is(learn):
    """From mu = 4 nothing slides, so that mu stays: its relative error is 3."""
    metrics = learn("train_in_the_loop", *FAST, "--states", "gentle", "--initial-mu", 4)
    assert metrics["mu"] == 4 and metrics["parameter_error"] == pytest.approx(3)


@pytest.mark.parametrize("parameters", ["rows", "structured"])
def test_the_bilevel_loss_learns_from_afar_with_and_without_noise(learn, parameters):
    metrics = learn("train_bilevel", "--parameters", parameters)
    assert metrics["heldout_rmse"] < 1e-3 and metrics["sticking_close_fraction"] == 1
    noisy = learn("train_bilevel", "--parameters", parameters, "--velocity-noise", 0.1)
    assert noisy["heldout_rmse"] < 0.05 and noisy["heldout_unsolved"] == 0
    assert metrics["heldout_unsolved"] == 0
    assert metrics["identifiable_parameters"] < metrics["parameters"]  # (f_1 + f_2) / 2 at least
    assert metrics["unidentifiable_directions"]


@pytest.mark.parametrize("parameters", ["mu", "rows", "structured"])
@pytest.mark.parametrize("seed", variants(0, 4))
def test_random_starts_find_the_block(learn, parameters, seed):
    metrics = learn("train_in_the_loop", "--start", "random", "--parameters", parameters, "--seed", seed)
    assert metrics["heldout_rmse"] < 1e-4 and metrics["heldout_unsolved"] == 0


@pytest.mark.long
@pytest.mark.parametrize("parameters", ["mu", "rows", "structured"])
def test_random_starts_of_the_bilevel_loss_find_the_block(learn, parameters):
    metrics = learn("train_bilevel", "--start", "random", "--parameters", parameters)
    assert metrics["heldout_rmse"] < 1e-3 and metrics["heldout_unsolved"] == 0


def test_random_starts_with_noise_are_as_good_as_a_start_at_the_truth(learn):
    noise = ("--parameters", "rows", "--velocity-noise", 0.1)
    truth = learn("train_in_the_loop", *noise, "--initial-mu", 1, "--start-noise", 0)
    random = learn("train_in_the_loop", *noise, "--start", "random")
    assert 0 < truth["heldout_rmse"] < 0.03 and random["heldout_rmse"] < 2 * truth["heldout_rmse"]


def test_a_start_is_the_model_of_another_program(learn, tmp_path):
    fit = learn("train_penalty", "--samples", 200, "--iterations", 1000, out="fit")
    start = ("--start", "fit/model.pt", "--parameters", "rows")
    begun = learn("train_in_the_loop", *start, "--iterations", 0 + 1, "--learning-rate", 1e-12,
                  "--finishing-iterations", 0)
    assert begun["heldout_rmse"] == pytest.approx(fit["heldout_rmse"], rel=0.2)
    assert learn("train_in_the_loop", *start)["heldout_rmse"] < 1e-9
    history = read_csv(tmp_path / "out" / "history.csv")
    assert history["heldout_rmse"][0] < 1e-2


def test_networks_are_learned_from_near(learn):
    for program in ("train_in_the_loop", "train_bilevel"):
        start = ("--initial-mu", 1.5, "--starts", 1)
        metrics = learn(program, "--parameters", "networks", *start, "--iterations", 500, out=program)
        assert metrics["heldout_rmse"] < 0.05 and metrics["mu"] is None


def test_data_of_the_users_own(run, learn):
    assert run("simulate", "--trajectories", 40, "--mu", 0.5, "--out", "data", "--quiet").returncode == 0
    block = ("--data", "data/data.csv", "--dt", 0.1, "--gravity", 9.81, "--mu", 0.5)
    for program, start in (("train_in_the_loop", 0.7), ("train_bilevel", 2)):
        metrics = learn(program, *block, *FAST, "--initial-mu", start, out=program)
        assert abs(metrics["mu"] - 0.5) < 1e-6 and metrics["heldout_rmse"] < 1e-6
        assert metrics["training_samples"] == 1600 and metrics["sticking_exact_zero_fraction"] == 1


def test_data_of_another_block_are_not_compared_with_that_of_the_flags(run, learn, tmp_path):
    data = ("--formulation", "traditional", "--trajectories", 20, "--mu", 0.5)
    assert run("simulate", *data, "--out", "data", "--quiet").returncode == 0
    flags = ("--data", "data/data.csv", "--dt", 0.1, "--gravity", 9.81)
    for program, unknown in (("train_bilevel", ("rollout_rmse", "rollout_unsolved", "parameter_error", "objective_at_truth")),
                             ("train_penalty", ("rollout_rmse", "rollout_unsolved", "parameter_error", "max_row_error"))):
        few = ("--iterations", 20, *(("--starts", 1, "--initial-mu", 0.6) if program == "train_bilevel" else ()))
        metrics = learn(program, *flags, "--mu", 0.4, *few, out=program + "_other")
        assert [metrics[name] for name in unknown] == [None] * 4 and "heldout_rmse" in metrics
        assert not (tmp_path / f"{program}_other" / "rollouts.csv").exists()
        assert "max_row_error" not in read_csv(tmp_path / f"{program}_other" / "history.csv")
        metrics = learn(program, *flags, "--mu", 0.5, *few, out=program)
        assert all(metrics[name] is not None for name in unknown[1:]) and (tmp_path / program / "rollouts.csv").exists()
        if "max_row_error" in unknown:
            assert read_csv(tmp_path / program / "history.csv")["max_row_error"][-1] == metrics["max_row_error"]


def test_a_model_without_solutions_is_no_good_one(learn):
    metrics = learn("train_in_the_loop", "--learning-rate", 1, "--parameters", "rows")
    assert metrics["training_unsolved"] == 0 and metrics["heldout_rmse"] < 1e-9


def test_training_that_fails_says_so(run, tmp_path):
    def train(*flags):
        result = run("train_in_the_loop", "--samples", 50, *flags, "--out", "out", "--overwrite")
        assert result.returncode == 0
        return json.loads((tmp_path / "out" / "metrics.json").read_text()), result.stderr

    metrics, stderr = train("--learning-rate", 3, "--iterations", 20)
    assert "warning: training diverged: the held-out error grew from " in stderr
    assert metrics["final_loss"] > 0.1 and metrics["training_unsolved"] == 0
    metrics, stderr = train("--parameters", "rows", "--learning-rate", 1, "--iterations", 3, "--start", "random",
                            "--starts", 1, "--finishing-iterations", 0)
    unsolved = metrics["training_unsolved"]
    assert unsolved > 0 and metrics["final_loss"] > unsolved / 50  # each costs more than 1
    assert f"warning: the learned LCP has no solution in {unsolved} of 50 training samples" in stderr


@pytest.mark.parametrize("program", ["train_in_the_loop", "train_bilevel"])
def test_a_killed_run_resumes_bit_for_bit(run, build, tmp_path, program):
    flags = ("--parameters", "structured", "--iterations", 200, "--checkpoint-every", 20)
    check_a_killed_run_resumes(run, build, tmp_path, program, flags, "--threads", 1)


@pytest.mark.parametrize(
    "program, arguments, message",
    [
        ("train_bilevel", ["--alpha", "1", "2"], "--alpha must be three finite numbers, A1 > 0, A2 >= 0, A3 > 0"),
        ("train_bilevel", ["--continuation", "0"], "--continuation must be > 0 and <= 1; got 0.0"),
        ("train_bilevel", ["--parameters", "all"], '--parameters must be mu, rows, structured or networks; got "all"'),
        ("train_bilevel", ["--initial-mu", "-1"], "--initial-mu must be finite and > 0; got -1.0"),
        ("train_in_the_loop", ["--start", "x"], "--start must be block, random or a file, whose path has a . or a /"),
        ("train_in_the_loop", ["--start", "random", "--initial-mu", "1"], "--initial-mu has no meaning with --start"),
        ("train_bilevel", ["--start", "a/model.pt", "--starts", "4"], "--starts has no meaning with --start a/model.pt"),
        ("train_bilevel", ["--start", "no/model.pt"], "no/model.pt: is no model.pt of such a program"),
        ("train_in_the_loop", ["--kappa", "-1"], "--kappa must be finite and >= 0; got -1.0"),
        ("train_in_the_loop", ["--states", "x"], "--states must be trajectories, mixed, gentle or sticking"),
        ("train_in_the_loop", ["--data", "x.csv", "--samples", "3"], "--samples has no meaning with --data"),
        ("train_in_the_loop", ["--data", "no.csv"], "no.csv"),
        ("train_in_the_loop", ["--gravity", "0"], "--gravity must be > 0"),
    ],
)
def test_a_mistake_is_named(run, tmp_path, program, arguments, message):
    result = run(program, *arguments, "--out", "out")
    assert result.returncode == 2 and message in result.stderr and result.stderr.count("\n") == 1
    assert files(tmp_path) == {}
