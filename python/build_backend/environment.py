"""Finds the torch of the environment that a package is built for.

The library works only with the torch that it was built with, so torch cannot be a build requirement, which pip would
install into a temporary environment.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

_ROOT = pathlib.Path(__file__).parents[2]
_CMAKE = (_ROOT / "cmake" / "TorchLCPLibTorch.cmake").read_text()
OLDEST, NEWEST = (re.search(rf"set\(TORCHLCP_{name}_TORCH ([0-9.]+)", _CMAKE).group(1) for name in ("OLDEST", "NEWEST"))


def torch_folder():
    """The folder of the environment's torch, or None."""
    spec = importlib.util.find_spec("torch")
    if spec:
        return pathlib.Path(spec.origin).parent
    # pip isolates a build by these two variables; without them the same Python sees its environment again.
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONNOUSERSITE")}
    code = "import importlib.util; print(importlib.util.find_spec('torch').origin)"
    found = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True)
    return pathlib.Path(found.stdout.strip()).parent if found.returncode == 0 else None


def minor_version(torch_dir):
    """The version, as "2.13", of the torch whose TorchConfig.cmake is in this folder; exits where there is none."""
    version_file = pathlib.Path(torch_dir, "TorchConfigVersion.cmake")
    if not version_file.exists():
        sys.exit(f"torchlcp needs {version_file}, which is missing; set Torch_DIR to the folder of TorchConfig.cmake")
    return re.search(r'PACKAGE_VERSION "(\d+\.\d+)', version_file.read_text()).group(1)


def _numbers(version):
    return [int(number) for number in version.split(".")]


def use_torch():
    """Tells CMake by Torch_DIR which torch to build with, unless it is set; exits where that is too old."""
    if not os.environ.get("Torch_DIR"):
        folder = torch_folder()
        if not folder:
            sys.exit(
                f"torchlcp is built with the torch of its environment, and {sys.executable} has none. First run:  "
                f"pip install 'torch>={OLDEST}'   If it is there all the same, build without isolation (pip "
                "install --no-build-isolation), or set Torch_DIR to the folder of its TorchConfig.cmake."
            )
        os.environ["Torch_DIR"] = str(folder / "share" / "cmake" / "Torch")
    version = minor_version(os.environ["Torch_DIR"])
    if _numbers(version) < _numbers(OLDEST):
        sys.exit(
            f"torchlcp is built with torch {OLDEST} or newer, and {os.environ['Torch_DIR']} is torch {version}. "
            f"First run:  pip install 'torch>={OLDEST}'"
        )
    if _numbers(version) > _numbers(NEWEST):
        print(f"torch {version} is newer than {NEWEST}, the newest that torchlcp is tested with", file=sys.stderr)


def dynamic_metadata(field, settings):
    """The version of the package, or its requirements, which scikit-build-core asks for.

    A wheel requires the torch that it is built with. TORCHLCP_LOCAL_VERSION is appended to the version, by which
    script/wheels distinguishes the wheels for different versions of torch.
    """
    if field == "version":
        version = re.search(r"project\(TorchLCP VERSION ([0-9.]+)", (_ROOT / "CMakeLists.txt").read_text()).group(1)
        local = os.environ.get("TORCHLCP_LOCAL_VERSION")
        return f"{version}+{local}" if local else version
    torch_dir = os.environ.get("Torch_DIR")
    return [f"torch=={minor_version(torch_dir)}.*" if torch_dir else f"torch>={OLDEST}"]
