"""The examples in Python that need nothing but the library."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def output_of(name, *arguments, launcher=(), **environment):
    command = [sys.executable, *launcher, EXAMPLES / name, *arguments]
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


def test_an_arm_pushes_a_box_to_a_mark(package):
    pytest.importorskip("mujoco")
    errors = list(map(float, re.findall(r"(\d+\.\d+) mm", output_of("arm_pushes.py", PYTHONPATH=str(package)))))
    assert errors[0] > 100 and errors[-1] < 1


def test_a_quadruped_stands(package):
    pytest.importorskip("mujoco")
    text = output_of("quadruped_stands.py", PYTHONPATH=str(package))
    assert re.findall(r"(\d) of 8", text) == ["0", "8"]
    assert float(text.split()[-1]) < 1e-11


def test_a_system_of_ones_own(package):
    assert len((EXAMPLES / "dry_pendulum.cpp").read_text().splitlines()) <= 60
    weight, friction = map(float, re.findall(r"(\d+\.\d+) N m", output_of("dry_pendulum.py", PYTHONPATH=str(package))))
    assert abs(weight - 10) < 0.01 and abs(friction - 0.5) < 1e-3


def test_the_derivatives_of_a_converter(build):
    text = output_of("buck_converter.py", build / "lib" / "libtorchlcp.so")
    volts, duty, duty_by_differences, inductance, inductance_by_differences = map(float, re.findall(r"-?\d+\.\d+", text))
    # Where the current runs dry and nothing is lost, 2 V_in / (1 + sqrt(1 + 8 L / (load period duty^2))).
    assert abs(volts - 2 * 12 / (1 + (1 + 8 * 47e-6 / (100 * 1e-5 * 0.4**2)) ** 0.5)) < 0.1
    assert abs(duty - duty_by_differences) < 1e-4 * duty
    assert abs(inductance - inductance_by_differences) < 1e-4 * -inductance


def on_processes(count, package, name, *arguments):
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    return output_of(name, *arguments, launcher=command, PYTHONPATH=str(package), OMP_NUM_THREADS="1")


def test_the_bits_do_not_depend_on_the_number_of_processes(package):
    outputs = {on_processes(count, package, "same_bits.py") for count in (1, 2, 3)}
    assert len(outputs) == 1
    assert float(re.search(r"learned to (\S+),", outputs.pop()).group(1)) < 0.1


def test_processes_go_on_where_others_ended(package, tmp_path):
    """Also after a checkpoint that was not finished."""
    short = ["--bodies", "240", "--batch", "60", "--workers", "0"]
    unbroken = on_processes(2, package, "many_processes.py", *short, "--epochs", "4")
    kept = tmp_path / "kept"
    first = on_processes(2, package, "many_processes.py", *short, "--epochs", "2", "--checkpoint", kept)
    (kept / "3").mkdir()
    (kept / "3" / "__0_0.distcp").write_bytes(b"unfinished")
    again = on_processes(2, package, "many_processes.py", *short, "--epochs", "4", "--checkpoint", kept)
    lines = unbroken.splitlines()
    assert len(lines) == 5 and first.splitlines()[:2] == lines[:2] and again.splitlines() == lines[2:]
    assert [path.name for path in kept.iterdir()] == ["4"]
    more = on_processes(3, package, "many_processes.py", *short, "--epochs", "5", "--checkpoint", kept)
    assert more.startswith("epoch 5: ")
