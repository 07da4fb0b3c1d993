"""The Python of README and docs, and the script of a figure, run as they stand; files that they name exist."""
import multiprocessing
import pathlib
import re
import runpy
import sys

import pytest
import torch  # noqa: F401  # each snippet runs in a fork of this process, which need not import it again

ROOT = pathlib.Path(__file__).parents[2]
README = "README.md"


def snippets(document):
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / document).read_text(), re.M | re.S)


def in_a_fork(function, *arguments):
    """Fails unless the function returns."""
    process = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == 0


@pytest.fixture
def run(build, capfd, monkeypatch):
    """Runs code in the project's folder; returns what it printed."""
    monkeypatch.chdir(ROOT)

    def call(code):
        in_a_fork(exec, code.replace('"build/lib', f'"{build}/lib'), {"__name__": "__main__"})
        printed, errors = capfd.readouterr()
        assert errors == ""
        return printed

    return call


@pytest.mark.parametrize(
    "number, more, printed",
    [
        (0, "print(z, status, M.grad)", "tensor([[0.5000, 0.0000],\n        [0.3333, 0.3333]]"),
        (1, "", "tensor([0.0000, 0.7057]"),
    ],
)
def test_readme(run, number, more, printed):
    assert printed in run(snippets(README)[number] + more)
    assert len(snippets(README)) == 2


def documents():
    return [path.relative_to(ROOT) for path in (ROOT / "docs").glob("*.md") if snippets(path)]


@pytest.mark.parametrize("document", documents(), ids=str)
def test_document(run, document):
    run("".join(snippets(document)))


@pytest.mark.parametrize("document", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_named_files_exist(document):
    named = re.findall(r"`((?:csrc|include|models|training|tests|docs|script)/[\w./]+)`", (ROOT / document).read_text())
    missing = [path for path in named if "name" not in path and not (ROOT / path).exists()]
    assert named and not missing


# The arrows of docs/architecture.md: whose headers each room of csrc may include; contact/tensor_cone.h is for all.
KNOWN = {
    "simd": [],
    "linalg": ["simd"],
    "solver": ["simd", "linalg"],
    "batch": ["simd", "linalg", "solver"],
    "contact": [],
    "ops": ["simd", "linalg", "solver", "batch", "contact"],
    "physics": [],
    "learning": [],
    "identification": [],
}
PLAIN = ["method.h", "status.h"]  # without LibTorch
PUBLIC = ["physics", "learning", "identification", "nn"]


def test_includes_follow_the_arrows():
    wrong = []
    rooms = {path.name for path in (ROOT / "csrc").iterdir() if path.is_dir()}
    assert rooms == set(KNOWN)
    for path in [*(ROOT / "csrc").rglob("*.h"), *(ROOT / "csrc").rglob("*.cpp")]:
        room = path.relative_to(ROOT / "csrc").parts[0]
        for header in re.findall(r'^#include ["<]([^">]+)[">]', path.read_text(), re.M):
            first, *rest = header.split("/")
            if first == "lcp" and len(rest) > 1:
                allowed = rest[0] not in PUBLIC or rest[0] == room
            elif first == "lcp":
                allowed = room in PUBLIC or room == "ops" or (room in ("solver", "batch") and rest[0] in PLAIN)
            else:
                allowed = first not in rooms or first in (room, *KNOWN[room]) or header == "contact/tensor_cone.h"
            if not allowed:
                wrong.append(f"{path.relative_to(ROOT)}: {header}")
    assert not wrong


@pytest.mark.parametrize("name", ["gradients", "learning_basin"])
def test_figure(build, tmp_path, monkeypatch, name):
    target = tmp_path / f"{name}.png"
    script = ROOT / "docs" / "figures" / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(script), str(build / "lib" / "libtorchlcp.so"), str(target)])
    in_a_fork(runpy.run_path, str(script), None, "__main__")
    assert target.stat().st_size > 10_000
