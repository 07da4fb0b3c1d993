"""train_penalty and train_structured: [M|W] learned from the known solutions of the LCP."""
import pytest
from runs import check_a_killed_run_resumes, files, variants


@pytest.mark.parametrize("seed", variants(0, 2))
def test_the_rows_are_recovered_at_the_defaults(learn, seed):
    assert learn("train_penalty", "--seed", seed, "--matrix", "free")["max_row_error"] < 1e-4
    penalty = learn("train_penalty", "--seed", seed)
    assert penalty["max_row_error"] < 1e-4 and penalty["heldout_rmse"] < 1e-5
    assert penalty["sticking_close_fraction"] == 1 and penalty["heldout_unsolved"] == 0
    assert penalty["identifiable_parameters"] == penalty["parameters"] == 13  # all but those that the others determine
    assert penalty["heldout_rmse_without_forces"] == pytest.approx(0.315, abs=0.03)
    structured = learn("train_structured", "--seed", seed)
    assert structured["max_row_error"] < 5e-3 and structured["heldout_rmse"] < 1e-3
    assert structured["heldout_unsolved"] == structured["rollout_unsolved"] == 0


def test_small_errors_of_forces_leave_a_monotone_lcp_well_posed(learn):
    noise = ("--force-noise", 0.001)
    for program in ("train_penalty", "train_structured"):
        monotone = learn(program, *noise)
        assert monotone["heldout_rmse"] < 0.02 and monotone["heldout_unsolved"] == monotone["rollout_unsolved"] == 0
    free = learn("train_penalty", *noise, "--matrix", "free")
    assert free["rows"][2][2] < 0 and free["heldout_rmse"] > 0.1


def test_noise_reaches_velocities_and_forces(learn):
    exact = learn("train_penalty", *FAST)
    for flag in ("--velocity-noise", "--force-noise"):
        noisy = learn("train_penalty", *FAST, flag, 0.05)
        assert noisy["final_loss"] > 1e-3 > exact["final_loss"] and noisy["max_row_error"] > 1e-3


FAST = ("--samples", 300, "--iterations", 2000)
FREE = ("--matrix", "free")


@pytest.mark.parametrize("hold", ["none", "first"])
def test_without_a_held_number_rows_shrink(learn, hold):
    rows = learn("train_penalty", *FAST, *FREE, "--hold", hold)["rows"]
    assert max(abs(x) for x in rows[2]) < 0.5


def test_forces_that_add_up_to_the_limit_leave_a_family_unless_there_is_no_bias(learn):
    free = learn("train_penalty", *FAST, *FREE, "--split", "maximal")
    assert free["unidentifiable_directions"] == ["M11 + M12 - W13", "M21 + M22 - W23"]
    assert free["max_row_error"] > 0.1
    (m11, m12, _, _, _, w13), (m21, m22, _, _, _, w23), _ = free["rows"]
    assert abs(m12 - (m11 - 2)) < 1e-4 and abs(w13 - (1 - m11)) < 1e-4
    assert abs(m21 - (m22 - 2)) < 1e-4 and abs(w23 - (1 - m22)) < 1e-4
    fixed = learn("train_penalty", *FAST, *FREE, "--split", "maximal", "--no-bias")
    assert fixed["max_row_error"] < 1e-4 and fixed["unidentifiable_directions"] == []


def test_forces_of_which_one_is_zero_leave_two_numbers_free(learn):
    free = learn("train_penalty", *FAST, *FREE, "--split", "minimal")
    assert free["unidentifiable_directions"] == ["M12", "M21"] and free["final_loss"] < 1e-4


def test_a_matrix_that_is_affine_in_the_state_is_not_determined(learn):
    affine = learn("train_penalty", *FAST, "--matrix", "affine")
    assert affine["parameters"] == 27 and affine["identifiable_parameters"] == 26  # all but a direction of the third row
    direction, = affine["unidentifiable_directions"]
    assert {"W33", "M32"} <= set(direction.split()) and not {"M11", "M22"} & set(direction.split())
    free = learn("train_penalty", *FAST, *FREE)
    assert affine["max_row_error"] > 0.01 > 1e-4 > free["max_row_error"]
    assert affine["slopes"][0][2] == [0, 0]  # M13 is held
    assert max(abs(x) for row in affine["slopes"] for entry in row for x in entry) > 0.01
    maximal = learn("train_penalty", *FAST, "--matrix", "affine", "--split", "maximal")
    assert maximal["identifiable_parameters"] == 20


@pytest.mark.parametrize("seed", variants(0, 1, 2))
def test_relu_pairs_learn_exact_zeros(learn, seed):
    pairs = learn("train_penalty", *FAST, "--relu-pairs", 1, "--matrix", "free", "--seed", seed)
    assert pairs["exact_zeros"] == 1 and pairs["rows"][2][2] == 0 and pairs["wrong_zeros"] == 0
    assert pairs["max_row_error"] < 1e-4
    assert learn("train_penalty", *FAST, "--matrix", "free", "--seed", seed)["exact_zeros"] == 0


@pytest.mark.parametrize("program", ["train_penalty", "train_structured"])
def test_learned_rows_rest_exactly_by_their_active_set(learn, program):
    flags = (*FAST, "--seed", 1)
    free, exact = learn(program, *flags), learn(program, *flags, "--exact-rest", out="exact")
    assert free["rows"] == exact["rows"] and free["sticking_exact_zero_fraction"] < 0.2
    assert exact["sticking_exact_zero_fraction"] == exact["sticking_found_by_active_set"] > 0.99
    assert exact["sliding_mistaken_by_active_set"] < 0.01
    assert exact["heldout_rmse"] < 1.1 * free["heldout_rmse"]


def test_the_additional_model_may_be_a_network(learn):
    affine = learn("train_penalty", *FAST)
    network = learn("train_penalty", *FAST, "--h", "network", out="network")
    assert network["rows"] == affine["rows"]
    assert 0 < network["heldout_rmse_without_forces"] < 0.2 * affine["heldout_rmse_without_forces"]
    assert affine["sticking_close_fraction_without_forces"] < network["sticking_close_fraction_without_forces"] < 0.9


def test_squares_are_worse(learn):
    assert learn("train_penalty", *FAST, "--squared")["max_row_error"] > 1e-3


@pytest.mark.long
def test_more_structure_is_needed_where_forces_add_up_to_the_limit(learn):
    loose = learn("train_structured", "--split", "maximal", "--samples", 300)
    tight = learn("train_structured", "--split", "maximal", "--samples", 300, "--hold", "three_two_one")
    assert loose["max_row_error"] > 0.1 > 0.02 > tight["max_row_error"]


@pytest.mark.parametrize("program", ["train_penalty", "train_structured"])
def test_data_of_the_users_own(run, learn, program):
    flags = ("--formulation", "traditional", "--trajectories", 20, "--out", "data", "--quiet")
    assert run("simulate", *flags).returncode == 0
    metrics = learn(program, "--data", "data/data.csv", "--mu", 0.3, "--dt", 0.1, "--gravity", 9.81, "--iterations", 2000)
    assert metrics["heldout_rmse"] < 1e-2 and metrics["training_samples"] == 800


def test_a_killed_run_resumes_bit_for_bit(run, build, tmp_path):
    flags = ("--samples", 200, "--iterations", 500, "--checkpoint-every", 20, "--batch-size", 64)
    check_a_killed_run_resumes(run, build, tmp_path, "train_structured", flags)


@pytest.mark.parametrize("program", ["train_penalty", "train_structured", "train_bilevel"])
def test_many_samples_and_threads_change_nothing(learn, tmp_path, program):
    many = ("--samples", 50_000, "--iterations", 3)
    learn(program, *many, out="one")
    learn(program, *many, "--threads", 2, out="two")
    for name in ("metrics.json", "history.csv"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize(
    "program, arguments, message",
    [
        ("train_penalty", ["--hold", "x"], "--hold must be one_per_row, cone, none, first, diagonal, two_two_one, "),
        ("train_penalty", ["--split", "x"], "--split must be minimal, maximal, half or random"),
        ("train_penalty", ["--mu", "0"], "--mu and --gravity must be > 0"),
        ("train_penalty", ["--matrix", "x"], '--matrix must be monotone, free or affine; got "x"'),
        ("train_structured", ["--matrix", "free"], "unknown argument --matrix"),
        ("train_penalty", ["--basis", "none"], "unknown argument --basis"),
        ("train_structured", ["--basis", "x"], '--basis must be none, diagonal or nonnegative; got "x"'),
        ("train_structured", ["--alpha", "0", "1"], "--alpha must be two finite numbers"),
        ("train_penalty", ["--data", "direct.csv"], "direct.csv: lambda_plus or lambda_minus is negative"),
    ],
)
def test_a_mistake_is_named(run, tmp_path, program, arguments, message):
    (tmp_path / "direct.csv").write_text("v,u,v_next,lambda_plus,lambda_minus,gamma\n" + "1,0,0.5,-1,1,0.5\n" * 9)
    before = files(tmp_path)
    result = run(program, *arguments, "--out", "out")
    assert result.returncode == 2 and message in result.stderr and result.stderr.count("\n") == 1
    assert files(tmp_path) == before
