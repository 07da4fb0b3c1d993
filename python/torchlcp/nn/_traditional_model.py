"""A sliding block learned as the LCP of the traditional formulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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
        negative [3, 3] is N of M = max(P, 0) - max(N, 0).
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
        basis: for "structured", see StructuredMatrix.
        hidden: for "networks", the width of their tanh layers.

    Attributes:
        exact_rest: whether step returns a v_next of exactly 0, with the derivative 0, where sticks() says so.
        revive: whether a relu pair that is 0 may change again.

    Raises:
        ValueError: a number is out of its range, or kind is another word.
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
        basis: str = "none",
        hidden: int = 0,
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
        self.monotone = monotone
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
        """[M|W], [3, 6], in the units of the model. Raises AttributeError for networks, which have no such matrices."""
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
        result: Tensor = rows
        return result

    def G_of(self, v: Tensor, u: Tensor) -> Tensor:
        """G, [..., 3, 3], or [3, 3] where it does not depend on v and u, in the units of the model."""
        if self.kind != "networks":
            return self.rows()[:, :3]
        G: Tensor = torch.ops.lcp._network_matrix(self.phi(v, u), self.beta(v, u))
        return G

    def f_of(self, v: Tensor, u: Tensor) -> Tensor:
        """f, [..., 3], in the units of the model, for v [...], m/s, and u [...], N."""
        f: Tensor = (
            self.f(v, u)
            if self.kind == "networks"
            else torch.ops.lcp._f_of_rows(self.rows(), v, u, **self._units)
        )
        return f

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
        sticks: Tensor = torch.ops.lcp._solution_sticks(friction, gamma)
        return sticks

    @staticmethod
    def true_rows(limit: float) -> Tensor:
        """The rows [M|W] of a true block whose largest friction force is `limit` units, [3, 6], float64."""
        rows: Tensor = torch.ops.lcp._true_rows(limit)
        return rows

    def hold(self, mask: Tensor, values: Tensor) -> None:
        """Holds the entries of [M|W] at which mask, [3, 6], bool, is true at those of values, [3, 6].

        It has no effect on the M of "structured" and on "networks".
        """
        if mask.shape != (3, 6) or mask.dtype != torch.bool or values.shape != (3, 6):
            given = f"{list(mask.shape)}, {mask.dtype}, and {list(values.shape)}"
            raise ValueError(f"mask must be [3, 6], bool, and values [3, 6]; got {given}")
        self.held.copy_(mask)
        self.values.copy_(values.detach())

    def extra_repr(self) -> str:
        numbers = ("mass", "dt", "gravity", "force_unit")
        return ", ".join([repr(self.kind), *(f"{name}={getattr(self, name)!r}" for name in numbers)])
