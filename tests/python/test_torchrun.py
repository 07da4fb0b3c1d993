"""Programs that torchrun starts in several processes, as their user runs them.

With TORCHLCP_KILLS=10 in the environment also with eight processes, and each program is killed ten times: that takes ten
minutes instead of two.
"""
import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
from runs import WITHOUT_FIGURES, default_signals, files, iteration, timeless, wait_until

KILLS = int(os.environ.get("TORCHLCP_KILLS", 2))
THOROUGH = KILLS > 2
COUNTS = (2, 3, 8) if THOROUGH else (2, 3)
# Programs with flags by which there is something to divide.
DIVIDED = {
    "train_network": ("--samples", 60, "--starts", 8, "--unknowns", 2, "--black-box-iterations", 30),
    "train_bilevel": ("--samples", 9000, "--iterations", 60, "--checkpoint-every", 2),
    "train_in_the_loop": ("--start", "random", "--starts", 64, "--batch-size", 200, "--iterations", 20, "--checkpoint-every", 2),
    "train_direct": ("--samples", 40_000, "--batch-size", 36_000, "--iterations", 10),
    "train_penalty": ("--samples", 40_000, "--iterations", 5),
    "train_compliant": ("--trajectories", 60, "--steps", 20, "--iterations", 10),
    "train_mpec": ("--samples", 10, "--starts", 2),
    "identify_tripod": ("--estimate", "mu,q0", "--steps", 10, "--monte-carlo", 40),
    "identify_shooting": ("--estimate", "mu,q0", "--steps", 30, "--monte-carlo", 1000),
    "study_noise": ("--samples", 2000),
    "judge_gradients": ("--simulated", 6, "--window", 5, "--points", 0, "--windows", 2, "--starts", 6, "--iterations", 1,
                        "--batch", 1),
    "train_tosses": ("--simulated", 36, "--iterations", 8, "--checkpoint-every", 1, "--window", 20, "--substeps", 1),
}
KILLED = ("train_bilevel", "train_network", "study_noise", "train_tosses")
if THOROUGH:
    KILLED += ("judge_gradients", "identify_tripod", "train_penalty")
# Files that have times: those of compare_methods, judge_gradients and train_network.
TIMES = ("times.json", "layers.csv", "checkpoint.pt")


@pytest.fixture
def torchrun(build, tmp_path):
    """Starts that many processes of a program, and returns the process of torchrun, whose stderr is a pipe."""
    started = []

    def call(count, program, *flags, of_torchrun=("--standalone",), out="out"):
        command = [sys.executable, "-m", "torch.distributed.run", "--no-python", *of_torchrun, "--nproc-per-node", count,
                   "--", build / "bin" / program, *flags, "--out", out]
        started.append(subprocess.Popen(
            list(map(str, command)), cwd=tmp_path, env=WITHOUT_FIGURES, preexec_fn=default_signals,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield call
    for one in started:
        one.kill()


def ended(process):
    """The exit status, what the program printed, and the lines that it, but not torchrun, wrote to stderr."""
    printed, errors = process.communicate(timeout=900)
    foreign = ("W", "E", "Traceback", " ", "torch.", "===", "---", "***", "/", "Failures:", "Root Cause", "[", "Setting OMP")
    lines = [line for line in errors.splitlines() if line and not line.startswith(foreign)]
    return process.returncode, printed, lines


def workers(process):
    """The numbers of the processes that torchrun has started and that are the program already."""
    proc = pathlib.Path("/proc")
    found = []
    with contextlib.suppress(OSError):  # where one ends meanwhile
        for child in (proc / str(process.pid) / "task" / str(process.pid) / "children").read_text().split():
            if "python" not in (proc / child / "comm").read_text():
                found.append(int(child))
    return found


def catches_interrupts(number):
    """Whether the process of that number has a handler of SIGINT, as a program has while it learns or computes."""
    with contextlib.suppress(OSError):  # it has ended meanwhile
        for line in pathlib.Path(f"/proc/{number}/status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGINT - 1) & 1)
    return False


def results(folder):
    """The files of a run, without the times that it took."""
    found = {path: timeless(path, content) for path, content in files(folder).items()}
    for path in list(found):
        if path.name in TIMES:
            del found[path]
        elif path.name == "config.json":
            for name in TIMES:
                found[path]["files"].pop(name, None)
    return found


@pytest.fixture(scope="module")
def alone(build, tmp_path_factory):
    """The results of a program in one process."""
    known = {}

    def call(program):
        if program not in known:
            folder = tmp_path_factory.mktemp(program)
            command = [build / "bin" / program, *map(str, DIVIDED[program]), "--out", "out", "--quiet"]
            assert subprocess.run(command, cwd=folder, env=WITHOUT_FIGURES).returncode == 0
            known[program] = results(folder / "out")
        return known[program]

    return call


@pytest.mark.parametrize("program", DIVIDED)
def test_the_results_do_not_depend_on_the_number_of_processes(torchrun, build, alone, tmp_path, program):
    if not (build / "bin" / program).exists():
        pytest.skip(f"{program} is not built")
    for count in COUNTS if program in ("train_network", "train_tosses") or THOROUGH else COUNTS[1:]:
        assert ended(torchrun(count, program, *DIVIDED[program], "--quiet", out=f"out{count}")) == (0, "", [])
        assert results(tmp_path / f"out{count}") == alone(program)


def test_several_nodes_end_with_the_same_bits(torchrun, alone, tmp_path):
    with socket.create_server(("localhost", 0)) as server:
        endpoint = f"localhost:{server.getsockname()[1]}"
    nodes = ("--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", endpoint, "--rdzv-id", "test")
    both = [torchrun(1, "train_bilevel", *DIVIDED["train_bilevel"], "--quiet", of_torchrun=nodes) for _ in range(2)]
    assert [ended(one) for one in both] == [(0, "", [])] * 2
    assert results(tmp_path / "out") == alone("train_bilevel")


def test_the_first_process_reports_processes_and_threads(torchrun):
    status, printed, lines = ended(torchrun(2, "study_noise", "--samples", 20, "--threads", 2))
    assert status == 0 and printed.count("metrics.json") == 1
    assert lines[0] == "2 processes with 2 threads each, by --threads; OMP_NUM_THREADS is 1"


def test_one_process_does_what_is_not_divided(torchrun):
    status, printed, lines = ended(torchrun(2, "simulate", "--steps", 5))
    assert status == 0 and printed.count("metrics.json") == 1
    assert lines == ["2 processes, of which the first does all: this program does not divide its work"]


@pytest.mark.parametrize("program", ["train_bilevel", "simulate"])
def test_a_mistake_is_reported_once(torchrun, tmp_path, program):
    status, printed, lines = ended(torchrun(3, program, "--mu", -1))
    assert status != 0 and printed == "" and not (tmp_path / "out").exists()
    assert lines == [f"{program}: --mu must be finite and >= 0; got -1.0"]


def test_an_error_of_one_process_ends_all(torchrun, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")  # which the first process alone sees
    status, _, lines = ended(torchrun(3, "train_bilevel"))
    assert status != 0 and len(lines) == 1 and "holds notes.txt" in lines[0]


@pytest.mark.parametrize("program", KILLED)
def test_killed_processes_lose_nothing(torchrun, alone, tmp_path, program):
    choose = random.Random(program)
    count = 3
    process = torchrun(count, program, *DIVIDED[program], "--quiet")
    for _ in range(KILLS):
        wait_until(lambda: len(workers(process)) == count or process.poll() is not None)
        time.sleep(choose.uniform(0, 2))
        if found := workers(process):
            with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(choose.choice(found), signal.SIGKILL)
        process.wait(60)  # the others end, too
        count = choose.choice(COUNTS)
        process = torchrun(count, program, *DIVIDED[program], "--resume", "--quiet")
    assert ended(process)[0] == 0
    assert results(tmp_path / "out") == alone(program)


def test_torchrun_restarts_a_killed_process(torchrun, alone, tmp_path):
    process = torchrun(2, "train_bilevel", *DIVIDED["train_bilevel"], "--resume",
                       of_torchrun=("--standalone", "--max-restarts", 2))
    wait_until(lambda: iteration(tmp_path / "out") > 0, process)
    os.kill(workers(process)[-1], signal.SIGKILL)
    status, _, lines = ended(process)
    # torchrun may end the other process before it can say why it would have ended.
    assert status == 0 and any(line.startswith("continuing at iteration") for line in lines)
    assert results(tmp_path / "out") == alone("train_bilevel")


@pytest.mark.parametrize("program", ["train_bilevel", "study_noise"])
def test_a_signal_leaves_a_checkpoint_that_any_number_of_processes_continues(torchrun, run, alone, tmp_path, program):
    process = torchrun(3, program, *DIVIDED[program])
    wait_until(lambda: sum(map(catches_interrupts, workers(process))) == 3, process)
    if program == "train_bilevel":
        wait_until((tmp_path / "out" / "checkpoint.pt").exists, process)
    process.send_signal(signal.SIGINT)
    ended(process)
    assert not (tmp_path / "out" / "metrics.json").exists()
    shutil.copytree(tmp_path / "out", tmp_path / "copy")
    flags = (*DIVIDED[program], "--resume", "--quiet")
    assert run(program, *flags, "--out", "out").returncode == 0
    assert ended(torchrun(2, program, *flags, out="copy"))[0] == 0
    assert results(tmp_path / "out") == results(tmp_path / "copy") == alone(program)
