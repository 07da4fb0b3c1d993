"""The Python of the README, run as it stands."""
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)


@pytest.mark.parametrize("number", range(2))
def test_snippet(build, number):
    code = SNIPPETS[number].replace('"build/lib', f'"{build}/lib')
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0 and result.stderr == ""
    assert ("tensor([0.0000, 0.7057]" in result.stdout) == ("v_next" in code)


def test_there_are_no_others():
    assert len(SNIPPETS) == 2
