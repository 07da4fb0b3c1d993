"""The examples in Python that need nothing but the library."""
import os
import pathlib
import re
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def output_of(name, *arguments, **environment):
    command = [sys.executable, EXAMPLES / name, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_simulator_of_ones_own_body(package):
    assert len((EXAMPLES / "tumbling_box.py").read_text().splitlines()) <= 45
    text = output_of("tumbling_box.py", PYTHONPATH=str(package)).split("box is at")[1]
    x, y, z, slope, difference = map(float, re.findall(r"-?\d+\.\d+", text))
    assert 0.2 < x < 0.5 and 0.05 < z < 0.11  # it lies on a face or an edge, or nearly
    assert -1 < slope < -0.01  # more friction stops it earlier
    assert difference < 0.1  # m, from the scene, whose impacts have a time within the step


def test_the_derivatives_of_a_converter(build):
    text = output_of("buck_converter.py", build / "lib" / "libtorchlcp.so")
    volts, duty, duty_by_differences, inductance, inductance_by_differences = map(float, re.findall(r"-?\d+\.\d+", text))
    # Where the current runs dry and nothing is lost, 2 V_in / (1 + sqrt(1 + 8 L / (load period duty^2))).
    assert abs(volts - 2 * 12 / (1 + (1 + 8 * 47e-6 / (100 * 1e-5 * 0.4**2)) ** 0.5)) < 0.1
    assert abs(duty - duty_by_differences) < 1e-4 * duty
    assert abs(inductance - inductance_by_differences) < 1e-4 * -inductance
