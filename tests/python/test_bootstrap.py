"""script/bootstrap, on a machine of stubs: what it installs, and that it changes no .venv that it did not make."""
import os
import pathlib
import shutil
import subprocess

import pytest
from runs import wait_until

ROOT = pathlib.Path(__file__).parents[2]
STUBS = {
    "c++": "exit 0",
    "ninja": "exit 0",
    "git": "exit 0",
    "clang++": "exit 0",
    "cmake": "echo cmake version 3.25.1",
    "sudo": '"$@"',
    "env": 'shift; "$@"',
    "dpkg-query": 'echo "${INSTALLED-installed}"',
    "apt-get": 'echo "$@" >>apt',
    # An environment's Python, and the one that makes environments.
    "python3": 'case $* in *venv\\ *venv) mkdir -p "$3/bin"; cp "$0" "$3/bin/python";; "-m pip "*) echo "$@" >>pip;; esac',
}


@pytest.fixture
def project(tmp_path):
    shutil.copytree(ROOT / "script", tmp_path / "script")
    (tmp_path / "bin").mkdir()
    for name, code in STUBS.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{code}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def begin(project, *arguments, installed="installed"):
    environment = {"PATH": f"{project / 'bin'}:/usr/bin:/bin", "INSTALLED": installed}
    return subprocess.Popen([project / "script" / "bootstrap", *arguments], env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def bootstrap(project, *arguments, **options):
    process = begin(project, *arguments, **options)
    stdout, stderr = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def state(folder):
    return {path.relative_to(folder): path.is_file() and path.read_text() for path in folder.rglob("*")}


def test_makes_an_environment_once(project):
    for _ in range(2):
        result = bootstrap(project)
        assert result.returncode == 0, result.stderr
    assert (project / "pip").read_text().count("torch==") == 1
    assert not (project / "apt").exists()


def test_makes_an_environment_with_another_torch(project):
    for version, required in (("2.15", "torch==2.15.*"), ("2.14.1", "torch==2.14.1")):
        for _ in range(2):
            result = bootstrap(project, "--for", "tests", "--torch", version)
            assert result.returncode == 0, result.stderr
        assert (project / "build" / f"torch-{version}" / "venv" / "bin" / "python").exists()
        assert (project / "pip").read_text().count(required + " ") == 1
    assert not (project / ".venv").exists()


def test_a_second_script_waits_for_the_first(project):
    """The first one waits in the middle of making .venv, until `go` exists."""
    python = project / "bin" / "python3"
    wait = 'mkdir -p "$3/bin"; touch half; until [[ -e go ]]; do sleep .01; done;'
    python.write_text(python.read_text().replace('mkdir -p "$3/bin";', wait))
    first = begin(project)
    try:
        wait_until((project / "half").exists, first)
        (project / ".venv" / "half-made").touch()
        second = begin(project)
        assert second.stderr.readline() == "waiting for another script/bootstrap\n"
    finally:
        (project / "go").touch()
    for process in (first, second):
        process.communicate()
        assert process.returncode == 0
    assert (project / ".venv" / "half-made").exists()
    assert (project / "pip").read_text().count("torch==") == 1


def test_adds_to_its_own_environment_what_another_part_needs(project):
    assert bootstrap(project, "--for", "programs").returncode == 0
    assert "requirements-test" not in (project / "pip").read_text()
    (project / ".venv" / "added").touch()
    assert bootstrap(project, "--for", "tests").returncode == 0
    assert "requirements-test" in (project / "pip").read_text()
    assert (project / ".venv" / "added").exists()


@pytest.mark.parametrize("stamp", ["", "torch 1.0\n"])  # interrupted, and of another version
def test_makes_its_own_environment_again(project, stamp):
    (project / ".venv").mkdir()
    (project / ".venv" / "torchlcp").write_text(stamp)
    (project / ".venv" / "old").touch()
    assert bootstrap(project).returncode == 0
    assert not (project / ".venv" / "old").exists()


@pytest.mark.parametrize("kind", ["folder", "file", "link", "dangling link", "link to one of another version"])
def test_leaves_the_environment_of_somebody_else_alone(project, tmp_path_factory, kind):
    other = tmp_path_factory.mktemp("other")
    (other / "precious").write_text("mine")
    if kind == "folder":
        shutil.copytree(other, project / ".venv")
    elif kind == "file":
        (project / ".venv").write_text("mine")
    else:
        (project / ".venv").symlink_to(other / "nothing" if kind == "dangling link" else other)
    if "version" in kind:
        (other / "torchlcp").write_text("torch 1.0\n")
    before = state(project), state(other), os.path.lexists(project / ".venv")
    result = bootstrap(project)
    assert result.returncode == 1
    assert "so script/bootstrap leaves it alone. Move it away" in result.stderr and result.stderr.count("\n") == 1
    assert (state(project), state(other), os.path.lexists(project / ".venv")) == before


def test_uses_a_link_to_an_environment_that_it_made(project, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    assert bootstrap(project).returncode == 0
    shutil.move(project / ".venv", other / "made")
    (project / ".venv").symlink_to(other / "made")
    before = state(other)
    assert bootstrap(project).returncode == 0
    assert state(other) == before


def test_installs_only_what_a_part_needs(project):
    assert bootstrap(project, "--for", "programs", installed="").returncode == 0
    line = (project / "apt").read_text()
    assert "libeigen3-dev" in line
    for package in ("libgtest-dev", "libbenchmark-dev", "coinor-libipopt-dev", "libclang-rt-dev"):
        assert package not in line


def test_names_a_part_that_it_does_not_know(project):
    result = bootstrap(project, "--for", "demo")
    assert (result.returncode, result.stderr) == (
        2,
        "script/bootstrap: unknown part demo; there are programs, tests, bench and lint\n",
    )
