"""python -m torchlcp"""

import os
import platform
import subprocess
import sys

import pytest
import torch

import torchlcp
from torchlcp import __main__ as program


def run(*arguments, **environment):
    command = [sys.executable, "-m", "torchlcp", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, env={**os.environ, **environment})


def test_says_what_is_installed_and_that_it_works():
    result = run(TORCHLCP_ISA="portable", OMP_NUM_THREADS="1")
    assert result.returncode == 0 and not result.stderr
    installed, library, instruction_set, threads, *parts = result.stdout.splitlines()
    assert installed == f"torchlcp {torchlcp.__version__}, torch {torch.__version__}, Python {platform.python_version()}"
    assert library == f"library: {program.LIBRARY}" and program.LIBRARY.exists()
    assert (instruction_set, threads) == ("instruction set: portable", "threads: 1")
    assert len(parts) == len(program.PARTS) and all(": ok (" in part for part in parts)


def test_says_only_what_is_installed():
    result = run("--no-test")
    assert result.returncode == 0 and len(result.stdout.splitlines()) == 4
    assert "instruction set: " + torch.ops.lcp._instruction_set() in result.stdout


@pytest.mark.parametrize("part", program.PARTS)
def test_each_part_fails_where_the_library_is_wrong(monkeypatch, capsys, part):
    """A solve, and a rollout, whose results are not what they were."""

    def wrong(function):
        return lambda *arguments, **options: [2 * x if x.is_floating_point() else x for x in function(*arguments, **options)]

    for name in ("solve", "solve_friction", "_simulate_sliding_block"):
        monkeypatch.setattr(torch.ops.lcp, name, wrong(getattr(torch.ops.lcp, name)))
    if part is program.the_gradient_of_a_solution:  # twice the solution has twice the gradient
        detached = lambda M, q, **options: [(x * M.sum().detach() if x.is_floating_point() else x) for x in exact(M, q)]
        monkeypatch.undo()
        exact = torch.ops.lcp.solve
        monkeypatch.setattr(torch.ops.lcp, "solve", detached)
    assert not program.passes(part)
    assert capsys.readouterr().out.startswith(part.__name__.replace("_", " ") + ": failed: ")


def test_the_exit_status_says_that_a_part_failed(monkeypatch, capsys):
    def broken():
        raise RuntimeError("no\nway")

    monkeypatch.setattr(sys, "argv", ["torchlcp"])
    monkeypatch.setattr(program, "PARTS", (broken, *program.PARTS))
    assert program.main() == 1
    printed = capsys.readouterr().out
    assert "broken: failed: no way (" in printed and printed.count(": ok (") == len(program.PARTS) - 1
