"""The program train_network: networks that end in an LCP, learned from motion alone."""
import json
import signal

import numpy as np
import pytest
import torch
from runs import killed, read_csv, variants, write_csv

FAST = ("--black-box-iterations", 20)
TINY = ("--samples", 40, "--starts", 4, "--finishing-iterations", 4, "--q", "affine",
        "--black-box-iterations", 20)


@pytest.fixture
def train(run, tmp_path):
    """Runs without figures; returns the metrics."""

    def call(*flags, out="out"):
        result = run("train_network", *flags, "--out", out, "--quiet")
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
        return json.loads((tmp_path / out / "metrics.json").read_text())

    return call


def test_a_block_is_learned_exactly_and_a_black_box_is_not(run, library, tmp_path):
    result = run("train_network", "--samples", 200, "--black-box-iterations", 400, "--out", "out", env=None)
    assert result.returncode == 0 and "of the best black box" in result.stdout and "left" in result.stderr
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["heldout_rmse"] < 1e-14 and metrics["rollout_rmse"] < 1e-13
    assert metrics["sticking_exact_zero_fraction"] == 1 and metrics["unknowns"] == 2 and metrics["unsolved"] == 0
    assert 1e-4 < metrics["black_box_heldout_rmse"] < 0.3
    assert len(metrics["black_boxes"]) == 13 and metrics["starts"] == 192
    for name in ("rollout.png", "search.png"):
        assert (tmp_path / "out" / "figures" / name).stat().st_size > 10_000
    model = torch.jit.load(tmp_path / "out" / "model.pt")
    v_next, force, status = model.step(torch.tensor([0.0, 2.0]), torch.tensor([0.5, 1.0]))
    assert v_next[0] == 0 and abs(v_next[1] - 2) < 1e-14 and (status == 0).all()
    assert torch.allclose(force, torch.tensor([-0.5, -1.0], dtype=torch.float64))
    model.zero_grad()
    model(torch.ones(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)).sum().backward()
    assert any(p.grad.abs().max() > 0 for p in model.parameters())


@pytest.mark.parametrize("seed", variants(0, *range(1, 10)))
def test_fifty_samples_are_enough(train, seed):
    assert train("--samples", 50, "--seed", seed, *FAST)["heldout_rmse"] < 1e-9


def test_noise_is_averaged(train):
    metrics = train("--velocity-noise", 0.1, "--samples", 200, "--unknowns", 2, *FAST)
    assert metrics["heldout_rmse"] < 2 * metrics["true_model_heldout_rmse"]
    assert metrics["heldout_rmse"] == pytest.approx(metrics["from_truth_heldout_rmse"], rel=0.05)


@pytest.mark.parametrize("seed", variants(1, 3, 5, 9))
def test_noise_makes_no_unknowns(train, seed):
    metrics = train("--velocity-noise", 0.1, "--seed", seed, "--q", "affine", "--starts", 48, *FAST)
    assert metrics["unknowns"] == 2 and metrics["odd"] and metrics["inertial"]
    assert metrics["heldout_rmse"] < 1.1 * metrics["true_model_heldout_rmse"]


@pytest.mark.parametrize("system, flags, error", variants(
    ("planar_block", ("--directions", 4), 1e-12), ("stribeck", ("--unknowns", 2, "--q", "network", "--starts", 48), 0.01),
    ("stacked_blocks", (), 1e-12), ("track", (), 1e-4),
    ("bouncing_mass", ("--seed", 1, "--q", "affine"), 1e-12)))
def test_other_systems(train, system, flags, error):
    metrics = train("--system", system, *flags, *FAST)
    assert metrics["heldout_rmse"] < error and metrics["sticking_exact_zero_fraction"] > 0.98


@pytest.mark.parametrize("flags", variants(
    ("--f", "affine", "--G", "affine"), ("--f", "network"), ("--G", "network", "--seed", 1)))
def test_other_parts(train, flags):
    metrics = train(*flags, "--samples", 500, *FAST)
    assert metrics["heldout_rmse"] < 1e-12 and metrics["sticking_exact_zero_fraction"] == 1


@pytest.mark.parametrize("loss", variants("one_sided", "bilevel"))
def test_other_losses(train, loss):
    assert train("--loss", loss, "--q", "affine", "--samples", 200, *FAST)["heldout_rmse"] < 1e-13


def test_data_of_the_users_own(train, library, tmp_path):
    generator = np.random.default_rng(0)
    x, v, u = generator.normal(size=(3, 300))
    free = v + u / 2 + 0.1 * x
    v_next = np.sign(free) * np.maximum(np.abs(free) - 0.5, 0)
    write_csv(tmp_path / "own.csv", trajectory=np.arange(300) // 20, x=x, v=v, u=u, v_next=v_next, other=u)
    metrics = train("--data", "own.csv", "--q", "affine", *FAST)
    assert metrics["heldout_rmse"] < 1e-13 and metrics["heldout_samples"] == 60
    assert (metrics["training_samples"], metrics["validation_samples"]) == (192, 48)
    rollouts = read_csv(tmp_path / "out" / "rollouts.csv")
    assert sorted(set(rollouts["rollout"])) == [0, 1, 2] and len(rollouts["step"]) == 60
    model = torch.jit.load(tmp_path / "out" / "model.pt")
    learned = model(torch.from_numpy(v), torch.from_numpy(u), torch.from_numpy(x))
    assert np.abs(learned.detach().numpy() - v_next).max() < 1e-12


def slowed(v, forward, backward):
    """v less what friction takes, of at most these limits on motion forward and backward."""
    return np.maximum(v - forward, 0) - np.maximum(-v - backward, 0)


# Bodies that are not in the program: v_next from the columns, at the units mass = dt = mu g = 1.
BODIES = {
    "friction that depends on the direction": lambda x, v, u: slowed(0.9 * v + u, 0.6, 1.4),
    "a belt that moves": lambda x, v, u: 0.5 + slowed(v + u - 0.5, 1, 1),
    "a spring": lambda x, v, u: slowed(v - 0.5 * x + u, 1, 1),
    "two walls": lambda x, v, u: np.clip(slowed(v + u, 0.3, 0.3), -1 - x, 1 - x),
    "a pendulum": lambda x, v, u: slowed(v - np.sin(x) + u, 0.5, 0.5),
}


@pytest.mark.parametrize("name, error", variants(
    ("friction that depends on the direction", 1e-13), ("a belt that moves", 1e-13), ("a spring", 1e-13),
    ("two walls", 1e-12), ("a pendulum", 1e-4)))
def test_bodies_that_the_program_does_not_know(train, tmp_path, name, error):
    generator = np.random.default_rng(7)
    v, u = generator.normal(size=(2, 625))
    x = generator.uniform(*((-np.pi, np.pi) if name == "a pendulum" else (-1, 1)), 625)
    write_csv(tmp_path / "own.csv", x=x, v=v, u=u, v_next=BODIES[name](x, v, u))
    metrics = train("--data", "own.csv", *FAST)
    assert metrics["heldout_rmse"] < error and metrics["sticking_exact_zero_fraction"] in (1, None)


def test_motion_that_simulate_wrote(run, train, tmp_path):
    flags = ("--system", "planar_block", "--directions", 4, "--formulation", "polyhedral", "--trajectories", 5, "--quiet")
    assert run("simulate", *flags, "--animation", "none", "--out", "data").returncode == 0
    metrics = train("--data", "data/data.csv", "--unknowns", 1, *TINY[2:])
    assert metrics["rollout_rmse"] > 0


@pytest.fixture
def simulated(run, tmp_path):
    """Simulates a sliding block; returns the table that the program wrote."""

    def call(trajectories):
        flags = ("--system", "sliding_block", "--trajectories", trajectories, "--animation", "none", "--quiet")
        assert run("simulate", *flags, "--out", "data").returncode == 0
        return read_csv(tmp_path / "data" / "data.csv")

    return call


@pytest.mark.parametrize("trajectories", (1, 3))
def test_rollouts_of_few_trajectories(simulated, train, tmp_path, trajectories):
    table = simulated(trajectories)
    metrics = train("--data", "data/data.csv", "--unknowns", 2, "--q", "affine", *FAST)
    assert metrics["heldout_rmse"] < 1e-12 and metrics["rollout_rmse"] < 1e-12
    assert metrics["heldout_samples"] == len(table["v"]) // 5
    rollouts = read_csv(tmp_path / "out" / "rollouts.csv")
    assert sorted(set(rollouts["rollout"])) == list(range(trajectories))


def test_rows_are_sorted_by_step(simulated, run, train, tmp_path):
    table = simulated(3)
    order = np.random.default_rng(0).permutation(len(table["step"]))
    write_csv(tmp_path / "shuffled.csv", **{name: column[order] for name, column in table.items()})
    flags = ("--unknowns", 2, *TINY[2:])
    sorted_rows, shuffled = train("--data", "data/data.csv", *flags), train("--data", "shuffled.csv", *flags, out="shuffled")
    assert shuffled == sorted_rows
    for rows, message in ((np.r_[0:5, 6:20], "4 is followed by 6 in trajectory 0"),
                          (np.r_[0:5, 4:20], "4 is followed by 4 in trajectory 0")):
        write_csv(tmp_path / "bad.csv", **{name: column[rows] for name, column in table.items()})
        result = run("train_network", "--data", "bad.csv", "--out", "bad")
        assert result.returncode == 2 and message in result.stderr


def test_quantities_after_the_step_are_not_used(simulated, run, tmp_path):
    """And without mass and time step model.pt has no forces."""
    table = simulated(5)
    write_csv(tmp_path / "own.csv", x_next=table["v_next"], u_next_1=table["u"], u=table["u"], v=table["v"],
              v_next=table["v_next"])
    result = run("train_network", "--data", "own.csv", "--unknowns", 2, "--out", "out", *TINY[2:])
    assert result.returncode == 0 and "learns v_next from v, u\n" in result.stderr
    assert "not used: x_next, u_next_1\n" in result.stderr and "held out: one row in 5\n" in result.stderr
    assert "no rollouts: the file has neither a column trajectory nor step" in result.stderr
    assert "rollout" not in result.stdout and "of fitted constants" not in result.stdout
    assert "none" not in result.stdout


def test_steps_at_rest_are_counted(run):
    """And where measured velocities are never exactly 0, the flag is named that says which count as rest."""
    for flags, named in (((), True), (("--rest-below", 0.3), False)):
        result = run("train_network", "--velocity-noise", 0.1, *flags, "--unknowns", 2, "--out", "out", *TINY)
        assert result.returncode == 0 and ("after 0 of which the body rests" in result.stderr) == named
        assert ("--rest-below is the size" in result.stderr) == named


def test_forces_need_mass_and_time_step(simulated, train, library, tmp_path):
    table = simulated(5)
    v, u, v_next = (torch.from_numpy(table[name]) for name in ("v", "u", "v_next"))
    for flags, known in (((), False), (("--dt", 0.1), False), (("--dt", 0.1, "--mass", 1), True)):
        train("--data", "data/data.csv", "--unknowns", 2, "--q", "affine", *FAST, *flags)
        predicted, force, status = torch.jit.load(tmp_path / "out" / "model.pt").step(v, u)
        assert (predicted - v_next).abs().max() < 1e-12 and (status == 0).all()
        if known:
            assert (force - ((v_next - v) / 0.1 - u)).abs().max() < 1e-10
        else:
            assert force.isnan().all()


def test_a_killed_run_resumes_bit_for_bit(run, build, train, tmp_path):
    """In all but the times that it took."""
    whole = train(*TINY, out="whole")
    assert killed(build, tmp_path, "train_network", *TINY, after=1) == -signal.SIGKILL
    assert not (tmp_path / "out" / "metrics.json").exists()
    assert train("--resume") == whole
    for name in ("metrics.json", "history.csv", "rollouts.csv", "model.pt"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "out" / name).read_bytes(), name


def test_a_signal_leaves_a_checkpoint(build, run, tmp_path):
    assert killed(build, tmp_path, "train_network", *TINY, how=signal.SIGINT, after=1) == 130
    result = run("train_network", "--out", "out", "--resume")
    assert result.returncode == 0 and "continuing after" in result.stderr


def test_threads_change_nothing(train, tmp_path):
    one, two = train(*TINY, out="one"), train(*TINY, "--threads", 2, out="two")
    assert one == two
    assert (tmp_path / "one" / "model.pt").read_bytes() == (tmp_path / "two" / "model.pt").read_bytes()


def test_a_time_limit_ends_the_search(train):
    metrics = train("--system", "stribeck", *TINY, "--seconds", 1e-9)
    assert metrics["rounds"] == 1 and metrics["stopped_by_time"]


def test_a_time_limit_ends_a_round(train):
    """The first round of this search would take a minute; search_test.cpp tests that one is hurried."""
    metrics = train("--system", "stribeck", "--q", "network", "--seconds", 1, *FAST)
    assert metrics["rounds"] == 1 and metrics["stopped_by_time"] and metrics["heldout_rmse"] < 1


def test_float32(train, library, tmp_path):
    metrics = train("--dtype", "float32", "--unknowns", 2, *TINY)
    assert metrics["unsolved"] == 0
    model = torch.jit.load(tmp_path / "out" / "model.pt")
    assert model(torch.ones(2), torch.ones(2)).dtype == torch.float32


@pytest.mark.parametrize("flags, message", [
    (("--unknowns", "many"), "--unknowns must be auto, or a number from 1 to 16"),
    (("--system", "pendulum"), "--system must be sliding_block"),
    (("--directions", 5), "--directions must be even"),
    (("--data", "bad.csv"), 'bad.csv: has no column "v_next"'),
    (("--data", "half.csv"), 'half.csv: has no column "v_y"'),
    (("--loss", "one_sided", "--unknowns", 2), "--unknowns has no meaning with --loss one_sided"),
    (("--loss", "one_sided", "--f", "affine"), "--loss one_sided needs --f absent and --G constant"),
    (("--iterations", 10), "--iterations has no meaning with --loss prediction"),
    (("--data", "half.csv", "--system", "track"), "--system has no meaning with --data"),
    (("--data", "half.csv", "--mu", 1), "--mu has no meaning with --data"),
    (("--directions", 4), "--directions has no meaning with --system sliding_block"),
    (("--loss", "bilevel", "--kappa", 1), "--kappa has no meaning with --loss bilevel"),
    (("--q", "affine", "--hidden-units", 4), "--hidden-units has no meaning with --q affine"),
    (("--mass", 0), "--mass must be > 0"),
    (("--finishing-iterations", 0), "--finishing-iterations 0 leaves nothing that minimises the loss"),
])
def test_mistakes_are_named(run, tmp_path, flags, message):
    (tmp_path / "bad.csv").write_text("v,u\n1,2\n")
    (tmp_path / "half.csv").write_text("v_x,v_next_x,v_next_y\n1,2,3\n")
    result = run("train_network", *flags, "--out", "out")
    assert result.returncode == 2 and message in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
