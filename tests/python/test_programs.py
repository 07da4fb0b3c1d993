"""The programs, as their user runs them."""
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from runs import WITHOUT_FIGURES, files, iteration, killed, start, wait_until

FAST = ("--samples", 500, "--iterations", 400)


# Mistakes


@pytest.mark.parametrize(
    "program, arguments, message",
    [
        ("simulate", ["--mu", "-1"], "--mu must be finite and >= 0; got -1.0"),
        ("simulate", ["--mu", "x"], "--mu"),
        ("simulate", ["--mu", ""], "--mu must not be empty"),
        ("simulate", ["--inputs="], "--inputs must not be empty"),
        ("simulate", ["--steps", "9223372036854775807"], "--steps must be <= 1000000000; got 9223372036854775807"),
        ("simulate", ["--steps", "9223372036854775808"], "--steps"),
        ("simulate", ["--config", "empty.json"], '--config empty.json: "inputs" cannot be ""'),
        ("train_direct", ["--data", ""], "--data must not be empty"),
        ("train_direct", ["--samples", "18446744073709551617"], "--samples"),
        ("train_direct", ["--out", ""], "--out must not be empty"),
        ("simulate", ["--nu", "1"], "--nu"),
        ("simulate", ["--system", "pendulum"], "--system must be sliding_block, falling_block, planar_block, point_mass, "
         'tripod, compliant_particle, compliant_block, cube, rolling, stack, spheres or robot; got "pendulum"'),
        ("simulate", ["--formulation", "x"], "--formulation must be direct, forward, direct2, traditional, mixed or "
         "direct_supported; got"),
        ("simulate", ["--system", "tripod", "--formulation", "direct"], '--formulation must be polyhedral; got "direct"'),
        ("simulate", ["--system", "planar_block", "--directions", "5"], "--directions must be even and >= 4; got 5"),
        ("simulate", ["--system", "falling_block", "--directions", "8"], "unknown argument --directions"),
        ("simulate", ["--system", "point_mass", "--restitution", "0.5"], "--stabilization velocity"),
        ("simulate", ["--system", "point_mass", "--restitution", "2"], "--restitution must be from 0 to 1; got 2.0"),
        ("simulate", ["--system", "point_mass", "--inputs", "bad.csv"], 'has no column "v_x"'),
        ("simulate", ["--system", "tripod", "--supports", "1", "0", "2", "0", "1", "1"], "--supports must have the centre"),
        ("simulate", ["--system", "tripod", "--supports", "1", "0", "2", "0", "3", "0"], "--supports must have the centre"),
        ("simulate", ["--system", "tripod", "--supports", "-.4", "-1", ".4", "1", ".6", "1.5"],  # on a line but for rounding
         "--supports must have the centre"),
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
        ("train_direct", ["--data", "bad.csv", "--more-mus", "1"], "--more-mus has no meaning with --data"),
        ("train_direct", ["--more-mus", "0.1", "-1"], "--more-mus must be finite numbers >= 0; got [0.1,-1.0]"),
        ("train_direct", ["--forces", "real"], '--forces must be fictitious, physical or none; got "real"'),
        ("train_direct", ["--study", "--head", "none"], "--head has no meaning with --study"),
        ("train_direct", ["--study"], "--out out holds a trained model; --study needs another folder"),
        ("train_slack", ["--data", "physical.csv"], "which no affine model fits; --forces physical shows how it fails"),
        ("train_slack", ["--more-mus", "0.5"], "unknown argument --more-mus"),
        ("train_slack", ["--study"], "unknown argument --study"),
    ],
)
def test_mistakes_are_named_in_one_line_and_write_nothing(run, tmp_path, program, arguments, message):
    (tmp_path / "bad.csv").write_text("v,u\n1,2\n3,x\n")
    (tmp_path / "empty.json").write_text('{"inputs": ""}')
    (tmp_path / "physical.csv").write_text("v,u,v_next,lambda_plus,lambda_minus\n" + "1,0,0.7,0,2.9\n" * 10)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "metrics.json").write_text("precious")
    (tmp_path / "out" / "checkpoint.pt").write_text("precious too")
    before = files(tmp_path)
    result = run(program, *arguments, *(() if "--out" in arguments else ("--out", "out")))
    assert result.returncode == 2
    assert result.stderr.startswith(f"{program}: ") and message in result.stderr
    assert result.stderr.count("\n") == 1 and result.stdout == ""
    assert files(tmp_path) == before


def test_an_unwritable_folder_is_named(run, tmp_path):
    (tmp_path / "file").write_text("")
    result = run("simulate", "--out", "file/out")
    assert result.returncode == 2 and "file/out" in result.stderr


@pytest.mark.parametrize("program", ["simulate", "train_direct", "train_slack"])
def test_help_teaches(run, program):
    result = run(program, "--help")
    assert result.returncode == 0 and result.stderr == ""
    for word in ("--out", "--seed", "--dtype", "--threads", "--quiet", "--config", "Example:"):
        assert word in result.stdout


# Training, by the example of train_direct


@pytest.fixture(scope="module")
def trained(build, tmp_path_factory):
    """A run that takes long enough to be interrupted."""
    out = tmp_path_factory.mktemp("trained") / "run"
    command = [build / "bin" / "train_direct", "--iterations", "4000", "--out", out, "--quiet"]
    assert subprocess.run(command, env=WITHOUT_FIGURES).returncode == 0
    return out


@pytest.fixture
def train(run):
    """Runs train_direct without its figures."""
    return lambda *arguments: run("train_direct", *arguments)


def test_a_seed_repeats_the_run_wherever_its_checkpoints_are(train, tmp_path):
    for out, extra in (("a", ()), ("b", ()), ("c", ("--checkpoint-every", 7))):
        assert train(*FAST, *extra, "--out", out, "--quiet").returncode == 0
    assert train(*FAST, "--seed", 1, "--out", "d", "--quiet").returncode == 0
    a, b, c, d = ((tmp_path / x / "metrics.json").read_bytes() for x in "abcd")
    assert a == b == c != d


def test_a_config_repeats_the_run(train, tmp_path):
    assert train(*FAST, "--mu", 0.4, "--out", "a", "--quiet").returncode == 0
    assert train("--config", "a/config.json", "--out", "b", "--quiet").returncode == 0
    assert (tmp_path / "a" / "metrics.json").read_bytes() == (tmp_path / "b" / "metrics.json").read_bytes()


LONG = ("--iterations", 4000, "--checkpoint-every", 50)


@pytest.mark.parametrize("after", [0, 1000, 3000])
def test_a_killed_run_resumes_bit_for_bit(train, build, trained, tmp_path, after):
    assert killed(build, tmp_path, "train_direct", *LONG, after=after) == -signal.SIGKILL
    assert not (tmp_path / "out" / "metrics.json").exists()
    result = train("--out", "out", "--resume")  # the other flags come from the checkpoint
    assert result.returncode == 0 and "continuing at iteration" in result.stderr
    for name in ("metrics.json", "history.csv", "rollouts.csv"):
        assert (tmp_path / "out" / name).read_bytes() == (trained / name).read_bytes(), name


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_a_checkpoint_and_the_run_resumes_bit_for_bit(train, build, trained, tmp_path, how):
    assert killed(build, tmp_path, "train_direct", *LONG, how=how) == 128 + how
    assert train("--out", "out", "--resume", "--quiet").returncode == 0
    assert (tmp_path / "out" / "metrics.json").read_bytes() == (trained / "metrics.json").read_bytes()


def test_a_hangup_that_is_ignored_stays_ignored(build, tmp_path):
    """As under nohup."""
    ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    process = start(build, tmp_path, "train_direct", "--iterations", 500, "--checkpoint-every", 50, "--out", "out",
                    "--quiet", **ignoring)
    wait_until(lambda: iteration(tmp_path / "out") > 0, process)
    process.send_signal(signal.SIGHUP)
    assert process.wait() == 0


def test_resume_refuses_other_flags_and_other_checkpoints(train, build, tmp_path):
    killed(build, tmp_path, "train_direct", *LONG)
    result = train("--out", "out", "--resume", "--learning-rate", 0.5)
    assert result.returncode == 2 and "--learning-rate 0.5 differs from the 0.05" in result.stderr
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "checkpoint.pt").write_bytes(b"x" * 1000)
    result = train("--out", "other", "--resume")
    assert result.returncode == 2 and "checkpoint.pt: is no checkpoint" in result.stderr


def test_resume_without_a_checkpoint_starts_at_the_beginning(train, tmp_path):
    result = train(*FAST, "--out", "out", "--resume")
    assert result.returncode == 0 and "no checkpoint in out: starting at the beginning" in result.stderr


def test_a_finished_run_resumes_to_the_same_files(train, tmp_path):
    assert train(*FAST, "--out", "out", "--quiet").returncode == 0
    before = files(tmp_path / "out")
    assert train("--out", "out", "--resume", "--quiet").returncode == 0
    after = files(tmp_path / "out")
    assert before.keys() == after.keys()
    for name in ("metrics.json", "history.csv", "config.json", "rollouts.csv"):
        assert before[pathlib.Path(name)] == after[pathlib.Path(name)]


def test_quiet_prints_nothing(run):
    result = run("train_direct", *FAST, "--out", "out", "--quiet", env=None)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_changed_data_is_not_resumed(run, train, tmp_path):
    simulate = ("simulate", "--steps", 100, "--animation", "none", "--out", "data", "--quiet")
    assert run(*simulate).returncode == 0
    arguments = ("--data", "data/data.csv", "--iterations", 20, "--out", "out")
    assert train(*arguments, "--quiet").returncode == 0
    assert run(*simulate, "--seed", 1).returncode == 0
    result = train(*arguments, "--resume")
    assert result.returncode == 2 and "was made with other data" in result.stderr


def test_figures_are_optional(run, tmp_path):
    result = run("train_direct", *FAST, "--out", "out", env={**os.environ, "TORCHLCP_PYTHON": "/no/python"})
    assert result.returncode == 0 and (tmp_path / "out" / "metrics.json").exists()
    assert "no figures: cannot run /no/python; to draw them by a Python with matplotlib: python3 /" in result.stderr
    assert not (tmp_path / "out" / "figures").exists()


def test_an_interpreter_that_draws_nothing_is_named(run, tmp_path):
    result = run("train_direct", *FAST, "--out", "out", env={**os.environ, "TORCHLCP_PYTHON": "/bin/true"})
    assert result.returncode == 0 and (tmp_path / "out" / "metrics.json").exists()
    assert "no figures: /bin/true drew none of them" in result.stderr


def test_figures_can_be_drawn_later(run, train, tmp_path):
    no_matplotlib = tmp_path / "python"
    no_matplotlib.write_text("#!/bin/sh\nexec python3 -S \"$@\"\n")
    no_matplotlib.chmod(0o755)
    result = run("train_direct", *FAST, "--out", "out", env={**os.environ, "TORCHLCP_PYTHON": str(no_matplotlib)})
    assert result.returncode == 0 and "no figures: matplotlib is not installed" in result.stderr
    command = result.stderr.splitlines()[-1].split(" && ")[1].split()
    assert command[0] == str(no_matplotlib)
    assert subprocess.run([sys.executable, *command[1:]], cwd=tmp_path).returncode == 0
    assert (tmp_path / "out_figures" / "rollout.png").stat().st_size > 10_000
    assert train(*FAST, "--out", "out", "--quiet").returncode == 0  # the run's folder holds nothing but the run
