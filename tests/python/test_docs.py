"""The Python of README and docs, and the script of a figure, run as they stand; files that they name exist."""
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
README = "README.md"


def snippets(document):
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / document).read_text(), re.M | re.S)


def run(code, build):
    """What the code prints, from the project's folder."""
    code = code.replace('"build/lib', f'"{build}/lib')
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0 and result.stderr == "", result.stderr
    return result.stdout


@pytest.mark.parametrize(
    "number, more, printed",
    [
        (0, "print(z, status, M.grad)", "tensor([[0.5000, 0.0000],\n        [0.3333, 0.3333]]"),
        (1, "", "tensor([0.0000, 0.7057]"),
    ],
)
def test_readme(build, number, more, printed):
    assert printed in run(snippets(README)[number] + more, build)
    assert len(snippets(README)) == 2


def documents():
    return [path.relative_to(ROOT) for path in (ROOT / "docs").glob("*.md") if snippets(path)]


@pytest.mark.parametrize("document", documents(), ids=str)
def test_document(build, document):
    run("".join(snippets(document)), build)


@pytest.mark.parametrize("document", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_named_files_exist(document):
    named = re.findall(r"`((?:csrc|include|models|training|tests|docs|script)/[\w./]+)`", (ROOT / document).read_text())
    missing = [path for path in named if "name" not in path and not (ROOT / path).exists()]
    assert named and not missing


@pytest.mark.parametrize("name", ["gradients", "learning_basin"])
def test_figure(build, tmp_path, name):
    target = tmp_path / f"{name}.png"
    script = ROOT / "docs" / "figures" / f"{name}.py"
    subprocess.run([sys.executable, script, build / "lib" / "libtorchlcp.so", target], check=True)
    assert target.stat().st_size > 10_000
