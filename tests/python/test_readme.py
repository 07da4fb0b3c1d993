"""The Python of the README, run as it stands."""
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)


@pytest.mark.parametrize(
    "number, more, printed",
    [(0, "print(z, status, M.grad)", "tensor([[0.5000, 0.0000],\n        [0.3333, 0.3333]]"), (1, "", "tensor([0.0000, 0.7057]")],
)
def test_snippet(build, number, more, printed):
    code = (SNIPPETS[number] + more).replace('"build/lib', f'"{build}/lib')
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0 and result.stderr == ""
    assert printed in result.stdout


def test_there_are_no_others():
    assert len(SNIPPETS) == 2
