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

SUPPORTED = ("2.13", "2.11")  # the first is tested by script/test, the second by the tests on GPUs


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


def use_torch():
    """Tells CMake by Torch_DIR which torch to build with, unless it is set; exits where that is none of SUPPORTED."""
    if not os.environ.get("Torch_DIR"):
        folder = torch_folder()
        if not folder:
            sys.exit(
                f"torchlcp is built with the torch of its environment, and {sys.executable} has none. First run:  "
                f"pip install 'torch=={SUPPORTED[0]}.*'   If it is there all the same, build without isolation (pip "
                "install --no-build-isolation), or set Torch_DIR to the folder of its TorchConfig.cmake."
            )
        os.environ["Torch_DIR"] = str(folder / "share" / "cmake" / "Torch")
    version = minor_version(os.environ["Torch_DIR"])
    if version not in SUPPORTED:
        sys.exit(
            f"torchlcp is built with torch {' or '.join(SUPPORTED)}, and {os.environ['Torch_DIR']} is torch {version}. "
            f"First run:  pip install 'torch=={SUPPORTED[0]}.*'"
        )


def dynamic_metadata(field, settings):
    """The package's requirements, which scikit-build-core asks for: the torch that it is built with."""
    torch_dir = os.environ.get("Torch_DIR")
    return [f"torch=={minor_version(torch_dir) if torch_dir else SUPPORTED[0]}.*"]
