"""The examples in Python that need nothing but the library."""
import pathlib
import re
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def output_of(name, build):
    command = [sys.executable, EXAMPLES / name, build / "lib" / "libtorchlcp.so"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_simulator_of_ones_own_body(build):
    assert len((EXAMPLES / "tumbling_box.py").read_text().splitlines()) <= 60
    text = output_of("tumbling_box.py", build).split("box is at")[1]
    x, y, z, slope = map(float, re.findall(r"-?\d+\.\d+", text))
    assert 0.2 < x < 0.5 and 0.05 < z < 0.11  # it lies on a face or an edge, or nearly
    assert -1 < slope < -0.01  # more friction stops it earlier


def test_the_derivatives_of_a_converter(build):
    text = output_of("buck_converter.py", build)
    volts, duty, duty_by_differences, inductance, inductance_by_differences = map(float, re.findall(r"-?\d+\.\d+", text))
    # Where the current runs dry and nothing is lost, 2 V_in / (1 + sqrt(1 + 8 L / (load period duty^2))).
    assert abs(volts - 2 * 12 / (1 + (1 + 8 * 47e-6 / (100 * 1e-5 * 0.4**2)) ** 0.5)) < 0.1
    assert abs(duty - duty_by_differences) < 1e-4 * duty
    assert abs(inductance - inductance_by_differences) < 1e-4 * -inductance
