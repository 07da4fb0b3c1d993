"""The rest of the ideas of the notes, each by the program that learns with it."""
import numpy as np
import pytest
import torch
from runs import check_a_killed_run_resumes, files, read_csv, variants, write_csv


@pytest.mark.parametrize("seed", variants(0, 1))
def test_a_chain_finds_its_states(learn, tmp_path, seed):
    metrics = learn("train_markov_chain", "--samples", 1500, "--iterations", 400, "--seed", seed)
    assert metrics["mu_error"] < 0.02 and metrics["transition_error"] < 0.1
    assert metrics["sigma"] == pytest.approx(0.02, rel=0.1)
    assert metrics["heldout_log_likelihood"] > metrics["true_log_likelihood"] - 0.05
    assert metrics["heldout_log_likelihood"] > metrics["single_log_likelihood"] + 1
    assert metrics["state_accuracy"] > metrics["true_state_accuracy"] - 0.02
    branches = read_csv(tmp_path / "out" / "branches.csv")
    rests = {name: np.mean(abs(v) < 0.1) for name, v in branches.items()}  # one of the branches
    assert abs(rests["chain"] - rests["truth"]) < 0.1
    assert metrics["branch_distance"] < 0.6 * metrics["single_branch_distance"]


def test_one_state_is_one_lcp(learn):
    metrics = learn("train_markov_chain", "--states", 1, "--factors", 1, "--samples", 500, "--iterations", 200)
    assert metrics["mu_error"] < 0.02 and metrics["transition"] == [[1]]
    assert metrics["heldout_log_likelihood"] == pytest.approx(metrics["single_log_likelihood"], abs=1e-2)


def test_a_chain_learns_from_data_of_the_users_own(run, learn, tmp_path):
    flags = ("--trajectories", 10, "--steps", 30, "--mu", 1, "--dt", 1, "--gravity", 1, "--velocity-noise", 0.02)
    assert run("simulate", "--formulation", "traditional", *flags, "--out", "data", "--animation", "none").returncode == 0
    flags = ("--data", "data/data.csv", "--states", 2, "--iterations", 50)
    metrics = learn("train_markov_chain", *flags)
    assert metrics["training_steps"] == 240 and "true_log_likelihood" not in metrics
    # A trajectory may be shorter than the others.
    data = read_csv(tmp_path / "data" / "data.csv")
    write_csv(tmp_path / "short.csv", **{name: column[:-7] for name, column in data.items()})
    write_csv(tmp_path / "few.csv", **{name: column[:60] for name, column in data.items()})
    assert learn("train_markov_chain", "--data", "short.csv", *flags[2:])["training_steps"] == 240
    result = run("train_markov_chain", "--data", "few.csv", "--out", "few")
    assert result.returncode == 2 and "few.csv: must have at least 5 trajectories" in result.stderr


def test_directions_of_a_floor_with_a_grain_are_found(learn, library, tmp_path):
    flags = ("--directions", 4, "--true-directions", 4, "--samples", 200, "--iterations", 600)
    metrics = learn("train_directions", *flags)
    assert metrics["direction_error"] < 1e-6 and metrics["heldout_rmse"] < 1e-6
    learned = metrics["table"][-1]
    assert learned["resting_exactly"] == 1 and learned["unknowns"] == 5
    assert all(row["rmse"] > 0.02 for row in metrics["table"][:-1])
    model = torch.jit.load(tmp_path / "out" / "model.pt")
    D = torch.tensor(metrics["D"], dtype=torch.float64)
    # A force that the polygon has holds the block; beyond a corner it slides, and friction is that corner.
    u = torch.stack([0.5 * D[:, 0], 0.5 * (D[:, 0] + D[:, 1]), 3 * D[:, 0], -2 * D[:, 1]])
    v_next, force, status = model.step(torch.zeros(4, 2), u)
    assert (status == 0).all() and (v_next[:2] == 0).all() and (v_next[2:].norm(dim=1) > 0.5).all()
    assert torch.allclose(v_next, u + force) and torch.allclose(force[2], -2 * D[:, 0], atol=2)
    assert torch.equal(model(torch.zeros(3, 4, 2), u)[1], v_next)
    assert model.to(torch.float32)(torch.zeros(4, 2), u.float()).dtype == torch.float32


def test_learned_directions_of_a_disk_are_as_good_as_a_regular_polygon(learn):
    metrics = learn("train_directions", "--samples", 300, "--iterations", 500, "--starts", 4)
    table = {row["directions"]: row for row in metrics["table"]}
    assert table["learned, 8"]["rmse"] < 1.2 * table["regular, 8"]["rmse"] < 0.6 * table["regular, 4"]["rmse"]
    assert table["aligned with v + dt u / m"]["largest_error"] < 1e-14
    assert table["aligned with v + dt u / m"]["resting_exactly"] == 1
    for name in ("aligned with v", "aligned with u", "aligned with v and u"):
        assert table[name]["rmse"] > 1e-2


@pytest.mark.parametrize("f", variants("absent", "affine"))
def test_a_block_is_learned_with_its_lcps_as_constraints(build, learn, f):
    if not (build / "bin" / "train_mpec").exists():
        pytest.skip("train_mpec is not built")
    metrics = learn("train_mpec", "--f", f, "--samples", 50, "--starts", 4)
    assert metrics["starts_solved"] > 1 and metrics["starts_exact"] > 0
    assert metrics["heldout_rmse"] < 1e-4 and metrics["rollout_rmse"] < 1e-3
    if f == "absent":
        assert metrics["sticking_exact_zero_fraction"] > 0.99


@pytest.mark.parametrize("flags", variants(
    ("--inner", "soft", "--alpha", 1, 1, 10, "--first", 0.01, "--samples", 30),
    ("--samples", 20, "--q", "network", "--f", "affine"),
    ("--samples", 20, "--f", "network", "--G", "network"),
))
def test_the_constraints_of_a_program_hold_the_inner_problems_at_their_optima(build, learn, tmp_path, flags):
    """Where a start is solved, its objective is the least value of the inner problems, as other code computes it."""
    if not (build / "bin" / "train_mpec").exists():
        pytest.skip("train_mpec is not built")
    metrics = learn("train_mpec", "--starts", 2, "--hidden-units", 2, *flags)
    history = read_csv(tmp_path / "out" / "history.csv")
    assert metrics["starts_solved"] > 0
    assert (history["inner_difference"][history["solved"] == 1] < 1e-4).all()


@pytest.mark.parametrize("program, flags", [
    ("train_markov_chain", ("--samples", 200, "--iterations", 200, "--checkpoint-every", 5)),
    ("train_directions", ("--samples", 50, "--iterations", 300, "--checkpoint-every", 5, "--starts", 2)),
])
def test_a_killed_run_resumes_and_threads_change_nothing(run, build, tmp_path, program, flags):
    check_a_killed_run_resumes(run, build, tmp_path, program, flags)
    assert run(program, *flags, "--threads", 2, "--out", "threads", "--quiet").returncode == 0
    for name in ("metrics.json", "history.csv"):
        assert (tmp_path / "threads" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_their_figures(run, tmp_path):
    for program, flags, printed, figures in (
        ("train_markov_chain", ("--samples", 100, "--iterations", 20), "of one LCP", {"branches.png", "training.png"}),
        ("train_directions", ("--samples", 20, "--iterations", 20, "--starts", 2), "| learned, 8 |", {"directions.png"}),
    ):
        result = run(program, *flags, "--out", program, env=None)
        assert result.returncode == 0 and printed in result.stdout
        assert {path.name for path in files(tmp_path / program) if path.suffix == ".png"} == figures
