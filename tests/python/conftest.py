import json
import os
import pathlib
import shutil
import subprocess

import pytest
from runs import WITHOUT_FIGURES

PYTHON = pathlib.Path(__file__).parents[2] / "python"


def pytest_configure(config):
    config.addinivalue_line("markers", "long: runs only with TORCHLCP_LONG_TESTS in the environment")
    if (device := config.getoption("--device")) != "cpu":  # before the modules make the arguments of their tests
        import torch

        torch.set_default_device(device)


def pytest_collection_modifyitems(items):
    if not os.environ.get("TORCHLCP_LONG_TESTS"):
        items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_addoption(parser):
    parser.addoption("--build", required=True, help="the build folder whose library and programs are tested")
    parser.addoption("--device", default="cpu", help="where the tests of operators make their tensors, such as cuda")


@pytest.fixture(scope="session")
def build(pytestconfig):
    return pathlib.Path(pytestconfig.getoption("--build")).resolve()


@pytest.fixture(scope="session")
def library(build):
    """Loads the operators torch.ops.lcp. Tests of programs do without, since importing torch takes longer than most."""
    import torch

    torch.ops.load_library(build / "lib" / "libtorchlcp.so")


@pytest.fixture(scope="session")
def own_steps(library, build):
    """Loads the steps of tests/support/own_steps.cpp."""
    import torch

    torch.ops.load_library(build / "lib" / "libown_steps.so")


@pytest.fixture(scope="session")
def package(build, tmp_path_factory):
    """A folder from which the package torchlcp can be imported, with the library of the build."""
    import torch

    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(PYTHON / "torchlcp", folder / "torchlcp")
    (folder / "torchlcp" / "libtorchlcp.so").symlink_to(build / "lib" / "libtorchlcp.so")
    (folder / "torchlcp" / "include").symlink_to(PYTHON.parent / "include")
    built = (PYTHON / "build_backend" / "_built.py.in").read_text()
    built = built.replace("@version@", "0").replace("@torch_version@", torch.__version__.partition("+")[0])
    (folder / "torchlcp" / "_built.py").write_text(built)
    return folder


@pytest.fixture
def run(build, tmp_path):
    """Runs a program in an empty folder, without its figures; returns what it printed and its exit status.

    Figures take longer than most runs: env=None draws them, in tests of figures.
    """

    def call(program, *arguments, **keywords):
        command = [build / "bin" / program, *map(str, arguments)]
        keywords = {"env": WITHOUT_FIGURES, "timeout": 300, **keywords}
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, **keywords)

    return call


@pytest.fixture
def learn(run, tmp_path):
    """Runs a program that learns, without figures, and returns its metrics."""

    def call(program, *arguments, out="out"):
        result = run(program, *arguments, "--out", out, "--quiet")
        assert (result.returncode, result.stderr) == (0, "")
        return json.loads((tmp_path / out / "metrics.json").read_text())

    return call
