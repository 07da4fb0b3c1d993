"""The programs, as their user runs them."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from runs import files, read_csv

FAST = ("--samples", 500, "--iterations", 400)


# Mistakes


@pytest.mark.parametrize(
    "program, arguments, message",
    [
        ("simulate", ["--mu", "-1"], "--mu must be finite and >= 0; got -1.0"),
        ("simulate", ["--mu", "x"], "--mu"),
        ("simulate", ["--nu", "1"], "--nu"),
        ("simulate", ["--system", "pendulum"], "--system must be sliding_block, falling_block, planar_block, point_mass "
         'or tripod; got "pendulum"'),
        ("simulate", ["--formulation", "x"], "--formulation must be direct, forward, direct2, traditional or mixed; got"),
        ("simulate", ["--system", "tripod", "--formulation", "direct"], '--formulation must be polyhedral; got "direct"'),
        ("simulate", ["--system", "planar_block", "--directions", "5"], "--directions must be even and >= 4; got 5"),
        ("simulate", ["--system", "falling_block", "--directions", "8"], "unknown argument --directions"),
        ("simulate", ["--system", "point_mass", "--restitution", "0.5"], "--stabilization velocity"),
        ("simulate", ["--system", "point_mass", "--restitution", "2"], "--restitution must be from 0 to 1; got 2.0"),
        ("simulate", ["--system", "point_mass", "--inputs", "bad.csv"], 'has no column "v_x"'),
        ("simulate", ["--system", "tripod", "--supports", "1", "0", "2", "0", "1", "1"], "--supports must have the centre"),
        ("simulate", ["--system", "tripod", "--supports", "1", "0", "2", "0", "3", "0"], "--supports must have the centre"),
        ("simulate", ["--system", "tripod", "--velocity", "1", "0"], "--velocity must be three finite numbers"),
        ("simulate", ["--animation", "avi"], '--animation must be gif, mp4 or none; got "avi"'),
        ("simulate", ["--velocity-noise", "-1"], "--velocity-noise must be finite and >= 0; got -1.0"),
        ("simulate", ["--inputs", "none.csv"], "none.csv"),
        ("simulate", ["--inputs", "bad.csv"], 'bad.csv, line 3, column "u": "x" is no finite number'),
        ("simulate", ["--inputs", "bad.csv", "--steps", "3"], "--steps has no meaning with --inputs"),
        ("simulate", ["--config", "bad.csv"], "bad.csv"),
        ("train_direct", ["--data", "bad.csv"], 'bad.csv: has no column "v_next"; its header is "v,u"'),
        ("train_direct", ["--data", "physical.csv"], "physical friction forces"),
        ("train_direct", ["--alpha", "1", "2"], "--alpha must be three finite numbers"),
        ("train_direct", ["--dtype", "float16"], '--dtype must be float32 or float64; got "float16"'),
        ("train_direct", ["--iterations", "0"], "--iterations must be >= 1; got 0"),
        ("train_direct", ["--learning-rate", "nan"], "--learning-rate must be finite and > 0; got nan"),
        ("train_direct", ["--threads", "100000"], "--threads must be from 1 to 256; got 100000"),
        ("train_direct", ["--seed", "4294967296"], "--seed must be a whole number from 0 to 4294967295"),
        ("train_direct", ["--data", "bad.csv", "--samples", "9"], "--samples has no meaning with --data"),
    ],
)
def test_mistakes_are_named_in_one_line_and_write_nothing(run, tmp_path, program, arguments, message):
    (tmp_path / "bad.csv").write_text("v,u\n1,2\n3,x\n")
    (tmp_path / "physical.csv").write_text("v,u,v_next,lambda_plus,lambda_minus\n" + "1,0,0.7,0,2.9\n" * 10)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "metrics.json").write_text("precious")
    (tmp_path / "out" / "checkpoint.pt").write_text("precious too")
    before = files(tmp_path)
    result = run(program, *arguments, "--out", "out")
    assert result.returncode == 2
    assert result.stderr.startswith(f"{program}: ") and message in result.stderr
    assert result.stderr.count("\n") == 1 and result.stdout == ""
    assert files(tmp_path) == before


def test_an_unwritable_folder_is_named(run, tmp_path):
    (tmp_path / "file").write_text("")
    result = run("simulate", "--out", "file/out")
    assert result.returncode == 2 and "file/out" in result.stderr


@pytest.mark.parametrize("program", ["simulate", "train_direct"])
def test_help_teaches(run, program):
    result = run(program, "--help")
    assert result.returncode == 0 and result.stderr == ""
    for word in ("--out", "--seed", "--dtype", "--threads", "--quiet", "--config", "Example:"):
        assert word in result.stdout


# train_direct


@pytest.fixture(scope="module")
def trained(build, tmp_path_factory):
    """A default run."""
    out = tmp_path_factory.mktemp("default") / "run"
    result = subprocess.run([build / "bin" / "train_direct", "--out", out], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return out, result


def test_the_default_run_learns_friction(trained):
    out, result = trained
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["heldout_rmse"] <= 1e-3 and metrics["sticking_exact_zero_fraction"] == 1.0
    assert metrics["rollout_rmse"] <= 1e-3 and metrics["parameter_error"] < 1e-3
    assert 0.2 < metrics["heldout_sticking_fraction"] < 0.6
    assert metrics["identifiable_parameters"] == metrics["parameters_per_output"] == 9
    assert metrics["unidentifiable_directions"] == []
    assert "held-out rmse" in result.stdout and str(out / "model.pt") in result.stdout


def test_the_default_run_writes_every_file(trained):
    out, _ = trained
    assert {str(path) for path in files(out)} == {
        "checkpoint.pt", "config.json", "history.csv", "metrics.json", "model.pt", "rollouts.csv",
        "figures/rollout.png", "figures/training.png",
    }
    history = read_csv(out / "history.csv")
    assert history["iteration"][0] == 0 and history["iteration"][-1] == 4000
    assert history["heldout_rmse"][-1] == json.loads((out / "metrics.json").read_text())["heldout_rmse"]


def test_the_default_run_shows_progress_and_time_left(trained):
    lines = trained[1].stderr.splitlines()
    assert re.fullmatch(r"iteration 2000 of 4000  loss [\d.e-]+  \d+ (s|min \d+ s) left", lines[5]), lines


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_seeds_learn_it_too(run, tmp_path, seed):
    assert run("train_direct", "--seed", seed, "--out", "out", "--quiet").returncode == 0
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["heldout_rmse"] <= 1e-3 and metrics["sticking_exact_zero_fraction"] == 1.0


@pytest.mark.parametrize("flags", [("--mass", 2.5, "--dt", 0.02, "--mu", 0.6), ("--dtype", "float32"),
                                   ("--head", "none", "--alpha", 1, 0, 0)])
def test_other_blocks_precisions_and_losses_learn_it_too(run, tmp_path, flags):
    assert run("train_direct", *flags, "--out", "out", "--quiet").returncode == 0
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["heldout_rmse"] <= 1e-3
    assert metrics["sticking_exact_zero_fraction"] >= (0.99 if "float32" in flags else 1.0)


def test_the_hidden_layer_learns_it_too(run, tmp_path):
    assert run("train_direct", "--network", "hidden", "--out", "out", "--quiet").returncode == 0
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["heldout_rmse"] <= 1e-2 and metrics["sticking_exact_zero_fraction"] > 0.97


def test_a_seed_repeats_the_run_wherever_its_checkpoints_are(run, tmp_path):
    for out, extra in (("a", ()), ("b", ()), ("c", ("--checkpoint-every", 7))):
        assert run("train_direct", *FAST, *extra, "--out", out, "--quiet").returncode == 0
    assert run("train_direct", *FAST, "--seed", 1, "--out", "d", "--quiet").returncode == 0
    a, b, c, d = ((tmp_path / x / "metrics.json").read_bytes() for x in "abcd")
    assert a == b == c != d


def test_a_config_repeats_the_run(run, tmp_path):
    assert run("train_direct", *FAST, "--mu", 0.4, "--out", "a", "--quiet").returncode == 0
    assert run("train_direct", "--config", "a/config.json", "--out", "b", "--quiet").returncode == 0
    assert (tmp_path / "a" / "metrics.json").read_bytes() == (tmp_path / "b" / "metrics.json").read_bytes()


def interrupted(build, tmp_path, how, out="out", delay=0.0):
    """A run that got a signal some time after its first checkpoint."""
    command = [build / "bin" / "train_direct", "--iterations", "4000", "--checkpoint-every", "50", "--out", out]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    while not (tmp_path / out / "history.csv").exists():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(delay)
    process.send_signal(how)
    process.communicate()
    return process.returncode


@pytest.mark.parametrize("delay", [0, 0.2, 0.7])
def test_a_killed_run_resumes_bit_for_bit(run, build, trained, tmp_path, delay):
    assert interrupted(build, tmp_path, signal.SIGKILL, delay=delay) == -signal.SIGKILL
    assert not (tmp_path / "out" / "metrics.json").exists()
    result = run("train_direct", "--out", "out", "--resume")  # the other flags come from the checkpoint
    assert result.returncode == 0 and "continuing at iteration" in result.stderr
    for name in ("metrics.json", "history.csv", "rollouts.csv"):
        assert (tmp_path / "out" / name).read_bytes() == (trained[0] / name).read_bytes(), name


def test_ctrl_c_leaves_a_checkpoint_and_resumes_bit_for_bit(run, build, trained, tmp_path):
    assert interrupted(build, tmp_path, signal.SIGINT) == 130
    assert run("train_direct", "--out", "out", "--resume", "--quiet").returncode == 0
    assert (tmp_path / "out" / "metrics.json").read_bytes() == (trained[0] / "metrics.json").read_bytes()


def test_resume_refuses_other_flags_and_other_checkpoints(run, build, tmp_path):
    interrupted(build, tmp_path, signal.SIGKILL)
    result = run("train_direct", "--out", "out", "--resume", "--learning-rate", 0.5)
    assert result.returncode == 2 and "--learning-rate 0.5 differs from the 0.02" in result.stderr
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "checkpoint.pt").write_bytes(b"x" * 1000)
    result = run("train_direct", "--out", "other", "--resume")
    assert result.returncode == 2 and "checkpoint.pt: is no checkpoint" in result.stderr


def test_resume_without_a_checkpoint_starts_at_the_beginning(run, tmp_path):
    result = run("train_direct", *FAST, "--out", "out", "--resume")
    assert result.returncode == 0 and "no checkpoint in out: starting at the beginning" in result.stderr


def test_results_of_two_runs_do_not_mix(run, build, tmp_path):
    """Until a new run in the same folder has trained, the old one's results stay; then they are all new."""
    assert run("train_direct", *FAST, "--seed", 5, "--out", "out", "--quiet").returncode == 0
    old = {name: (tmp_path / "out" / name).read_bytes() for name in ("config.json", "metrics.json", "model.pt")}
    result = run("train_direct", "--learning-rate", 1e300, "--out", "out")
    assert result.returncode == 1 and "the loss is no finite number" in result.stderr
    assert "replacing the run in out" in result.stderr
    assert old == {name: (tmp_path / "out" / name).read_bytes() for name in old}
    assert run("train_direct", *FAST, "--seed", 6, "--out", "out", "--quiet").returncode == 0
    assert not any(old[name] == (tmp_path / "out" / name).read_bytes() for name in old)


def test_a_finished_run_resumes_to_the_same_files(run, tmp_path):
    assert run("train_direct", *FAST, "--out", "out", "--quiet").returncode == 0
    before = files(tmp_path / "out")
    assert run("train_direct", "--out", "out", "--resume", "--quiet").returncode == 0
    after = files(tmp_path / "out")
    assert before.keys() == after.keys()
    for name in ("metrics.json", "history.csv", "config.json", "rollouts.csv"):
        assert before[pathlib.Path(name)] == after[pathlib.Path(name)]


def test_a_model_without_a_solution_is_reported(run, tmp_path):
    result = run("train_direct", "--iterations", 1, "--learning-rate", 100, "--out", "out")
    assert result.returncode == 0
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["heldout_unsolved"] > 0 and metrics["heldout_rmse"] is None
    assert "warning: the learned LCP has no solution in" in result.stderr and "no figures" not in result.stderr
    assert (tmp_path / "out" / "figures" / "rollout.png").exists()


def test_many_samples(run, tmp_path):
    assert run("train_direct", "--samples", 60_000, "--iterations", 20, "--out", "out", "--quiet").returncode == 0
    assert json.loads((tmp_path / "out" / "metrics.json").read_text())["identifiable_parameters"] == 9


def test_quiet_prints_nothing(run):
    result = run("train_direct", *FAST, "--out", "out", "--quiet")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_data_of_the_users_own(run, tmp_path):
    assert run("simulate", "--trajectories", 40, "--mu", 0.5, "--out", "data", "--quiet").returncode == 0
    result = run("train_direct", "--data", "data/data.csv", "--mu", 0.5, "--out", "out")
    assert result.returncode == 0, result.stderr
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["training_samples"] == 1600 and metrics["heldout_samples"] == 400
    assert metrics["heldout_rmse"] <= 1e-3 and metrics["sticking_exact_zero_fraction"] == 1.0
    assert run("train_direct", "--config", "out/config.json", "--out", "again", "--quiet").returncode == 0
    assert (tmp_path / "again" / "metrics.json").read_bytes() == (tmp_path / "out" / "metrics.json").read_bytes()
    (tmp_path / "data" / "data.csv").rename(tmp_path / "moved.csv")
    assert run("train_direct", "--data", "moved.csv", "--out", "out", "--resume", "--quiet").returncode == 0
    (tmp_path / "moved.csv").rename(tmp_path / "data" / "data.csv")
    result = run("train_direct", "--data", "data/data.csv", "--mu", 0.4, "--out", "wrong", "--iterations", 1)
    assert "warning: " in result.stderr and "above mu m g" in result.stderr


def test_changed_data_is_not_resumed(run, tmp_path):
    assert run("simulate", "--steps", 100, "--out", "data", "--quiet").returncode == 0
    arguments = ("--data", "data/data.csv", "--iterations", 20, "--out", "out")
    assert run("train_direct", *arguments, "--quiet").returncode == 0
    assert run("simulate", "--steps", 100, "--seed", 1, "--out", "data", "--quiet").returncode == 0
    result = run("train_direct", *arguments, "--resume")
    assert result.returncode == 2 and "was made with other data" in result.stderr


def test_says_what_the_data_cannot_tell(run, tmp_path):
    """A block that always slides to the right under its own friction: forces that never vary are a bias."""
    v = np.random.default_rng(0).uniform(5, 9, 60)
    limit = 0.3 * 9.81
    rows = "".join(f"{a!r},0,{a - 0.1 * limit!r},{-10 * a!r},{limit!r}\n" for a in v.tolist())
    (tmp_path / "slides.csv").write_text("v,u,v_next,lambda_plus,lambda_minus\n" + rows)
    result = run("train_direct", "--data", "slides.csv", "--iterations", 20, "--out", "out")
    assert result.returncode == 0, result.stderr
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["identifiable_parameters"] < 9
    assert len(metrics["unidentifiable_directions"]) == 9 - metrics["identifiable_parameters"]
    assert "the data do not see" in result.stdout and "[lambda_minus]" in result.stdout
    assert metrics["sticking_exact_zero_fraction"] is None  # nothing sticks, so there is no fraction


def test_figures_are_optional(run, tmp_path):
    result = run("train_direct", *FAST, "--out", "out", env={**os.environ, "TORCHLCP_PYTHON": "/no/python"})
    assert result.returncode == 0 and (tmp_path / "out" / "metrics.json").exists()
    assert "pip install matplotlib" in result.stderr and not (tmp_path / "out" / "figures").exists()


def test_figures_can_be_drawn_later(run, build, tmp_path):
    no_matplotlib = tmp_path / "python"
    no_matplotlib.write_text("#!/bin/sh\nexec python3 -S \"$@\"\n")
    no_matplotlib.chmod(0o755)
    result = run("train_direct", *FAST, "--out", "out", env={**os.environ, "TORCHLCP_PYTHON": str(no_matplotlib)})
    assert result.returncode == 0 and "no figures: matplotlib is not installed" in result.stderr
    command = result.stderr.splitlines()[-1].split(" && ")[1].split()
    assert command[0] == str(no_matplotlib)
    assert subprocess.run([sys.executable, *command[1:]], cwd=tmp_path).returncode == 0
    assert (tmp_path / "out" / "figures" / "rollout.png").stat().st_size > 10_000
