"""The examples in Python that need nothing but the library."""
import pathlib
import re
import subprocess
import sys


def test_a_simulator_of_ones_own_body(build):
    script = pathlib.Path(__file__).parents[2] / "examples" / "tumbling_box.py"
    assert len(script.read_text().splitlines()) <= 60
    result = subprocess.run([sys.executable, script, build / "lib" / "libtorchlcp.so"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    x, y, z, slope = map(float, re.findall(r"-?\d+\.\d+", result.stdout.split("box is at")[1]))
    assert 0.2 < x < 0.5 and 0.05 < z < 0.11  # it lies on a face or an edge, or nearly
    assert -1 < slope < -0.01  # more friction stops it earlier
