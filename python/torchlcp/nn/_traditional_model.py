"""A sliding block learned as the LCP of the traditional formulation."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Parameter

from torchlcp.nn._state_map import StateMap
from torchlcp.nn._structured_matrix import StructuredMatrix

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from torchlcp.physics import SolveOptions

__all__ = ["TraditionalModel", "TraditionalStep"]

_KINDS = ("friction", "rows", "structured", "networks")


class TraditionalStep(NamedTuple):
    """The result of a step.

    v_next: [...], m/s.
    friction: [..., 2], N, (lambda_plus, lambda_minus).
    gamma: [...], m/s, the slack velocity.
    force: [...], N, the friction on the block, m (v_next - v) / dt - u.
    status: [...], int8, the values of torchlcp.Status.
    """

    v_next: Tensor
    friction: Tensor
    gamma: Tensor
    force: Tensor
    status: Tensor


class TraditionalModel(torch.nn.Module):
    """One step of a block as the LCP w = G(v, u) z + f(v, u), z = (lambda_plus, lambda_minus, gamma).

        v_next = dynamics . (v, u, 1, z)

    in units in which dt / m = 1: forces in force_unit, velocities in force_unit dt / m. In these units a true block has

        G = [1 -1 1; -1 1 1; -1 -1 0],  f = (v + u, -v - u, F),  dynamics = (1, 1, 0, 1, -1, 0)

    with its largest friction force F = mu m g. For each kind, the learned tensors are, by the names of
    lcp::nn::TraditionalModel:

    "friction": mu [], the friction coefficient.
    "rows": learned [3, 6], which is [M|W] of G = M and f = W (v, u, 1)'; with relu_pairs it has P in place of M, and
        negative [3, 3] is N of M = max(P, 0) - max(N, 0); with affine_matrix, G = M + slopes . (v, u), slopes [3, 3, 2].
    "structured": those of the StructuredMatrix matrix, which is M, and learned [3, 3], which is W.
    "networks": those of the StateMaps phi, beta and f, of G = phi phi' + an antisymmetric matrix with the triangle beta.

    The buffers held and values [3, 6] are the entries of [M|W] that hold() holds, and their values.

    Args:
        kind: what is learned, "friction", "rows", "structured" or "networks".
        mass: kg, > 0.
        dt: s, > 0.
        gravity: m/s^2, > 0.
        force_unit: N, > 0.
        monotone: for "rows": z'M z >= 0 for all z, which makes each feasible LCP solvable.
        relu_pairs: for "rows": learns the entries of M as differences of relus, which training can make exactly 0.
        affine_matrix: for "rows", neither monotone nor with relu_pairs: the entries of G that are not held are affine in v
            and u. Known solutions do not determine such a G.
        basis: for "structured", see StructuredMatrix.
        hidden: for "networks", the width of their tanh layers.
        known_mu: the friction coefficient, >= 0, that save_torchscript writes down; NaN where it is not known.

    Attributes:
        exact_rest: whether step returns a v_next of exactly 0, with the derivative 0, where sticks() says so.
        revive: whether a relu pair that is 0 may change again.

    Raises:
        ValueError: a number is out of its range, kind is another word, or affine_matrix excludes another option.
    """

    dynamics: Tensor
    held: Tensor
    values: Tensor
    frictionless_rows: Tensor

    def __init__(
        self,
        kind: str = "rows",
        *,
        mass: float = 1.0,
        dt: float = 1.0,
        gravity: float = 1.0,
        force_unit: float = 1.0,
        monotone: bool = False,
        relu_pairs: bool = False,
        affine_matrix: bool = False,
        basis: str = "none",
        hidden: int = 0,
        known_mu: float = math.nan,
    ) -> None:
        super().__init__()
        if kind not in _KINDS:
            raise ValueError(f"kind must be {', '.join(_KINDS[:-1])} or {_KINDS[-1]}; got {kind}")
        for name, value in (("mass", mass), ("dt", dt), ("gravity", gravity), ("force_unit", force_unit)):
            if not value > 0:
                raise ValueError(f"{name} must be > 0; got {value}")
        self.kind = kind
        self.mass = mass
        self.dt = dt
        self.gravity = gravity
        self.force_unit = force_unit
        if known_mu < 0:
            raise ValueError(f"known_mu must be >= 0, or NaN; got {known_mu}")
        if affine_matrix and (monotone or relu_pairs):
            raise ValueError("affine_matrix must be False for a monotone M and for relu_pairs")
        self.monotone = monotone
        self.relu_pairs = relu_pairs
        self.affine_matrix = affine_matrix
        self.basis = basis
        self.hidden = hidden
        self.known_mu = known_mu
        self.exact_rest = False
        self.revive = False
        self.register_buffer("dynamics", torch.tensor([1.0, 1.0, 0.0, 1.0, -1.0, 0.0]))
        self.register_buffer("held", torch.zeros(3, 6))
        self.register_buffer("values", torch.zeros(3, 6))
        if kind == "friction":
            self.mu = Parameter(torch.ones(()))
            self.register_buffer("frictionless_rows", torch.ops.lcp._true_rows(0.0).to(self.dynamics))
        elif kind == "rows":
            rows = torch.randn(3, 6)
            negative = (-rows[:, :3]).relu() if relu_pairs else None
            if relu_pairs:
                rows[:, :3].relu_()
            self.learned = Parameter(rows)
            self.register_parameter("negative", None if negative is None else Parameter(negative))
            self.register_parameter("slopes", Parameter(torch.randn(3, 3, 2)) if affine_matrix else None)
        elif kind == "structured":
            self.learned = Parameter(torch.randn(3, 3))
            self.matrix = StructuredMatrix(3, basis=basis)
        else:
            maps = (StateMap(3, hidden=hidden, velocity_scale=self.velocity_unit, force_scale=force_unit) for _ in "123")
            self.phi, self.beta, self.f = maps

    @property
    def velocity_unit(self) -> float:
        """m/s: the unit of velocities, which follows from that of forces."""
        return self.force_unit * self.dt / self.mass

    @property
    def _units(self) -> dict[str, float]:
        return {"mass": self.mass, "dt": self.dt, "force_unit": self.force_unit}

    def rows(self) -> Tensor:
        """[M|W], [3, 6], in the units of the model; M is G at v = u = 0.

        Raises AttributeError for networks, which have no such matrices.
        """
        if self.kind == "friction":
            factor = self.mass * self.gravity / self.force_unit
            rows = torch.ops.lcp._friction_rows(self.frictionless_rows, self.mu, factor)
        elif self.kind == "rows":
            rows = torch.ops.lcp._learned_rows(
                self.learned, self.negative, self.held, self.values, monotone=self.monotone, revive=self.revive
            )
        elif self.kind == "structured":
            rows = torch.ops.lcp._structured_rows(self.matrix(), self.learned, self.held, self.values)
        else:
            raise AttributeError("networks have no rows: their G and f depend on v and u by more than W")
        return rows

    def G_of(self, v: Tensor, u: Tensor) -> Tensor:
        """G, [..., 3, 3], or [3, 3] where it does not depend on v and u, in the units of the model."""
        if self.kind == "networks":
            return torch.ops.lcp._network_matrix(self.phi(v, u), self.beta(v, u))
        rows = self.rows()
        if self.kind != "rows" or self.slopes is None:
            return rows[:, :3]
        return torch.ops.lcp._affine_matrix(rows, self.slopes, self.held, v, u, **self._units)

    def f_of(self, v: Tensor, u: Tensor) -> Tensor:
        """f, [..., 3], in the units of the model, for v [...], m/s, and u [...], N."""
        return (
            self.f(v, u)
            if self.kind == "networks"
            else torch.ops.lcp._f_of_rows(self.rows(), v, u, **self._units)
        )

    def forward(self, v: Tensor, u: Tensor) -> Tensor:
        """v_next [...], m/s, see step."""
        return self.step(v, u).v_next

    def step(self, v: Tensor, u: Tensor, **options: Unpack[SolveOptions]) -> TraditionalStep:
        """Solves the learned LCP, in the dtype of the parameters.

        A block of the kind "friction" rests exactly while it sticks, which is where gamma = 0; the others leave
        round-off, unless exact_rest is true.

        Args:
            v: [...], m/s.
            u: [...], N.
            options: those of torchlcp.solve, see torchlcp.physics.SolveOptions.
        """
        v, u = v.to(self.dynamics), u.to(self.dynamics)
        return TraditionalStep(
            *torch.ops.lcp._traditional_step(
                v,
                u,
                self.G_of(v, u),
                self.f_of(v, u),
                self.dynamics,
                **self._units,
                rests_by_gamma=self.kind == "friction",
                exact_rest=self.exact_rest,
                **options,
            )
        )

    @staticmethod
    def sticks(friction: Tensor, gamma: Tensor) -> Tensor:
        """Whether a solution says that the block sticks, [...], bool: gamma = 0 or both friction forces are positive.

        Args:
            friction: [..., 2], in any unit.
            gamma: [...], in any unit.
        """
        return torch.ops.lcp._solution_sticks(friction, gamma)

    @staticmethod
    def true_rows(limit: float) -> Tensor:
        """The rows [M|W] of a true block whose largest friction force is `limit` units, [3, 6], float64."""
        return torch.ops.lcp._true_rows(limit)

    def hold(self, mask: Tensor, values: Tensor) -> None:
        """Holds the entries of [M|W] at which mask, [3, 6], bool, is true at those of values, [3, 6].

        It has no effect on the M of "structured" and on "networks"; missed is a penalty for these.
        """
        if mask.shape != (3, 6) or mask.dtype != torch.bool or values.shape != (3, 6):
            given = f"{list(mask.shape)}, {mask.dtype}, and {list(values.shape)}"
            raise ValueError(f"mask must be [3, 6], bool, and values [3, 6]; got {given}")
        self.held.copy_(mask)
        self.values.copy_(values.detach())

    def missed(self, G: Tensor) -> Tensor:
        """The differences of G, [..., 3, 3], to the held entries of M, [..., 9], to be penalised; 0 elsewhere."""
        return torch.ops.lcp._missed_entries(G, self.held, self.values)

    def overlap(self) -> Tensor:
        """The sum of relu_pair_overlap over the entries of M that are not held, to penalise; 0 without relu pairs."""
        if self.kind != "rows" or self.negative is None:
            return torch.zeros_like(self.dynamics[0])
        return torch.ops.lcp._rows_overlap(self.learned, self.negative, self.held, revive=self.revive)

    @property
    def _options(self) -> dict[str, Any]:
        names = ("kind", "mass", "dt", "gravity", "force_unit", "monotone", "relu_pairs", "affine_matrix", "basis", "hidden")
        return {**{name: getattr(self, name) for name in names}, "mu": self.known_mu}

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(parameter.numel() for parameter in self.parameters())

    def _assign(self, values: list[Tensor]) -> None:
        with torch.no_grad():
            for parameter, value in zip(self.parameters(), values, strict=True):
                parameter.copy_(value)

    def start(self, mu: float, *, noise: float = 0.0) -> None:
        """Sets the parameters to those of a block with the friction coefficient mu.

        Args:
            noise: the standard deviation of normal noise that is added to each parameter but the mu of "friction", in the
                units of the model.
        """
        self._assign(torch.ops.lcp._traditional_start(mu, noise, **self._options))

    def random(self, count: int, generator: torch.Generator | None = None) -> Tensor:
        """Random parameters of `count` models, [count, size], float64, for forces and velocities of size 1 in their units.

        Each row is a vector for torch.nn.utils.vector_to_parameters.
        """
        return torch.ops.lcp._traditional_random(count, generator, **self._options)

    def nonlinear(self, theta: Tensor) -> Tensor:
        """Those of parameters theta, [..., size], by which G depends on v and u, or by which f is not affine: [..., k].

        They are to be penalised, since samples leave much freedom to "networks" and to "rows" with affine_matrix; the others
        have none, k = 0.
        """
        return torch.ops.lcp._traditional_nonlinear(theta, **self._options)

    def projected(self, theta: Tensor) -> Tensor:
        """Parameters of the same model that satisfy its constraints, for theta [..., size].

        A step of training that is followed by this is one of projected descent. Without it an entry that a monotone M
        limits has no gradient while its parameter is beyond the limit, where M11 and M22 of a true block are.
        """
        return torch.ops.lcp._traditional_projected(theta, list(self.buffers()), **self._options)

    def save_torchscript(self, path: str | os.PathLike[str]) -> None:
        """Writes the model as TorchScript, for torch.jit.load here and in C++ linked with TorchLCP::torchlcp.

        The file has the methods forward(v, u) -> v_next and step(v, u) -> (v_next, force, status), which solve the learned
        LCP, and the attributes dt, mass, gravity, format_version, and mu: a number where known_mu is given, and the
        parameter of "friction". An existing file is replaced completely or not at all. Raises RuntimeError where the file
        cannot be written.
        """
        torch.ops.lcp._save_traditional_model(
            list(self.parameters()), list(self.buffers()), self.exact_rest, self.revive, os.fspath(path), **self._options
        )

    def load_torchscript(self, path: str | os.PathLike[str]) -> None:
        """Sets the parameters to those of a file that save_torchscript, or C++, wrote for the same kind and units.

        Raises RuntimeError, which names the file, where it is of anything else; the model is then as it was.
        """
        self._assign(torch.ops.lcp._load_traditional_model(os.fspath(path), **self._options))

    def extra_repr(self) -> str:
        numbers = ("mass", "dt", "gravity", "force_unit")
        return ", ".join([repr(self.kind), *(f"{name}={getattr(self, name)!r}" for name in numbers)])
