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


def use_torch():
    """Tells CMake by Torch_DIR which torch to build with, unless it is set; exits where that is not the right one."""
    wanted = re.search(r'"torch==([\d.]+)\.\*"', pathlib.Path("pyproject.toml").read_text()).group(1)
    if not os.environ.get("Torch_DIR"):
        folder = torch_folder()
        if not folder:
            sys.exit(
                f"torchlcp is built with the torch of its environment, and {sys.executable} has none. First run:  "
                f"pip install 'torch=={wanted}.*'   If it is there all the same, build without isolation (pip install "
                "--no-build-isolation), or set Torch_DIR to the folder of its TorchConfig.cmake."
            )
        os.environ["Torch_DIR"] = str(folder / "share" / "cmake" / "Torch")
    version_file = pathlib.Path(os.environ["Torch_DIR"], "TorchConfigVersion.cmake")
    if not version_file.exists():
        sys.exit(f"torchlcp needs {version_file}, which is missing; set Torch_DIR to the folder of TorchConfig.cmake")
    version = re.search(r'PACKAGE_VERSION "([\d.]+)', version_file.read_text()).group(1)
    if version.split(".")[:2] != wanted.split("."):
        sys.exit(
            f"torchlcp is built with torch {wanted}, and {version_file.parent} is torch {version}. First run:  "
            f"pip install 'torch=={wanted}.*'"
        )
