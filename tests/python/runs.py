"""What the runs of programs left behind."""
import csv
import os
import signal
import subprocess
import time

import numpy as np

WITHOUT_FIGURES = {**os.environ, "TORCHLCP_PYTHON": "/no/python"}


def read_csv(path):
    with open(path, newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_a_killed_run_resumes(run, build, folder, program, flags, *resuming):
    """Bit for bit: killed after its first checkpoint, and resumed with the flags `resuming`."""
    flags = [str(flag) for flag in (*flags, "--quiet")]
    assert run(program, *flags, "--out", "whole", env=WITHOUT_FIGURES).returncode == 0
    process = subprocess.Popen([build / "bin" / program, *flags, "--out", "out"], cwd=folder, env=WITHOUT_FIGURES)
    while not (folder / "out" / "history.csv").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (folder / "out" / "metrics.json").exists()
    assert run(program, "--out", "out", "--resume", *resuming, "--quiet", env=WITHOUT_FIGURES).returncode == 0
    whole, resumed = files(folder / "whole"), files(folder / "out")
    assert whole.keys() == resumed.keys()
    for path in whole:
        if path.suffix in (".json", ".csv"):
            assert whole[path] == resumed[path], path
