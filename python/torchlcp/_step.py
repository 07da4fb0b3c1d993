"""Systems of one's own, whose steps are written in C++ as formulas and rolled out as those of the package."""

from __future__ import annotations

import fcntl
import os
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from torchlcp._arguments import Feedback, TensorLike, as_tensor, as_tensors, call, feedback_by_names
from torchlcp._built import HEADERS, LIBRARY
from torchlcp._simulate import Rollout

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Step", "load_steps"]


def load_steps(*sources: str | os.PathLike[str], flags: Sequence[str] = (), verbose: bool = False) -> None:
    """Compiles C++ sources that register steps, see lcp/step.h, and loads them; or loads a library of them, lib*.so.

    A source that has not changed is compiled once. What is loaded again replaces steps of the same name. To compile, a C++20
    compiler and ninja are needed (pip install ninja).

    Args:
        sources: files of one library, .cpp, or a single .so.
        flags: further flags of the compiler; by default the code is optimised (-O3) and runs on any processor.
        verbose: whether to show the commands.

    Raises:
        FileNotFoundError: there is no such file.
        RuntimeError: there is no compiler or no ninja, or the sources do not compile; the message has the compiler's.
    """
    paths = [pathlib.Path(source).resolve(strict=True) for source in sources]
    if not paths:
        raise TypeError("load_steps takes at least one source; got none")
    if len(paths) == 1 and paths[0].suffix == ".so":
        torch.ops.load_library(paths[0])
        return
    from torch.utils import cpp_extension  # reads the compiler's version

    name = f"torchlcp_steps_{paths[0].stem}"
    root = os.environ.get("TORCH_EXTENSIONS_DIR") or cpp_extension.get_default_build_root()
    folder = pathlib.Path(root, f"torch_{torch.__version__}", name)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "in_use", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # it ends with its process; PyTorch's own lock outlives one that is killed
        (folder / "lock").unlink(missing_ok=True)
        cpp_extension.load(
            name=name,
            sources=[str(path) for path in paths],
            extra_cflags=["-std=c++20", "-O3", *flags],
            extra_ldflags=[str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"],
            extra_include_paths=[str(HEADERS)],
            build_directory=str(folder),
            verbose=verbose,
            is_python_module=False,
        )


class Step:
    """A step that a library has registered: w = M z + q, 0 <= z perp w >= 0, and the next state, see lcp/step.h.

    parameters, states, inputs, pairs: the names of its numbers, p, k, m and n of them.

    Raises RuntimeError where no step of this name is registered.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        names = torch.ops.lcp._names_of_step(name)
        self.parameters, self.states, self.inputs, self.pairs = (tuple(each) for each in names)

    def __repr__(self) -> str:
        return f"Step({self.name!r}): {', '.join(self.states)}"

    def simulate(
        self,
        parameters: Mapping[str, TensorLike] | TensorLike,
        x: TensorLike,
        u: TensorLike,
        *,
        ties: str = "inactive",
        kappa: float = 0.0,
        tolerance: float | None = None,
        feedback: Feedback | None = None,
    ) -> Rollout:
        """T steps of each element of a batch, in one walk through all of them.

        From a step on that is not solved, all results are NaN and the later statuses BAD_INPUT. x_next and z are
        differentiable in the parameters, x and u, any number of times; w and residual are not. In memory the results have
        the steps before the batch.

        Args:
            parameters: a number or a tensor [...] for each name, or all of them as a tensor [..., p].
            x: [..., k], the first state, float32 or float64; like u and the parameters, whose batch dimensions broadcast.
            u: [..., T, m], the input of each step.
            ties, kappa, tolerance: as in torchlcp.solve.
            feedback: of the state, beside u: K [m, k] or [..., T, m, k], and a reference [k] or [..., T, k].

        Raises:
            TypeError: a parameter is missing or unknown.
            RuntimeError: a shape, dtype, device or option does not fit.
        """
        p, x, u = self._as_tensors(parameters, x, u)
        options: dict[str, Any] = {"ties": ties, "kappa": kappa, "tolerance": tolerance}
        return Rollout(*call("_simulate_step", self.name, p, x, u, **options, **feedback_by_names(feedback)))

    def step(
        self,
        parameters: Mapping[str, TensorLike] | TensorLike,
        x: TensorLike,
        u: TensorLike,
        *,
        ties: str = "inactive",
        kappa: float = 0.0,
        tolerance: float | None = None,
    ) -> Rollout:
        """One step, as simulate, of u [..., m]; the results have no dimension of steps."""
        p, x, u = self._as_tensors(parameters, x, u)
        all_steps = self.simulate(p, x, u.unsqueeze(-2), ties=ties, kappa=kappa, tolerance=tolerance)
        x_next, z, w = (numbers.squeeze(-2) for numbers in all_steps[:3])
        return Rollout(x_next, z, w, all_steps.status.squeeze(-1), all_steps.residual.squeeze(-1))

    def stack(self, parameters: Mapping[str, TensorLike], like: Tensor | None = None) -> Tensor:
        """The numbers of all parameters by their names as a tensor [..., p], with the dtype and device of `like`."""
        if set(parameters) != set(self.parameters):
            raise TypeError(f"parameters must be {', '.join(self.parameters)}; got {', '.join(map(str, parameters))}")
        numbers = [as_tensor(name, parameters[name], like) for name in self.parameters]
        return torch.stack(torch.broadcast_tensors(*numbers), -1) if numbers else torch.empty(0, dtype=torch.float64)

    def _as_tensors(
        self, parameters: Mapping[str, TensorLike] | TensorLike, x: TensorLike, u: TensorLike
    ) -> tuple[Tensor, Tensor, Tensor]:
        if isinstance(parameters, Mapping):
            x, u = as_tensors(x=x, u=u)
            return self.stack(parameters, x), x, u
        p, x, u = as_tensors(parameters=parameters, x=x, u=u)
        return p, x, u
