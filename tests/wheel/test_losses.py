"""torchlcp.losses, against formulas that are written here in other words."""

import inspect

import pytest
import torch

from torchlcp import Status, losses
from torchlcp.losses import bilevel_loss, direct_loss, penalty_loss

FUNCTIONS = {"bilevel_loss": losses.BilevelLoss, "direct_loss": losses.DirectLoss, "penalty_loss": losses.PenaltyLoss}


@pytest.fixture
def normal():
    generator = torch.Generator().manual_seed(0)
    return lambda *shape: torch.randn(*shape, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_the_names_and_defaults_of_its_operator(name):
    schema = getattr(torch.ops.lcp, f"_{name}").default._schema
    parameters = inspect.signature(getattr(losses, name)).parameters.values()
    for parameter, argument in zip(parameters, schema.arguments, strict=True):
        assert parameter.name == argument.name and parameter.annotation is not parameter.empty
        assert (parameter.kind is parameter.KEYWORD_ONLY) == argument.kwarg_only
        assert parameter.default == (argument.default_value if argument.has_default_value() else parameter.empty)
    assert list(FUNCTIONS[name]._fields) == [value.name for value in schema.returns]


@pytest.mark.parametrize("name", losses.__all__)
def test_what_is_public_is_documented(name):
    assert inspect.getdoc(getattr(losses, name))


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("resting", [False, True])
def test_direct_loss(normal, squared, relu, resting):
    h, target, forces = normal(7, 2), normal(7, 2).relu(), normal(7, 2)
    loss = direct_loss(
        h, target, forces, relu=relu, prediction=2.0, complementarity=3.0, nonnegativity=5.0, squared=squared, resting=resting
    )
    x = h.relu() if relu else h
    error = ((x - target) ** 2).sum(-1)
    terms = (error if squared else error.sqrt()).mean(), (forces * x).abs().sum(-1).mean()
    below = (-h).relu() if resting else (-h).relu() * (target > 0)
    torch.testing.assert_close(loss[1:], (*terms, below.sum(-1).mean()))
    torch.testing.assert_close(loss.total, 2 * loss[1] + 3 * loss[2] + 5 * loss[3])
    tensors = h, target + 0.1, forces  # away from the jump at a target of 0 where resting is false
    function = lambda *x: direct_loss(*x, relu=relu, squared=squared, resting=resting).total
    assert torch.autograd.gradcheck(function, tuple(x.detach().requires_grad_() for x in tensors), check_forward_ad=True)


@pytest.mark.parametrize("squared", [False, True])
def test_penalty_loss(normal, squared):
    G, f, z = normal(3, 3), normal(6, 3), normal(6, 3).relu() + 0.1
    loss = penalty_loss(G, f, z, complementarity=2.0, nonnegativity=3.0, squared=squared)
    w = z @ G.T + f
    size = torch.square if squared else torch.abs
    torch.testing.assert_close(loss.complementarity, size(z * w).sum(-1).mean())
    torch.testing.assert_close(loss.nonnegativity, size((-w).relu()).sum(-1).mean())
    torch.testing.assert_close(loss.total, 2 * loss.complementarity + 3 * loss.nonnegativity)
    function = lambda *x: penalty_loss(*x, squared=squared).total
    assert torch.autograd.gradcheck(function, tuple(x.requires_grad_() for x in (G, f, z)), check_forward_ad=True)


@pytest.mark.parametrize("hard", [False, True])
def test_bilevel_loss(normal, hard):
    """The optimum satisfies its optimality conditions, and the derivative is that of differences."""
    A = normal(2, 2)
    G, f, B, beta = A @ A.T + torch.eye(2), normal(5, 2), normal(5, 3, 2), 3 * normal(5, 3)
    loss = bilevel_loss(G, f, B, beta, prediction=2.0, complementarity=0.5, violation=4.0, hard=hard)
    assert (loss.status == Status.SOLVED).all()
    x, s, nu = loss.forces, loss.violation, loss.multiplier
    w = x @ G.T + f
    error = beta - (B @ x.unsqueeze(-1)).squeeze(-1)
    value = 2 * (error**2).sum(-1) + 0.5 * (x * w).sum(-1) + (0 if hard else 4 * s.sum(-1))
    torch.testing.assert_close(loss.value, value)
    slope = -4 * (B.mT @ error.unsqueeze(-1)).squeeze(-1) + 0.5 * (x @ (G + G.T) + f) - nu @ G
    assert (x >= 0).all() and (w + s).min() > -1e-9 and (s >= 0).all() and (nu >= 0).all()
    assert slope.min() > -1e-9 and (slope * x).abs().max() < 1e-8 and (nu * (w + s)).abs().max() < 1e-8
    assert (s == 0).all() if hard else nu.max() <= 4 + 1e-9
    function = lambda *x: bilevel_loss(*x, prediction=2.0, complementarity=0.5, violation=4.0, hard=hard).value
    tensors = tuple(x.requires_grad_() for x in (G, f, B, beta))
    assert torch.autograd.gradcheck(function, tensors, check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(function, tensors, check_fwd_over_rev=True)


# Transforms

WEIGHTS = {"prediction": 2.0, "complementarity": 0.5, "violation": 4.0}
CASES = [
    *((direct_loss, {"relu": relu, "squared": squared, "resting": False}) for relu in (False, True) for squared in (False, True)),
    *((penalty_loss, {"squared": squared}) for squared in (False, True)),
    *((bilevel_loss, {**WEIGHTS, "hard": hard}) for hard in (False, True)),
]
each_case = pytest.mark.parametrize("function, options", CASES, ids=lambda x: getattr(x, "__name__", str(x)))


@pytest.fixture
def arguments(normal, function):
    """Two sets of them, each a batch of five."""
    if function is direct_loss:
        return normal(2, 5, 2), normal(2, 5, 2).relu() + 0.1, normal(2, 5, 2)
    A = normal(2, 2, 2)
    G = (A @ A.mT + torch.eye(2)).unsqueeze(1).expand(2, 5, 2, 2).clone()
    if function is penalty_loss:
        return G, normal(2, 5, 2), normal(2, 5, 2).relu() + 0.1
    return G, normal(2, 5, 2), normal(2, 5, 3, 2), 3 * normal(2, 5, 3)


def total_of(function, options):
    """The loss, for a bilevel loss the sum, as a function of tensors alone."""
    return lambda *x: function(*x, **options)[0].sum()


def gradients_of(total, arguments):
    leaves = [x.clone().requires_grad_() for x in arguments]
    return torch.autograd.grad(total(*leaves), leaves)


def assert_near(got, expected):
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, atol=1e-11, rtol=1e-11)


@each_case
def test_a_loss_is_mapped(function, options, arguments):
    mapped = torch.func.vmap(lambda *x: function(*x, **options))(*arguments)
    assert type(mapped) is FUNCTIONS[function.__name__]
    for k in range(2):
        assert_near([x[k] for x in mapped], function(*(x[k] for x in arguments), **options))
    shared = torch.func.vmap(lambda *x: function(*x, **options), in_dims=(None, *[0] * (len(arguments) - 1)))
    assert_near([x[0] for x in shared(arguments[0][0], *arguments[1:])], function(*(x[0] for x in arguments), **options))


@each_case
def test_gradients_by_functions_are_those_of_autograd(function, options, arguments):
    total, numbers = total_of(function, options), tuple(range(len(arguments)))
    gradient = torch.func.grad(total, argnums=numbers)
    mapped = torch.func.vmap(gradient)(*arguments)
    for k in range(2):
        each = [x[k] for x in arguments]
        expected = gradients_of(total, each)
        assert_near(gradient(*each), expected)
        assert_near([x[k] for x in mapped], expected)
        tangents = [x.cos() for x in each]
        slope = sum((g * x).sum() for g, x in zip(expected, tangents))
        assert_near(torch.func.jvp(total, tuple(each), tuple(tangents)), (total(*each), slope))
    leaves = [x.clone().requires_grad_() for x in arguments]
    through_map = torch.autograd.grad(torch.func.vmap(total)(*leaves).sum(), leaves)
    assert_near(through_map, mapped)


@each_case
def test_second_derivatives_by_functions_are_those_of_autograd(function, options, arguments):
    total, each = total_of(function, options), tuple(x[0] for x in arguments)
    numbers = tuple(range(len(each)))
    expected = torch.autograd.functional.hessian(total, each)
    for hessian in (
        torch.func.hessian(total, argnums=numbers),
        torch.func.jacrev(torch.func.grad(total, argnums=numbers), argnums=numbers),
    ):
        for got, row in zip(hessian(*each), expected, strict=True):
            assert_near(got, row)


@each_case
def test_a_loss_is_compiled_with_its_gradient(function, options, arguments):
    torch._dynamo.reset()
    compiled = torch.compile(lambda *x: function(*x, **options), fullgraph=True, backend="aot_eager")
    total = total_of(function, options)
    compiled_total = torch.compile(total, fullgraph=True, backend="aot_eager")
    for batch in (5, 4, 3):  # the second is compiled for any batch
        each = [x[0, :batch] for x in arguments]
        assert_near(compiled(*each), function(*each, **options))
        assert_near(gradients_of(compiled_total, each), gradients_of(total, each))


@pytest.mark.parametrize("hard", [False, True])
def test_an_unsolved_element_keeps_out_of_gradients_by_functions(normal, hard):
    """Those of what it shares with its neighbours."""
    G, f, B, beta = torch.eye(2).double(), normal(3, 2), normal(3, 2), normal(3, 3)
    f[1] = torch.nan

    def total(G, B, f, beta):
        loss = bilevel_loss(G, f, B, beta, hard=hard)
        return torch.where(loss.status == Status.SOLVED, loss.value, 0).sum()

    gradient = torch.func.grad(total, argnums=(0, 1))
    assert_near(gradient(G, B, f, beta), gradient(G, B, f[::2], beta[::2]))


def test_an_unbounded_bilevel_loss_is_infeasible():
    """The friction cone with a negative limit, f_3 < 0."""
    G = torch.tensor([[1.0, -1, 1], [-1, 1, 1], [-1, -1, 0]])
    loss = bilevel_loss(G, torch.tensor([0.0, 0.0, -1.0]), torch.tensor([[1.0, -1.0, 0.0]]), torch.zeros(1))
    assert loss.status == Status.INFEASIBLE and loss.value.isnan()


def test_mistakes_are_named(normal):
    G, f, B, beta = normal(2, 2), normal(2), normal(1, 2), normal(1)
    for arguments, options, message in [
        ((G[:1], f, B, beta), {}, r"G must be \[..., n, n\]; got \[1, 2\]"),
        ((G, f[:1], B, beta), {}, r"f must be \[..., n\] with n = 2; got \[1\]"),
        ((G, f, B, beta), {"prediction": 0.0}, "prediction must be finite and > 0; got 0"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            bilevel_loss(*arguments, **options)
    with pytest.raises(TypeError):
        penalty_loss(G, f, f, 1.0)
