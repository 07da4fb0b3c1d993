"""The folder --out: programs remove none of a user's own files, and overwrite them only with --overwrite."""
import json
import os
import pathlib
import resource
import signal
import typing

import pytest
import torch
from runs import WITHOUT_FIGURES, files, iteration, start, wait_until

# Each program with flags for a fast run.
PROGRAMS = {
    "simulate": ("--steps", 5, "--animation", "none"),
    "train_direct": ("--samples", 100, "--iterations", 2),
    "train_slack": ("--samples", 100, "--iterations", 2),
    "train_penalty": ("--samples", 100, "--iterations", 2),
    "train_structured": ("--samples", 100, "--iterations", 2),
    "train_in_the_loop": ("--samples", 100, "--iterations", 2),
    "train_bilevel": ("--samples", 100, "--iterations", 2),
    "train_compliant": ("--iterations", 2, "--trajectories", 5),
    "fit_linear_program": ("--samples", 50),
    "study_noise": ("--samples", 10, "--sigma", 0.1),
    "identify_shooting": (),
    "identify_mpec": (),
    "identify_tripod": ("--estimate", "mu"),
    "track_particle_filter": ("--particles", 20),
    "compare_methods": ("--seeds", 1, "--samples", 50, "--methods", "affine", "linear_program"),
    "reproduce_table": (),
}
LONG = ("--iterations", 100_000, "--checkpoint-every", 20)
REFUSAL = "{}: --out out holds figures/mine.png, which no run of this version wrote; choose another folder, or add --overwrite\n"


@pytest.fixture
def quick(run, build):
    """Runs a program without its figures; skips those that are not built."""

    def call(program, *flags, out="out", **keywords):
        if not (build / "bin" / program).exists():
            pytest.skip(f"{program} is not built")
        keywords = {"env": WITHOUT_FIGURES, **keywords}
        return run(program, *PROGRAMS[program], *flags, "--out", out, "--quiet", **keywords)

    return call


def listed(out):
    """The files of the runs in this folder, by their config.json."""
    names = {"config.json"}
    for name in json.loads((out / "config.json").read_text())["files"]:
        names |= {name + inner for inner in listed(out / name)} if name.endswith("/") else {name}
    return names


def present(out):
    return {str(path) for path in files(out)}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_folder_with_a_users_files_is_left_as_it_is(quick, tmp_path, program):
    (tmp_path / "out" / "figures").mkdir(parents=True)
    (tmp_path / "out" / "figures" / "mine.png").write_text("mine")
    before = files(tmp_path)
    result = quick(program)
    assert (result.returncode, result.stderr, result.stdout) == (2, REFUSAL.format(program), "")
    assert files(tmp_path) == before


@pytest.mark.parametrize("program", [program for program in PROGRAMS if program != "reproduce_table"])
def test_a_run_lists_its_files_and_replaces_them_alone(quick, tmp_path, program):
    out = tmp_path / "out"
    (out / "figures").mkdir(parents=True)
    (out / "figures" / "mine.png").write_text("mine")
    assert quick(program, "--overwrite").returncode == 0
    assert present(out) - {"figures/mine.png"} <= listed(out)
    assert (out / "figures" / "mine.png").read_text() == "mine"
    (out / "figures" / "mine.png").unlink()
    (out / "figures").rmdir()
    assert quick(program, "--seed", 2).returncode == 0
    assert present(out) <= listed(out) and json.loads((out / "config.json").read_text())["seed"] == 2


def test_a_run_of_another_program_leaves_nothing_behind(quick, tmp_path):
    assert quick("train_direct").returncode == 0
    assert quick("simulate").returncode == 0
    assert present(tmp_path / "out") == {"config.json", "data.csv", "metrics.json"}


def test_a_file_that_is_added_to_a_run_is_a_users(quick, tmp_path):
    assert quick("simulate").returncode == 0
    (tmp_path / "out" / "notes.txt").write_text("mine")
    before = files(tmp_path)
    result = quick("simulate")
    assert result.returncode == 2 and "holds notes.txt, which no run" in result.stderr and files(tmp_path) == before


def test_a_run_that_fails_at_once_leaves_the_earlier_one(quick, run, tmp_path):
    assert quick("train_direct").returncode == 0
    before = files(tmp_path)
    for flags in (("--mu", "-1"), ("--data", "none.csv"), ("--forces", "real")):
        assert run("train_direct", *flags, "--out", "out").returncode == 2
    assert files(tmp_path) == before


def test_the_folder_is_the_state_of_one_run_at_every_moment(quick, build, tmp_path):
    """The new run is killed as soon as its first file appears; the folder never holds results of two."""
    out = tmp_path / "out"
    assert quick("train_direct").returncode == 0
    assert {"metrics.json", "model.pt", "rollouts.csv"} < present(out)
    process = start(build, tmp_path, "train_direct", *LONG, "--seed", 7, "--out", "out", "--quiet")
    old = (out / "checkpoint.pt").stat().st_ino
    wait_until(lambda: iteration(out) >= 0 and (out / "checkpoint.pt").stat().st_ino != old, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert present(out) <= {"config.json", "checkpoint.pt", "history.csv"} | {
        name for name in present(out) if name.startswith(".torchlcp-")}
    assert json.loads((out / "config.json").read_text())["seed"] == 7
    assert quick("train_direct").returncode == 0  # which also removes what the killed run left unfinished
    assert present(out) <= listed(out)


def test_an_earlier_run_goes_before_the_first_checkpoint_comes(quick, run, tmp_path):
    """Where the first step of the new run fails, its checkpoint stands alone."""
    assert quick("train_direct", "--seed", 5).returncode == 0
    result = run("train_direct", "--learning-rate", 1e300, "--out", "out", "--quiet")
    assert result.returncode == 1 and "the loss is no finite number" in result.stderr
    assert present(tmp_path / "out") <= {"config.json", "checkpoint.pt", "history.csv"}


def test_a_second_run_in_the_folder_stops(quick, build, tmp_path):
    process = start(build, tmp_path, "train_direct", *LONG, "--out", "out", "--quiet")
    wait_until(lambda: iteration(tmp_path / "out") > 0, process)
    for flags in ((), ("--overwrite",)):
        result = quick("simulate", *flags)
        assert (result.returncode, result.stderr) == (2, "simulate: --out out is in use by another run\n")
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert quick("simulate").returncode == 0  # the lock ends with its process


def test_a_run_inside_that_is_in_use_stops_the_outer_one(quick, build, tmp_path):
    out = tmp_path / "out"
    inner = out / "runs" / "slack_random_0"
    inner.mkdir(parents=True)
    config = {"torchlcp_run": 1, "program": "compare_methods", "files": ["data/0_direct.csv", "runs/slack_random_0/"]}
    (out / "config.json").write_text(json.dumps(config))
    process = start(build, tmp_path, "train_slack", *LONG, "--out", inner, "--quiet")
    wait_until(lambda: iteration(inner) > 0, process)
    result = quick("compare_methods", "--seed", 7)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "compare_methods: --out out/runs/slack_random_0/ is in use by another run\n"
    assert process.poll() is None and iteration(inner) > 0
    assert json.loads((out / "config.json").read_text()) == config
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_nothing_is_written_through_a_link(quick, tmp_path):
    victim, pictures = tmp_path / "victim", tmp_path / "pictures"
    victim.write_text("precious")
    pictures.mkdir()
    (pictures / "motion.png").write_text("precious")
    (tmp_path / "out").mkdir()
    for name in ("config.json", "config.json.tmp", "data.csv", "data.csv.tmp", "metrics.json.tmp"):
        (tmp_path / "out" / name).symlink_to(victim)
    assert quick("simulate").returncode == 2
    assert quick("simulate", "--overwrite").returncode == 0
    assert victim.read_text() == "precious" and not (tmp_path / "out" / "data.csv").is_symlink()
    (tmp_path / "out" / "figures").symlink_to(pictures)
    result = quick("simulate", "--overwrite", env=None)
    assert result.returncode in (0, 2) and (pictures / "motion.png").read_text() == "precious"
    assert present(pictures) == {"motion.png"}


def test_a_list_of_files_that_leads_outside_is_not_believed(quick, tmp_path):
    (tmp_path / "precious").write_text("mine")
    assert quick("simulate").returncode == 0
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    for name in ("../precious", str(tmp_path / "precious"), "figures/../../precious"):
        config["files"] = ["data.csv", "metrics.json", name]
        (tmp_path / "out" / "config.json").write_text(json.dumps(config))
        assert quick("simulate").returncode == 2
        assert quick("simulate", "--overwrite").returncode == 0
        assert (tmp_path / "precious").read_text() == "mine"


def test_a_figure_that_cannot_be_drawn_leaves_the_old_one(run, tmp_path):
    arguments = ("simulate", *PROGRAMS["simulate"], "--out", "out", "--quiet")
    assert run(*arguments, env=None).returncode == 0
    figure = tmp_path / "out" / "figures" / "motion.png"
    before = figure.read_bytes()
    for python in ("/no/python", "/bin/false"):
        assert run(*arguments, env={**os.environ, "TORCHLCP_PYTHON": python}).returncode == 0
        assert figure.read_bytes() == before


class WritesWhenLoaded(torch.nn.Module):
    """A module whose __setstate__, which TorchScript calls as it reads the file, writes to a file."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def forward(self, x):
        return x

    @torch.jit.export
    def __getstate__(self) -> typing.Tuple[str, bool]:
        return (self.path, self.training)

    @torch.jit.export
    def __setstate__(self, state: typing.Tuple[str, bool]) -> None:
        self.path = state[0]
        self.training = state[1]
        torch.save(torch.ones(1), state[0])


def test_reading_a_checkpoint_runs_no_code(run, tmp_path):
    written = tmp_path / "written"
    (tmp_path / "out").mkdir()
    torch.jit.script(WritesWhenLoaded(str(written))).save(str(tmp_path / "out" / "checkpoint.pt"))
    torch.jit.load(tmp_path / "out" / "checkpoint.pt")
    assert written.exists()  # this is what it means to load a module
    written.unlink()
    for program in ("train_direct", "train_compliant"):
        result = run(program, "--out", "out", "--resume", "--overwrite")
        assert result.returncode == 2 and not written.exists()
        assert "checkpoint.pt: is a TorchScript archive, as earlier versions wrote checkpoints" in result.stderr
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("program", ["simulate", "train_direct", "fit_linear_program"])
def test_a_disk_that_is_full_at_any_file_is_an_error_of_one_line(quick, build, tmp_path, program):
    """No file may be larger than the limit, which is below the size of one file after another."""
    assert quick(program, out="whole", env=None).returncode == 0
    sizes = {path.stat().st_size for path in (tmp_path / "whole").rglob("*") if path.is_file()}
    for k, size in enumerate(sorted(sizes)):
        limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size - 1, size - 1))}
        result = quick(program, out=f"limited{k}", env=None, **limit)
        assert (result.returncode, result.stderr.count("\n"), result.stdout) == (2, 1, ""), (size, result.stderr)
        assert result.stderr.startswith(f"{program}: cannot write limited{k}/")
        assert not [name for name in present(tmp_path / f"limited{k}") if ".torchlcp-" in name]


def children(process):
    """The processes that it started."""
    found = []
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == process and fields[0] != "Z":
            found.append(int(status.parent.name))
    return found


def runs_on(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("program, flags", [("compare_methods", ("--seeds", 9)), ("reproduce_table", ())])
def test_a_programs_children_end_with_it(build, tmp_path, program, flags, how):
    process = start(build, tmp_path, program, *flags, "--out", "out", "--quiet")
    wait_until(lambda: children(process.pid), process)
    (child,) = children(process.pid)
    process.send_signal(how)
    process.wait()
    wait_until(lambda: not runs_on(child))


def test_the_filter_takes_its_particles_with_a_file(run, quick, tmp_path):
    assert quick("identify_shooting").returncode == 0
    result = run("track_particle_filter", "--data", "out/fit.csv", "--particles", 50, "--noise", 0.005, "--out",
                 "filter", "--quiet")
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads((tmp_path / "filter" / "metrics.json").read_text())["distinct_particles"][0] == 50
    for flag in ("--steps", "--mu", "--dt"):
        result = run("track_particle_filter", "--data", "out/fit.csv", "--noise", 0.005, flag, 5, "--out", "other")
        assert result.returncode == 2 and f"{flag} has no meaning with --data" in result.stderr
    result = run("identify_shooting", "--data", "out/fit.csv", "--particles", 2, "--out", "other")
    assert result.returncode == 2 and "--particles has no meaning with --data" in result.stderr


def test_a_model_that_solves_no_step_it_learned_from_is_reported(run, tmp_path):
    result = run("train_in_the_loop", "--samples", 1, "--learning-rate", 1e6, "--parameters", "rows", "--iterations", 3,
                 "--out", "out", "--quiet")
    assert (result.returncode, result.stderr) == (0, "")
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics["identifiable_parameters"] == 0 and len(metrics["unidentifiable_directions"]) == 14


def test_help_says_what_loading_a_model_means(run):
    for program in ("train_direct", "train_slack", "train_penalty", "train_structured", "train_in_the_loop",
                    "train_bilevel"):
        text = run(program, "--help").stdout
        assert "model.pt is a program" in text and "load only what you trust" in text
