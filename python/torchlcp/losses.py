"""Losses of learning an LCP."""

from typing import NamedTuple

from torch import Tensor

from torchlcp._arguments import TensorLike, operator

__all__ = ["BilevelLoss", "DirectLoss", "PenaltyLoss", "bilevel_loss", "direct_loss", "penalty_loss"]


class BilevelLoss(NamedTuple):
    """The bilevel loss and its inner solution, for each element of a batch.

    value: [...], V; NaN, with the gradient 0, where not solved.
    forces: [..., n], lambda, the minimising forces.
    violation: [..., n], s.
    multiplier: [..., n], nu, that of G lambda + f + s >= 0.
    status: [...], int8, the values of torchlcp.Status.
    """

    value: Tensor
    forces: Tensor
    violation: Tensor
    multiplier: Tensor
    status: Tensor


class DirectLoss(NamedTuple):
    """Each a scalar, the mean over the batch: the weighted sum `total` of the three terms."""

    total: Tensor
    prediction: Tensor
    complementarity: Tensor
    nonnegativity: Tensor


class PenaltyLoss(NamedTuple):
    """Each a scalar, the mean over the batch of a sum over the rows: the weighted sum `total` of the two terms."""

    total: Tensor
    complementarity: Tensor
    nonnegativity: Tensor


@operator("_bilevel_loss")
def bilevel_loss(
    G: TensorLike,
    f: TensorLike,
    B: TensorLike,
    beta: TensorLike,
    *,
    prediction: float = 1.0,
    complementarity: float = 1.0,
    violation: float = 10.0,
    hard: bool = False,
) -> BilevelLoss:
    """The least error with which forces that a learned G and f allow explain a motion.

        V = min a1 |beta - B lambda|^2 + a2 lambda'(G lambda + f) + a3 e's
            over lambda >= 0, s >= 0, G lambda + f + s >= 0

    Solved as the LCP of its optimality conditions. value is differentiable in all four tensors by the envelope theorem,
    and again through the derivative of the solution. At the true G and f the true forces lambda give V = 0; they are a
    minimiser only if a3 >= a2 max_i lambda_i. The status is INFEASIBLE where the objective is unbounded below and, if
    hard, where no lambda >= 0 has G lambda + f >= 0.

        Danskin: The theory of max-min, with applications, SIAM J. Appl. Math. 14, 1966.

    Args:
        G: [..., n, n], float32 or float64.
        f: [..., n], of G's dtype, like all that follow, whose batch dimensions broadcast.
        B: [..., k, n], the effect of the forces on the prediction.
        beta: [..., k], the part of the motion that the forces must explain.
        prediction: a1 > 0.
        complementarity: a2 >= 0.
        violation: a3 > 0, per unit of s; not used where hard is true.
        hard: requires G lambda + f >= 0 exactly.

    Raises:
        RuntimeError: a shape does not fit, or a weight is out of its range.
    """


@operator("_direct_loss")
def direct_loss(
    h: TensorLike,
    target: TensorLike,
    forces: TensorLike,
    *,
    relu: bool = False,
    prediction: float = 1.0,
    complementarity: float = 0.01,
    nonnegativity: float = 1.0,
    squared: bool = False,
    resting: bool = True,
) -> DirectLoss:
    """The loss of learning a block's velocity from known friction forces.

        c = a1 |x_hat - x|_2 + a2 |lambda o x_hat|_1 + a3 |max(0, -h)|_1

    where x_hat = relu(h), or h for a model without a relu head, the weights are those of the arguments of these names,
    and x the target. Differentiable in all three tensors.

    Args:
        h: [..., 2], m/s, (v+, v-) before the head.
        target: [..., 2], m/s.
        forces: [..., 2], lambda, in any unit of force.
        relu: whether the model has a relu head.
        squared: squares the norm of the error of the prediction.
        resting: applies the term of nonnegativity also to components whose target is 0.

    Raises:
        RuntimeError: a shape or dtype does not fit.
    """


@operator("_penalty_loss")
def penalty_loss(
    G: TensorLike,
    f: TensorLike,
    z: TensorLike,
    *,
    complementarity: float = 1.0,
    nonnegativity: float = 1.0,
    squared: bool = False,
) -> PenaltyLoss:
    """The violation of an LCP by its known solutions: soft complementarity and nonnegativity of w = G z + f.

        c = a1 |z o w|_1 + a2 |max(0, -w)|_1

    It is convex in G and f and 0 at the truth, but 0 at G = 0, f = 0 as well: the scale of each row must be fixed, for
    example by holding one of its entries. Differentiable in all three tensors.

    Args:
        G: [..., n, n].
        f: [..., n].
        z: [..., n], the known solutions, >= 0.
        complementarity, nonnegativity: a1 and a2.
        squared: squares in place of absolute values.

    Raises:
        RuntimeError: a shape or dtype does not fit.
    """
