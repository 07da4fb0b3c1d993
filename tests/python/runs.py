"""Starts programs, and reads the files that they write."""
import csv
import json
import os
import signal
import subprocess
import time

import numpy as np

# script/test --all sets this: learning is then tried with more seeds and variants.
LONG_TESTS = bool(os.environ.get("TORCHLCP_LONG_TESTS"))
WITHOUT_FIGURES = {**os.environ, "TORCHLCP_PYTHON": ""}


def variants(*values):
    """The parameters of a test: the first of these, or all of them in the long tests."""
    return values if LONG_TESTS else values[:1]


def read_csv(path):
    with open(path, newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def write_csv(path, **columns):
    rows = zip(*(column.tolist() for column in columns.values()))
    path.write_text(",".join(columns) + "\n" + "".join(",".join(map(repr, row)) + "\n" for row in rows))


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def wait_until(condition, process=None):
    """Waits until the condition holds, while the process runs; fails after a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert process is None or process.poll() is None, "the process has ended"
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


def iteration(out):
    """The iteration of the checkpoint in this folder; -1 where there is none."""
    path = out / "checkpoint.pt"
    return json.loads(metadata(path)["state"])["iteration"] if path.exists() else -1


def metadata(path):
    """The metadata of a file in the safetensors format."""
    content = path.read_bytes()
    return json.loads(content[8:8 + int.from_bytes(content[:8], "little")])["__metadata__"]


def default_signals():
    """Sets the default signal handlers, as under a terminal; this process may ignore some signals."""
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_DFL)


def start(build, folder, program, *flags, **keywords):
    """Starts a program without figures, and returns its process."""
    command = [build / "bin" / program, *map(str, flags)]
    keywords = {"env": WITHOUT_FIGURES, "preexec_fn": default_signals, **keywords}
    return subprocess.Popen(command, cwd=folder, **keywords)


def killed(build, folder, program, *flags, out="out", how=signal.SIGKILL, after=0):
    """The exit status of a run that got a signal once its checkpoint is beyond that iteration."""
    process = start(build, folder, program, *flags, "--out", out, "--quiet")
    wait_until(lambda: iteration(folder / out) > after, process)
    process.send_signal(how)
    return process.wait()


def timeless(path, content):
    """What a .json or .csv file holds, but for the time that the run took and the hash of the file that has it."""
    if path.suffix != ".json":
        return content
    found = json.loads(content)
    for entry in (found, *found.get("layers", ())):
        for name in ("training_seconds", "interval_seconds", "seconds_per_gradient"):
            entry.pop(name, None)
    if "files" in found and "metrics.json" in found["files"]:
        del found["files"]["metrics.json"]
    return found


def check_a_killed_run_resumes(run, build, folder, program, flags, *resuming):
    """Bit for bit, but for the time that it took: killed after its first checkpoint, and resumed with the flags `resuming`."""
    flags = [str(flag) for flag in (*flags, "--quiet")]
    assert run(program, *flags, "--out", "whole").returncode == 0
    assert killed(build, folder, program, *flags[:-1]) == -signal.SIGKILL
    assert not (folder / "out" / "metrics.json").exists()
    assert run(program, "--out", "out", "--resume", *resuming, "--quiet").returncode == 0
    whole, resumed = files(folder / "whole"), files(folder / "out")
    assert whole.keys() == resumed.keys()
    for path in whole:
        if path.suffix in (".json", ".csv"):
            assert timeless(path, whole[path]) == timeless(path, resumed[path]), path
