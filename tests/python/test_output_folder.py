"""The folder --out: programs remove none of a user's own files, and overwrite them only with --overwrite."""
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
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
    "train_tosses": ("--iterations", 2, "--simulated", 4, "--window", 4),
    "judge_gradients": ("--simulated", 4, "--windows", 1, "--points", 0, "--starts", 1, "--iterations", 1, "--batch", 1),
    "train_network": ("--samples", 20, "--starts", 2, "--finishing-iterations", 4, "--q", "affine",
                      "--unknowns", 1, "--black-box-iterations", 2),
    "train_directions": ("--samples", 20, "--iterations", 2, "--starts", 2),
    "train_markov_chain": ("--samples", 100, "--iterations", 2),
    "train_mpec": ("--samples", 10, "--starts", 1),
    "fit_linear_program": ("--samples", 50),
    "study_noise": ("--samples", 10, "--sigma", 0.1),
    "identify_shooting": (),
    "identify_mpec": (),
    "identify_tripod": ("--estimate", "mu"),
    "track_particle_filter": ("--particles", 20),
    "track_moving_horizon": ("--steps", 20),
    "compare_methods": ("--seeds", 1, "--samples", 50, "--methods", "affine", "linear_program"),
    "reproduce_table": (),
}
LONG = ("--iterations", 100_000, "--checkpoint-every", 20)
REFUSAL = "{}: --out out holds {}, which {}; choose another folder, or add --overwrite\n"
FOREIGN, CHANGED = "no run of this version wrote", "was changed after a run wrote it"


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
    assert (result.returncode, result.stderr, result.stdout) == (2, REFUSAL.format(program, "figures/mine.png", FOREIGN), "")
    assert files(tmp_path) == before


@pytest.mark.parametrize("program", [program for program in PROGRAMS if program != "reproduce_table"])
def test_a_run_lists_its_files_and_replaces_them_alone(quick, tmp_path, program):
    out = tmp_path / "out"
    (out / "figures").mkdir(parents=True)
    (out / "figures" / "mine.png").write_text("mine")
    with_figures = program in ("simulate", "train_direct")
    environment = None if with_figures else WITHOUT_FIGURES
    assert quick(program, "--overwrite", env=environment).returncode == 0
    assert present(out) - {"figures/mine.png"} <= listed(out)
    assert (len(list((out / "figures").iterdir())) > 1) == with_figures
    assert (out / "figures" / "mine.png").read_text() == "mine"
    (out / "figures" / "mine.png").unlink()
    assert quick(program, "--seed", 2, env=environment).returncode == 0
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


def test_a_run_never_removes_its_own_input(quick, run, tmp_path):
    assert quick("simulate", "--formulation", "traditional").returncode == 0
    (tmp_path / "link.csv").symlink_to(tmp_path / "out" / "data.csv")
    before = files(tmp_path)
    inputs = [("train_penalty", "--data", "out/data.csv"), ("train_penalty", "--data", "link.csv"),
              ("simulate", "--config", "out/config.json"), ("simulate", "--inputs", "out/data.csv")]
    for program, flag, file in inputs:
        for flags in ((), ("--overwrite",)):
            result = run(program, flag, file, *flags, "--out", "out", "--quiet")
            assert result.returncode == 2 and result.stderr.count("\n") == 1, result.stderr
            assert re.match(rf"{program}: {flag} \S+ is in --out out, where a run replaces files;", result.stderr)
    assert files(tmp_path) == before


def test_what_a_user_changed_is_not_removed(quick, tmp_path):
    out = tmp_path / "out"
    assert quick("train_direct").returncode == 0
    (out / "model.pt").write_text("trained further")
    before = files(out)
    for program in ("train_direct", "simulate"):
        result = quick(program)
        assert (result.returncode, result.stderr) == (2, REFUSAL.format(program, "model.pt", CHANGED))
        assert files(out) == before
    assert quick("simulate", "--overwrite").returncode == 0
    assert present(out) == {"config.json", "data.csv", "metrics.json", "model.pt"}
    assert (out / "model.pt").read_text() == "trained further"


def test_a_copied_config_makes_no_file_a_runs(quick, tmp_path):
    """Measured data beside the config.json of a run that wrote data of the same name."""
    assert quick("simulate").returncode == 0
    measured = tmp_path / "measured"
    measured.mkdir()
    shutil.copy(tmp_path / "out" / "config.json", measured)
    (measured / "data.csv").write_text("measured")
    result = quick("train_direct", out="measured")
    assert (result.returncode, (measured / "data.csv").read_text()) == (2, "measured")
    shutil.copytree(tmp_path / "out", tmp_path / "copy")
    assert quick("train_direct", out="copy").returncode == 0  # a whole copy is a run, too


def test_a_run_that_fails_at_once_leaves_the_earlier_one(quick, run, tmp_path):
    assert quick("train_direct").returncode == 0
    before = files(tmp_path)
    for flags in (("--mu", "-1"), ("--data", "none.csv"), ("--forces", "real")):
        assert run("train_direct", *flags, "--out", "out").returncode == 2
    assert files(tmp_path) == before


def fnv(content):
    """The hash of a file's content, as config.json lists it."""
    value = 0xcbf29ce484222325
    for byte in content:
        value = (value ^ byte) * 0x100000001b3 % 2**64
    return f"{value:x}"


class Disk:
    """A run that replaces another one in `out`, with one of its calls of the file system spoilt; see disk_faults.cpp.

    complete: the files of either run by its seed.
    """

    FLAGS = {**PROGRAMS, "compare_methods": ("--seeds", 1, "--samples", 50, "--methods", "affine")}
    CHANGING = {"checkpoint.pt", "history.csv", "table.json", "table.md"}  # with training, or the time that it takes

    def __init__(self, call, build, folder, program):
        self.call, self.program, self.folder, self.out = call, program, folder.resolve(), folder.resolve() / "out"
        python = folder / "python"
        figures = "for figure in motion rollout comparison; do echo a picture >$3/$figure.png; done"
        python.write_text(f"#!/bin/sh\nif [ $# = 5 ]; then echo a program >$5; else {figures}; fi\n")
        python.chmod(0o755)
        library = str(build / "lib" / "libdisk_faults.so")
        self.environment = {**os.environ, "TORCHLCP_PYTHON": str(python), "LD_PRELOAD": library}
        self.complete = {seed: self.after(seed) for seed in (1, 2)}

    def after(self, seed):
        assert self.run(seed).returncode == 0
        return {str(path): content for path, content in files(self.out).items()}

    def run(self, seed, *flags, kind="", spoilt=0):
        """kind, spoilt: which call is spoilt; without them none is."""
        fault = {"DISK_FAULT_FOLDER": str(self.out), "DISK_FAULT_KIND": kind, "DISK_FAULT_CALL": str(spoilt)}
        return self.call(self.program, *self.FLAGS[self.program], "--seed", seed, *flags, "--out", self.out, "--quiet",
                         env={**self.environment, **fault})

    def faults(self, kind, *flags, before):
        """Runs with the first call spoilt, the second and so on, until no call is left; `before` makes the folder."""
        for call in itertools.count(1):
            shutil.rmtree(self.out, ignore_errors=True)
            before()
            result = self.run(2, *flags, kind=kind, spoilt=call)
            if result.returncode == 0:
                assert call > 5  # or it would not have counted
                return
            self.check(kind)
            yield call, result

    def earlier(self):
        """Puts the earlier run into the folder."""
        for name, content in self.complete[1].items():
            (self.out / name).parent.mkdir(parents=True, exist_ok=True)
            (self.out / name).write_bytes(content)

    def check(self, kind):
        """What output_folder.h says of every moment."""
        found = {str(path): content for path, content in files(self.out).items()}
        found.pop("notes.txt", None)  # the user's
        config = json.loads(found.pop("config.json"))
        of_run = self.complete[config["seed"]]
        for name, content in list(found.items()):
            if re.search(r"(^|/)\.torchlcp-\d+-\d+(/|$)", name):
                assert kind == "kill", name
                del found[name]
            elif content != b"mine":
                assert fnv(content) in config["files"][name]
                assert content == of_run[name] or name in self.CHANGING
            else:  # the user's, too
                assert fnv(content) not in config["files"].get(name, [])
        missing = of_run.keys() - found.keys() - {"config.json"}
        if "metrics.json" in found:
            assert all(config["seed"] == 2 and name.startswith("figures/") for name in missing)
        if kind == "full":
            assert found if config["seed"] == 2 else not missing


@pytest.fixture(params=["simulate", pytest.param("train_direct", marks=pytest.mark.long)])
def disk(run, build, tmp_path, request):
    return Disk(run, build, tmp_path, request.param)


@pytest.mark.parametrize("kind", ["full", "names"])
def test_the_disk_may_fail_at_any_call(disk, kind):
    for call, result in disk.faults(kind, before=disk.earlier):
        assert (result.returncode, result.stderr.count("\n"), result.stdout) == (2, 1, ""), (call, result.stderr)
        assert re.match(r"\w+: cannot (write|create|remove) ", result.stderr)


# The first file of compare_methods is in a folder inside.
@pytest.mark.parametrize("disk", ["compare_methods"], indirect=True)
def test_a_folder_inside_may_not_fit_on_the_disk(disk):
    test_the_disk_may_fail_at_any_call(disk, "full")


def test_a_run_may_be_killed_at_any_call(disk):
    for call, result in disk.faults("kill", before=disk.earlier):
        assert (result.returncode, result.stderr) == (99, "")
        if call % 3 == 0:
            assert disk.after(2) == disk.complete[2], call  # the next run removes what is left


def test_a_run_that_is_killed_at_any_call_leaves_a_users_files(disk):
    def before():
        disk.earlier()
        for name in changed:
            (disk.out / name).write_text("mine")

    changed = {"simulate": ["data.csv", "figures/motion.png"], "train_direct": ["model.pt", "figures/rollout.png"]}
    changed = [*changed[disk.program], "notes.txt"]
    for _ in disk.faults("kill", "--overwrite", before=before):
        assert (disk.out / "notes.txt").read_text() == "mine"
        assert all((disk.out / name).exists() for name in changed)


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
    config = {"torchlcp_run": 2, "program": "compare_methods", "files": {"data/0_direct.csv": [], "runs/slack_random_0/": []}}
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
    assert (result.returncode, result.stderr) == (
        2, "simulate: cannot write out/figures/motion.png: a folder on the way is a symbolic link or a file\n")
    assert (pictures / "motion.png").read_text() == "precious"
    assert present(pictures) == {"motion.png"}


def test_a_list_of_files_that_leads_outside_is_not_believed(quick, tmp_path):
    (tmp_path / "precious").write_text("mine")
    assert quick("simulate").returncode == 0
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    for name in ("../precious", str(tmp_path / "precious"), "figures/../../precious"):
        config["files"][name] = [fnv(b"mine")]
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


def test_only_a_figure_that_is_drawn_replaces_a_users(quick, tmp_path):
    figure = tmp_path / "out" / "figures" / "motion.png"
    figure.parent.mkdir(parents=True)
    figure.write_text("mine")
    for python in ("", "/no/python", "/bin/false"):
        assert quick("simulate", "--overwrite", env={**os.environ, "TORCHLCP_PYTHON": python}).returncode == 0
        assert figure.read_text() == "mine"
    assert quick("simulate", "--overwrite", env=None).returncode == 0
    assert figure.stat().st_size > 10_000
    assert present(tmp_path / "out") == listed(tmp_path / "out")


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


def test_a_figure_that_does_not_fit_on_the_disk_is_an_error_of_one_line(run, tmp_path):
    """No file may be larger than the limit, which is below the size of one figure after another."""
    simulate = ("simulate", "--steps", 5, "--quiet")
    assert run(*simulate, "--out", "whole", env=None).returncode == 0
    for name in ("motion.png", "motion.gif"):
        size = (tmp_path / "whole" / "figures" / name).stat().st_size
        limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size - 1, size - 1))}
        result = run(*simulate, "--out", name, env=None, **limit)
        expected = f"simulate: cannot write {name}/figures/{name}: File too large\n"
        assert (result.returncode, result.stderr, result.stdout) == (2, expected, "")
        assert "metrics.json" in present(tmp_path / name) <= listed(tmp_path / name)


def test_a_film_that_cannot_be_encoded_is_an_error_of_one_line(run, tmp_path):
    (tmp_path / "ffmpeg").write_text("#!/bin/sh\ncat >/dev/null\nexit 7\n")
    (tmp_path / "ffmpeg").chmod(0o755)
    result = run("simulate", "--steps", 5, "--animation", "mp4", "--out", "out", "--quiet",
                 env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    expected = "simulate: cannot write out/figures/motion.mp4: ffmpeg ended with exit status 7\n"
    assert (result.returncode, result.stderr) == (2, expected)


@pytest.mark.parametrize("flags", [("--help",), ("--steps", 5, "--animation", "none")])
def test_what_cannot_be_printed_is_an_error_of_one_line(build, tmp_path, flags):
    with open("/dev/full", "w") as full:
        process = start(build, tmp_path, "simulate", *flags, stdout=full, stderr=subprocess.PIPE, text=True)
        errors = process.communicate()[1]
    assert (process.returncode, errors) == (2, "simulate: cannot write to the standard output\n")


def test_too_little_memory_is_an_error_of_one_line(run):
    memory = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (2**32, 2**32))}
    for steps, trajectories in ((10**9, 10**9), (10**9, 10**3), (10**9, 1)):
        result = run("simulate", "--steps", steps, "--trajectories", trajectories, "--out", "out", "--quiet", **memory)
        assert result.returncode == 1 and result.stderr.count("\n") == 1
        assert re.fullmatch(r"simulate: there is not enough memory( for a tensor of \d+ bytes)?\n", result.stderr), result.stderr


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


@pytest.fixture
def sleepers(build, tmp_path):
    """A build whose compare_methods and reproduce_table start programs that sleep."""
    (tmp_path / "bin").mkdir()
    for program in PROGRAMS:
        path = tmp_path / "bin" / program
        if program in ("compare_methods", "reproduce_table"):
            shutil.copy(build / "bin" / program, path)
        else:
            path.write_text("#!/bin/sh\nexec sleep 1000\n")
            path.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("program, flags", [("compare_methods", ("--methods", "direct")), ("reproduce_table", ())])
def test_a_programs_children_end_with_it(sleepers, program, flags, how):
    process = start(sleepers, sleepers, program, *flags, "--out", "out", "--quiet")
    wait_until(lambda: children(process.pid), process)
    (child,) = children(process.pid)
    process.send_signal(how)
    try:
        process.wait(timeout=900)
        wait_until(lambda: not runs_on(child))
    finally:
        for one in (process.pid, child):
            if runs_on(one):
                os.kill(one, signal.SIGKILL)


def test_a_missing_program_is_named(sleepers):
    (sleepers / "bin" / "track_particle_filter").unlink()
    process = start(sleepers, sleepers, "reproduce_table", "--out", "out", stderr=subprocess.PIPE, text=True)
    errors = process.communicate()[1]
    path = sleepers / "bin" / "track_particle_filter"
    assert (process.returncode, errors) == (2, f"reproduce_table: {path} is missing, which this program runs\n")
    assert not (sleepers / "out").exists()


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
    assert metrics["identifiable_parameters"] == 0 and len(metrics["unidentifiable_directions"]) == 13


def test_help_says_what_loading_a_model_means(run):
    for program in ("train_direct", "train_slack", "train_penalty", "train_structured", "train_in_the_loop",
                    "train_bilevel", "train_network"):
        text = run(program, "--help").stdout
        assert "model.pt is a program" in text and "load only what you trust" in text
