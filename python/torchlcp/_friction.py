"""The operators for rigid contact with friction, typed, with names for what they return."""

from typing import NamedTuple

from torch import Tensor

from torchlcp._arguments import TensorLike, call, of_each_contact, of_each_row, operator

__all__ = [
    "FrictionCertificate",
    "FrictionMotion",
    "FrictionProblem",
    "FrictionSolution",
    "certify_friction",
    "friction_motion",
    "friction_problem",
    "solve_friction",
]


class FrictionSolution(NamedTuple):
    """v [..., n], gamma [..., 3 c], status [...], int8, the values of Status, and iterations [...], int64.

    SOLVED: see solve_friction. NOT_FOUND: no method found a solution. INFEASIBLE: it is proved that every v up to
    some 1e5 times the given velocities makes a contact penetrate. PIVOT_LIMIT: max_iterations ran out. BAD_INPUT: a number is not
    finite or out of its range, or A is not symmetric or not positive definite. Unless the status is SOLVED, v and
    gamma are NaN. v is in m/s, gamma in N s; iterations are Newton steps.
    """

    v: Tensor
    gamma: Tensor
    status: Tensor
    iterations: Tensor


class FrictionCertificate(NamedTuple):
    """How accurate a solution is, and how well its gradient is defined; each [...].

    residual: the larger of the violation of the law that solve_friction bounds and of the relative error of
        A (v - v_free) = J' gamma, each component in the unit sqrt(A_ii).
    margin: the least distance of a contact to a change between stick, slide and being apart, where the gradient jumps,
        relative to the largest |J v_free + b|; infinity without contacts. A row has its distance to a change, too.
    rank: int64, 3 c + k where gamma is determined.
    unique: bool, whether v is determined; where it is not, the gradient is one of many.
    """

    residual: Tensor
    margin: Tensor
    rank: Tensor
    unique: Tensor


class FrictionProblem(NamedTuple):
    """M [..., f, f] and q [..., f] of an LCP, see friction_problem."""

    M: Tensor
    q: Tensor


class FrictionMotion(NamedTuple):
    """v [..., n], m/s, and gamma [..., 3 c], N s, the impulses (t1, t2, n) of each contact."""

    v: Tensor
    gamma: Tensor


def solve_friction(
    A: TensorLike,
    v_free: TensorLike,
    J: TensorLike,
    b: TensorLike,
    mu: TensorLike,
    *,
    sizes: TensorLike | None = None,
    guess: TensorLike | None = None,
    kappa: float = 0.0,
    tolerance: float | None = None,
    max_iterations: int | None = None,
    H: TensorLike | None = None,
    offset: TensorLike | None = None,
    lower: TensorLike | None = None,
    upper: TensorLike | None = None,
) -> FrictionSolution:
    """Rigid contact with the exact cone of Coulomb's law: A (v - v_free) = J' gamma, u = J v + b.

    Each contact takes off (gamma = 0, u_n >= 0), sticks (u = 0, |gamma_t| <= mu gamma_n) or slides (u_n = 0, friction
    mu gamma_n against u_t). v and gamma are differentiable in all five tensors, any number of times; include/lcp has the
    rule where two of these meet, and for redundant contacts. The gradient of an element that is not solved is 0 where its
    incoming gradient is 0, else NaN.

    Beside the contacts there may be k rows, constraints in one dimension with impulses h: A (v - v_free) = J' gamma + H' h.
    The velocity s = H v + offset of a row is >= 0 where h = lower, <= 0 where h = upper, and 0 between. With the interval
    [0, inf] a row is a stop, such as the limit of a joint; with [-r, r] dry friction or a motor that saturates; with
    [-inf, inf] an equation, such as a joint that closes a loop. gamma is then [..., 3 c + k], with h behind the contacts.

        De Saxce, Feng: The bipotential method, Mathematical and Computer Modelling 28, 1998.

    Args:
        A: [..., n, n], symmetric and positive definite, float32 or float64; n may be 0.
        v_free: [..., n], m/s, the velocity without contact; of A's dtype and device, like all tensors that follow.
        J: [..., 3 c, n], for each contact the rows of its two tangents and its normal; c may be 0.
        b: [..., 3 c], m/s: (0, 0, gap / dt) lets a contact close its gap, (0, 0, e u_n) lets it bounce, where u_n is
            its normal velocity before the impact.
        mu: [..., c], >= 0, or a number for all contacts; infinity for a contact that never slips. All batch dimensions broadcast.
        sizes: [...], int64, how many of the c contacts of each element exist, the first ones; see pad. Each element gets
            the bits, also of its gradient, that it would get alone. What the inputs hold beyond is not read; gamma and
            the gradients are 0 there. None: all.
        guess: [..., 3 c], impulses to start from. None: 0.
        kappa: where > 0, the gradient is that of the nearby point where each contact has gamma_n u_n = kappa and
            gamma_t = -mu^2 gamma_n u_t / sqrt(u_n^2 + mu^2 |u_t|^2), or NaN where none is found; v and gamma stay exact.
            It is smooth, sees contacts that are not made yet, and has an error proportional to kappa. In J.
        tolerance: bound on the distance to impulses and velocities that obey the law, a velocity relative to the largest
            |J v_free + b|, whatever mu is; it bounds the penetration. None: 1e-10 in float64, 1e-7 in float32.
        max_iterations: Newton steps that one element may take. None: no limit.
        H: [..., k, n], the rows; without sizes and kappa. None: there are none.
        offset: [..., k], in the unit of H v. None: 0.
        lower, upper: [..., k], lower <= upper, the bounds of the impulses; -inf and inf for none. Also a number for all rows.

    Raises:
        RuntimeError: a shape, dtype, device or option does not fit.
    """
    return FrictionSolution(
        *call(
            "solve_friction",
            A,
            v_free,
            J,
            b,
            of_each_contact(mu, A, J),
            sizes=sizes,
            guess=guess,
            kappa=kappa,
            tolerance=tolerance,
            max_iterations=max_iterations,
            **_rows(A, H, offset, lower, upper),
        )
    )


def _rows(
    A: TensorLike, H: TensorLike | None, offset: TensorLike | None, lower: TensorLike | None, upper: TensorLike | None
) -> dict[str, TensorLike | None]:
    if H is None:
        return {}
    return {"H": H, "offset": offset, "lower": of_each_row(lower, A, H), "upper": of_each_row(upper, A, H)}


def certify_friction(
    A: TensorLike,
    v_free: TensorLike,
    J: TensorLike,
    b: TensorLike,
    mu: TensorLike,
    v: TensorLike,
    gamma: TensorLike,
    *,
    sizes: TensorLike | None = None,
    H: TensorLike | None = None,
    offset: TensorLike | None = None,
    lower: TensorLike | None = None,
    upper: TensorLike | None = None,
) -> FrictionCertificate:
    """Certifies v, [..., n], and gamma, [..., 3 c + k], as a solution of solve_friction's problem, whoever found it.

    The result has no gradient. Where the input is bad, residual and margin are NaN, rank is 0 and unique False.

    Args:
        A, v_free, J, b, mu, sizes, H, offset, lower, upper: as for solve_friction.
        v: [..., n], m/s.
        gamma: [..., 3 c], N s, with rows H [..., 3 c + k].

    Raises:
        RuntimeError: a shape, dtype or device does not fit.
    """
    rows = _rows(A, H, offset, lower, upper)
    return FrictionCertificate(
        *call("certify_friction", A, v_free, J, b, of_each_contact(mu, A, J), v, gamma, sizes=sizes, **rows)
    )


def friction_problem(
    A: TensorLike, v_free: TensorLike, J: TensorLike, b: TensorLike, mu: TensorLike, directions: int = 4, angle: float = 0.0
) -> FrictionProblem:
    """The contacts of solve_friction with a pyramid in place of each cone, as an LCP for solve.

    It has f = c (directions + 2) unknowns: the normal impulses, [c]; the impulses in the directions, [c, directions]; and
    the slip speeds, [c]. Differentiable in all five tensors, any number of times.

        Stewart, Trinkle: An implicit time-stepping scheme for rigid body dynamics with inelastic collisions and Coulomb
        friction, International Journal for Numerical Methods in Engineering 39, 1996.

    Args:
        A, v_free, J, b, mu: as for solve_friction.
        directions: >= 3, of the friction of each contact.
        angle: of the first of them, from t1 towards t2.

    Raises:
        RuntimeError: a shape, dtype, device or option does not fit.
    """
    return FrictionProblem(
        *call("friction_problem", A, v_free, J, b, of_each_contact(mu, A, J), directions, angle)
    )


@operator("friction_motion")
def friction_motion(
    A: TensorLike, v_free: TensorLike, J: TensorLike, z: TensorLike, directions: int = 4, angle: float = 0.0
) -> FrictionMotion:
    """v and gamma of a solution z, [..., f], of the friction_problem of A, v_free and J.

    Args:
        A, v_free, J: as for solve_friction.
        z: [..., c (directions + 2)].
        directions, angle: those of the friction_problem.

    Raises:
        RuntimeError: a shape, dtype, device or option does not fit.
    """
