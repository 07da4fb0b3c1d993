"""A kind of tests that cannot run stops the configuration, unless it is left out by its name."""
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize(
    "options, expected",
    [
        (["-DTORCHLCP_PYTHON=/bin/false"], "The tests of the kind python cannot run: /bin/false lacks numpy, pytest"),
        (["-DTORCHLCP_TESTS_WITHOUT=soup"], "TORCHLCP_TESTS_WITHOUT names soup; the kinds of tests are clp;fuzz;ipopt;"),
        (["-DTORCHLCP_PYTHON=/bin/false", "-DTORCHLCP_TESTS_WITHOUT=python;wheel"], None),
        (["-DTORCHLCP_PYTHON=/bin/false", "-DTORCHLCP_TESTS_WITHOUT=clp", "-DTORCHLCP_SANITIZE=address"], None),
    ],
)
def test_a_kind_that_cannot_run_is_left_out_by_its_name(build, tmp_path, options, expected):
    torch = re.search("^Torch_DIR:[A-Z]+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M).group(1)
    command = ["cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", "-DTORCHLCP_BUILD_BENCH=OFF", f"-DTorch_DIR={torch}"]
    result = subprocess.run([*command, *options], capture_output=True, text=True)
    assert (result.returncode == 0) == (expected is None), result.stderr
    assert expected is None or expected in " ".join(result.stderr.split())
