"""The operators for compliant contact, typed, with names for what they return."""

from typing import NamedTuple

from torch import Tensor

from torchlcp._arguments import TensorLike, as_tensors, call, of_each_contact, operator, with_contacts

__all__ = [
    "ContactCertificate",
    "ContactDual",
    "ContactParameters",
    "ContactSolution",
    "FreeMotion",
    "add_equality",
    "certify_contact",
    "contact_dual",
    "contact_parameters",
    "delassus_diagonal",
    "equality_impulses",
    "solve_contact",
]


class ContactSolution(NamedTuple):
    """v [..., n], gamma [..., 3 c], status [...], int8, the values of Status, and iterations [...], int64.

    SOLVED: see solve_contact. NOT_FOUND: rounding errors are too large. PIVOT_LIMIT: max_iterations ran out.
    BAD_INPUT: a number is not finite or out of its range, or A is not symmetric or not positive definite. Unless the
    status is SOLVED, v and gamma are NaN. v is in m/s, gamma in N s.
    """

    v: Tensor
    gamma: Tensor
    status: Tensor
    iterations: Tensor


class ContactCertificate(NamedTuple):
    """How accurate a solution is, and how well its gradient is defined; each [...].

    residual: |D g| / max(|D A (v - v_free)|, |D J' gamma|), with g = A (v - v_free) - J' gamma and D = diag(A)^-1/2; 0
        where |D g| is within the rounding errors of A (v - v_free).
    margin: the smallest relative distance of a contact to the boundary of two of the regions stick, slide and separate,
        where the gradient jumps; in [0, 1], the same in all units and for all observers, infinity without contacts.
    condition: the condition number of D H D in the 2-norm, where H is the Hessian of the objective at v.
    """

    residual: Tensor
    margin: Tensor
    condition: Tensor


class FreeMotion(NamedTuple):
    """A [..., n, n] and v_free [..., n], as solve_contact takes them."""

    A: Tensor
    v_free: Tensor


class ContactDual(NamedTuple):
    """H [..., 3 c, 3 c] and r [..., 3 c] of the dual problem, see contact_dual."""

    H: Tensor
    r: Tensor


class ContactParameters(NamedTuple):
    """v_hat [..., 3 c] and R [..., 3 c], as solve_contact takes them."""

    v_hat: Tensor
    R: Tensor


def solve_contact(
    A: TensorLike,
    v_free: TensorLike,
    J: TensorLike,
    v_hat: TensorLike,
    R: TensorLike,
    mu: TensorLike,
    *,
    sizes: TensorLike | None = None,
    guess: TensorLike | None = None,
    tolerance: float | None = None,
    max_iterations: int | None = None,
) -> ContactSolution:
    """Convex compliant contact with Coulomb friction: v = argmin |v - v_free|_A^2 / 2 + |P(y)|_R^2 / 2.

    Here y = R^-1 (v_hat - J v), and gamma = P(y) is its projection, in the norm of R, on the friction cones
    |gamma_t| <= mu gamma_n of all contacts. There is exactly one solution. v and gamma are differentiable in all six
    tensors, any number of times. On the boundary of two of the regions stick, slide and separate, the gradient is that of
    the separated contact if this is one of them, else that of stick. The gradient of an element that is not solved is 0
    where its incoming gradient is 0, else NaN.

        Castro, Permenter, Han: An unconstrained convex formulation of compliant contact, IEEE T-RO 39, 2023.

    Args:
        A: [..., n, n], symmetric and positive definite, float32 or float64; n may be 0.
        v_free: [..., n], m/s, the velocity without contact; of A's dtype and device, like all tensors that follow.
        J: [..., 3 c, n], for each contact the rows of its two tangents and its normal; c may be 0.
        v_hat: [..., 3 c], m/s, see contact_parameters.
        R: [..., 3 c], 1/kg, > 0, equal for both tangents of a contact. Where contacts are pressed against each other, so
            that gamma grows as 1 / R, R must be at least about 1e-12 of the diagonal of J A^-1 J'.
        mu: [..., c], >= 0, or a number for all contacts. All batch dimensions broadcast.
        sizes: [...], int64, how many of the c contacts of each element exist, the first ones; see pad. Each element gets
            the bits, also of its gradient, that it would get alone. What the inputs hold beyond is not read; gamma and
            the gradients are 0 there. None: all.
        guess: [..., n], the start of the iteration. None: v_free.
        tolerance: bound on the residual of ContactCertificate, before v is rounded to the dtype; with the returned gamma
            where R is below 1e-5 of the diagonal of J A^-1 J'. None: 1e-10.
        max_iterations: Newton steps that one element may take. None: 1000.

    Raises:
        RuntimeError: a shape, dtype, device or option does not fit.
    """
    return ContactSolution(
        *call(
            "solve_contact",
            A,
            v_free,
            J,
            v_hat,
            R,
            of_each_contact(mu, A, J),
            sizes=sizes,
            guess=guess,
            tolerance=tolerance,
            max_iterations=max_iterations,
        )
    )


def certify_contact(
    A: TensorLike,
    v_free: TensorLike,
    J: TensorLike,
    v_hat: TensorLike,
    R: TensorLike,
    mu: TensorLike,
    v: TensorLike,
    *,
    sizes: TensorLike | None = None,
) -> ContactCertificate:
    """For each element of a batch: how accurately v solves the problem, and how well its gradient is defined.

    The result depends on the problem and v alone, and not on how v was found. It is NaN where solve_contact would
    report BAD_INPUT and where v is not finite. It is not differentiable.

    Args:
        A, v_free, J, v_hat, R, mu, sizes: as in solve_contact.
        v: [..., n].

    Raises:
        RuntimeError: a shape, dtype or device does not fit.
    """
    return ContactCertificate(
        *call("certify_contact", A, v_free, J, v_hat, R, of_each_contact(mu, A, J), v, sizes=sizes)
    )


@operator("add_equality")
def add_equality(A: TensorLike, v_free: TensorLike, J: TensorLike, v_hat: TensorLike, R: TensorLike) -> FreeMotion:
    """Adds constraints J v = v_hat of compliance R, such as joints, whose impulses have either sign, for solve_contact.

    Returns A + J' R^-1 J and (A + J' R^-1 J)^-1 (A v_free + J' R^-1 v_hat). Differentiable in all five, any number of
    times.

    Args:
        A: [..., n, n], float32 or float64.
        v_free: [..., n], of A's dtype and device, like all that follow.
        J: [..., e, n].
        v_hat: [..., e].
        R: [..., e], > 0. All batch dimensions broadcast.

    Raises:
        RuntimeError: a shape, dtype or device does not fit.
    """


@operator("equality_impulses")
def equality_impulses(J: TensorLike, v_hat: TensorLike, R: TensorLike, v: TensorLike) -> Tensor:
    """gamma [..., e], N s: the impulses R^-1 (v_hat - J v) of the constraints that add_equality added.

    They act by J' beside the impulses of contacts. Differentiable in all four, any number of times.

    Args:
        J, v_hat, R: as in add_equality, float32 or float64.
        v: [..., n], m/s, what solve_contact found; without contacts the v_free that add_equality returned.

    Raises:
        RuntimeError: a shape, dtype or device does not fit.
    """


@operator("contact_dual")
def contact_dual(A: TensorLike, v_free: TensorLike, J: TensorLike, v_hat: TensorLike, R: TensorLike) -> ContactDual:
    """The dual of what solve_contact solves: min over gamma in the friction cones of gamma' H gamma / 2 + r' gamma.

    H = J A^-1 J' + R and r = J v_free - v_hat. The primal problem is to minimise |v - v_free|_A^2 / 2 +
    |sigma|_R^2 / 2 with J v - v_hat + R sigma in the dual cones; its minimiser is v = v_free + A^-1 J' gamma and
    sigma = gamma. Differentiable in all five, any number of times. H is NaN where A is not positive definite.

    Args:
        A, v_free, J, v_hat, R: as in solve_contact.

    Raises:
        RuntimeError: a shape, dtype or device does not fit.
    """


def contact_parameters(
    gap: TensorLike,
    stiffness: TensorLike,
    dissipation: TensorLike,
    delassus: TensorLike,
    dt: float,
    *,
    sigma: float = 1e-3,
    beta: float = 1.0,
) -> ContactParameters:
    """v_hat and R of springs and dampers: v_hat = (0, 0, -gap / (dt + tau)), R_n = 1 / (dt k (dt + tau)), R_t = sigma w.

    R_n is at least beta^2 / (4 pi^2) w, so that the contact does not oscillate with a shorter period than beta time
    steps; where this bound is active, nothing depends on k. Differentiable in all four tensors.

    Args:
        gap: [..., c], m, at the beginning of the step, negative where bodies overlap.
        stiffness: [..., c], k, N/m.
        dissipation: [..., c], tau, s.
        delassus: [..., c], w, 1/kg, see delassus_diagonal. All of them broadcast; a number is that of all contacts.
        dt: s, > 0.
        sigma: > 0; a contact that sticks creeps with the velocity sigma w times its impulse.
        beta: >= 0, see above.

    Raises:
        RuntimeError: a shape, dtype, device or number does not fit.
    """
    given = as_tensors(gap=gap, stiffness=stiffness, dissipation=dissipation, delassus=delassus)
    contacts = next((x.shape[-1] for x in given if x.dim() > 0), 1)
    return ContactParameters(*call("contact_parameters", *with_contacts(given, contacts), dt, sigma=sigma, beta=beta))


@operator("delassus_diagonal")
def delassus_diagonal(A: TensorLike, J: TensorLike) -> Tensor:
    """w [..., c], 1/kg: the mean of the diagonal of J_k A^-1 J_k', the inverse of the effective mass at contact k.

    Differentiable in both. NaN where A is not positive definite.

    Args:
        A: [..., n, n], float32 or float64.
        J: [..., 3 c, n], of A's dtype and device. The batch dimensions broadcast.

    Raises:
        RuntimeError: a shape, dtype or device does not fit.
    """
