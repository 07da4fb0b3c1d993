"""Loads libtorchlcp.so, which registers the operators torch.ops.lcp."""

import ctypes
import os

import torch

try:
    from torchlcp._built import LIBRARY, TORCH_VERSION, VERSION
except ModuleNotFoundError:
    raise ImportError("this torchlcp is not built; in the folder of its pyproject.toml:  pip install .") from None

# LibTorch's C++ interface may change with each minor version.
_minor = TORCH_VERSION.rpartition(".")[0]
if torch.__version__.split(".")[:2] != _minor.split("."):
    raise ImportError(
        f"torchlcp {VERSION} was built with torch {TORCH_VERSION}, and this is torch {torch.__version__}. Either run  "
        f"pip install 'torch=={_minor}.*'  or build torchlcp with this one."
    )
# A program, or an extension that links to the library, may have loaded it before; but not another copy, which may differ.
if hasattr(torch.ops.lcp, "_library_path"):
    _loaded = torch.ops.lcp._library_path()
    if not os.path.exists(_loaded) or not LIBRARY.samefile(_loaded):
        raise ImportError(
            f"the operators torch.ops.lcp are there already, from another library, {_loaded}. Import torchlcp before what "
            f"loads that, or link that to {LIBRARY}."
        )
torch.ops.load_library(LIBRARY)


def _check_signals() -> None:
    """Raises KeyboardInterrupt in the main thread after Ctrl-C, or what another handler raises."""
    ctypes.pythonapi.PyErr_CheckSignals()


# Long calls of operators, which run without the interpreter, call this at most ten times a second; what it raises ends them.
_signals = torch.library.Library("lcp", "IMPL")
_signals.impl("_check_signals", _check_signals, "CPU")
torch.ops.lcp._use_signal_check()
