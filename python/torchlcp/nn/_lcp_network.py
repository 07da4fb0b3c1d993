"""Motion learned as a network that ends in an LCP."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.nn.utils import parameters_to_vector, vector_to_parameters

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from torchlcp.physics import SolveOptions

__all__ = ["LcpNetwork", "LcpNetworkParts", "LcpNetworkStep", "NetworkLinearization"]


class LcpNetworkStep(NamedTuple):
    """The value of an LcpNetwork.

    y: [..., d].
    z: [..., n], the unknowns of the LCP.
    status: [...], int8, the values of torchlcp.Status.
    activity: [...], the sum of |G_i| z_i over the unknowns, with the norms of the columns of G: 0 where no unknown has an
        effect. Unlike z it does not depend on how the unknowns are scaled.
    """

    y: Tensor
    z: Tensor
    status: Tensor
    activity: Tensor


class LcpNetworkParts(NamedTuple):
    """f [..., d], None where it is absent, G [..., d, n], q [..., n] and M [..., n, n] of an LcpNetwork at x."""

    f: Tensor | None
    G: Tensor
    q: Tensor
    M: Tensor


class NetworkLinearization(NamedTuple):
    """values [b, s, d + 1]: y, in output_unit, and the activity; jacobian [b, s, d + 1, size], of these in theta."""

    values: Tensor
    jacobian: Tensor


class LcpNetwork(torch.nn.Module):
    """A network that ends in an LCP with exactly one solution.

        y = f(x) + G(x) z,   0 <= z perp M z + q(x) >= 0,   M = L L' + epsilon I + U - U'

    for the lower triangle L and the strict upper triangle U of a learned matrix. The symmetric part of M is positive
    definite, so that the LCP has exactly one solution whatever q is [CPS, 3.1.6]. The map is continuous and, for affine
    parts, piecewise affine. Each part is "absent", which is 0; "constant"; "affine", W x + b; or a "network",
    W x + b + V a(C x + d) with the activation a. Where z = 0, y is f, and without f exactly 0; a y that is nothing but
    round-off counts as 0, too.

    The parameters have the names of lcp::nn::LcpNetwork: M [n, n]; f_bias [d] and, as far as the part has them, f_weight
    [d, p], f_hidden_weight [h, p], f_hidden_bias [h] and f_out_weight [d, h]; the same of G, with [d, n] in place of [d],
    and of q, with [n]. They are float64, and 0 at first; random makes others. The buffers input_unit [p] and
    output_unit [d] are the units of x and y, at first 1. The file model.pt of a network that was learned in C++ has
    entries of the same names: load_state_dict(torch.jit.load(path).state_dict()).

        [CPS] Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009, section 3.1.

    Args:
        inputs: p > 0.
        outputs: d > 0.
        unknowns: n > 0.
        f: "absent", "constant", "affine" or "network".
        G: the same but for "absent".
        q: "affine" or "network".
        hidden: h > 0, the width of the hidden layer of each part that is a network.
        activation: "tanh" or "relu".
        definiteness: epsilon > 0.

    Raises:
        RuntimeError: an option is out of its range.
    """

    input_unit: Tensor
    output_unit: Tensor

    def __init__(
        self,
        inputs: int,
        outputs: int,
        unknowns: int,
        *,
        f: str = "absent",
        G: str = "constant",
        q: str = "affine",
        hidden: int = 8,
        activation: str = "tanh",
        definiteness: float = 0.3,
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self.outputs = outputs
        self.unknowns = unknowns
        self.hidden = hidden
        self.activation = activation
        self.definiteness = definiteness
        self.dependences = {"f": f, "G": G, "q": q}
        names, values = torch.ops.lcp._lcp_network_parameters(**self._options)
        for name, value in zip(names, values, strict=True):
            self.register_parameter(name, Parameter(value))
        self.register_buffer("input_unit", torch.ones(inputs, dtype=torch.float64))
        self.register_buffer("output_unit", torch.ones(outputs, dtype=torch.float64))

    @property
    def _sizes(self) -> list[int]:
        return [self.inputs, self.outputs, self.unknowns, self.hidden]

    @property
    def _options(self) -> dict[str, Any]:
        numbers = {"activation": self.activation, "definiteness": self.definiteness}
        return {"sizes": self._sizes, **self.dependences, **numbers}

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(parameter.numel() for parameter in self.parameters())

    def theta(self) -> Tensor:
        """All parameters in one vector, [size]."""
        return parameters_to_vector(self.parameters())

    def set_theta(self, theta: Tensor) -> None:
        """Copies a vector of all parameters, [size], to them. Raises ValueError for another shape."""
        if theta.shape != (self.size,):
            raise ValueError(f"theta must be [{self.size}]; got {list(theta.shape)}")
        vector_to_parameters(theta.detach().clone(), self.parameters())

    def forward(self, x: Tensor) -> Tensor:
        """y, [..., d], for x [..., p]; see step."""
        return self.step(x).y

    def step(self, x: Tensor, theta: Tensor | None = None, **options: Unpack[SolveOptions]) -> LcpNetworkStep:
        """Solves the LCP, in the dtype of the parameters. Differentiable in x and the parameters.

        Args:
            x: [..., p].
            theta: [..., size], other parameters than the network's own, also of many networks at once; the dimensions
                before the last ones of x and theta broadcast.
            options: those of torchlcp.solve, see torchlcp.physics.SolveOptions.

        Raises:
            RuntimeError: a shape or an option does not fit.
        """
        theta = self.theta() if theta is None else theta
        units = (self.input_unit, self.output_unit)
        return LcpNetworkStep(*torch.ops.lcp._lcp_network_step(x, theta, *units, **self._options, **options))

    def parts(self, x: Tensor, theta: Tensor | None = None) -> LcpNetworkParts:
        """f, G, q and M at x [..., p], in the units of the network; theta as in step."""
        theta = self.theta() if theta is None else theta
        return LcpNetworkParts(*torch.ops.lcp._lcp_network_parts(x, theta, self.input_unit, **self._options))

    def matrix(self, theta: Tensor | None = None) -> Tensor:
        """M, [..., n, n]; theta as in step."""
        return torch.ops.lcp._lcp_network_matrix(self.theta() if theta is None else theta, **self._options)

    def entry(self, name: str, theta: Tensor) -> Tensor:
        """The parameter of that name as a view of theta, [..., size]: [..., its shape]. RuntimeError where there is none."""
        return torch.ops.lcp._lcp_network_entry(theta, name, **self._options)

    def linearize(self, x: Tensor, theta: Tensor, **options: Unpack[SolveOptions]) -> NetworkLinearization:
        """Values of many networks and their Jacobians in the parameters, for methods of least squares.

        It costs a fraction of a backward pass for each sample and output. The result has no gradient.

        Args:
            x: [s, p].
            theta: [b, size].
            options: as in step, with kappa = 0.

        Raises:
            RuntimeError: a shape or an option does not fit.
        """
        units = (self.input_unit, self.output_unit)
        return NetworkLinearization(
            *torch.ops.lcp._lcp_network_linearize(x, theta, *units, **self._options, **options)
        )

    def random(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """Random parameters of `count` networks, [count, size], float64, for data whose x and y have the size 1."""
        return torch.ops.lcp._lcp_network_random(count, generator, **self._options)

    def grown(self, smaller: LcpNetwork, theta: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Parameters, [size], of a network that begins as a smaller one with the parameters theta, [smaller.size].

        The smaller one has some of its parts, and fewer or as many unknowns and hidden units. What it lacks is random; new
        unknowns have M_ii = 1 and a small effect G.
        """
        of_smaller = {f"smaller_{name}": value for name, value in smaller.dependences.items()}
        return torch.ops.lcp._lcp_network_grown(
            theta, generator, smaller_sizes=smaller._sizes, **of_smaller, **self._options
        )

    def restricted(self, theta: Tensor, unknowns: Tensor) -> Tensor:
        """Parameters of this network with only some of its unknowns, for a network with as many.

        It is the same map wherever the other unknowns are 0.

        Args:
            theta: [size].
            unknowns: [k], int64, their indices in ascending order.
        """
        return torch.ops.lcp._lcp_network_restricted(theta, unknowns, **self._options)

    def save_torchscript(
        self,
        path: str | os.PathLike[str],
        *,
        positions: int = 0,
        inputs: int = 0,
        dt: float = float("nan"),
        mass: float = float("nan"),
        gravity: float = 9.81,
    ) -> None:
        """Writes a network of x = (positions, velocities, inputs), whose y are the velocities after a step, as TorchScript.

        The file has the methods forward(v, u) -> v_next and step(v, u) -> (v_next, force, status) or, where there are
        positions, forward(v, u, x) and step(v, u, x), and the attributes dt, mass, gravity and format_version. It is
        loaded by torch.jit.load here, and in C++ linked with TorchLCP::torchlcp. force = mass (v_next - v) / dt, N, less u
        where each velocity has its input. An existing file is replaced completely or not at all.

        Args:
            path: of the file.
            positions: their number.
            inputs: the number of inputs, N.
            dt: s, or NaN: not known; then force is NaN, too.
            mass: kg, the same.
            gravity: m/s^2.

        Raises:
            RuntimeError: the numbers do not add up to those of x, or the file cannot be written.
        """
        torch.ops.lcp._save_lcp_network(
            list(self.parameters()),
            list(self.buffers()),
            os.fspath(path),
            positions=positions,
            motion_inputs=inputs,
            dt=dt,
            mass=mass,
            gravity=gravity,
            **self._options,
        )

    def extra_repr(self) -> str:
        numbers = (f"{name}={getattr(self, name)!r}" for name in ("hidden", "activation", "definiteness"))
        parts = (f"{name}={value!r}" for name, value in self.dependences.items())
        return ", ".join([*map(str, self._sizes[:3]), *parts, *numbers])
