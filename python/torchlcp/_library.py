"""Loads libtorchlcp.so, which registers the operators torch.ops.lcp."""

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
# Registering the same operators from a second library would end the process.
if hasattr(torch.ops.lcp, "solve") and str(LIBRARY.resolve()) not in torch.ops.loaded_libraries:
    raise ImportError(
        "the operators torch.ops.lcp are there already, from another library. Import torchlcp instead of loading that."
    )
torch.ops.load_library(LIBRARY)
