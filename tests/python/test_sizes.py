"""Batches of unequal size: each element gets what it would get alone, and nothing beyond its size is read."""
import io

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import vmap

from support import (
    NAN, WARNINGS_ARE_ERRORS, assert_near, assert_same, check_meta, lcp, leaves, normal, tensor, tied_problems,
)

pytestmark = [pytest.mark.usefixtures("library"), WARNINGS_ARE_ERRORS]

SIZES = [3, 0, 5, 1, 3, 12, 2, 12]  # 12 unknowns are solved by other kernels than a few


def lcps(sizes=SIZES, seed=0):
    problems = []
    for k, n in enumerate(sizes):
        B = normal(n, n, seed=seed + 3 * k)
        problems.append([B @ B.mT + torch.eye(n, dtype=torch.float64), normal(n, seed=seed + 3 * k + 1)])
    return problems


def contacts(sizes=(2, 0, 3, 1, 2), compliant=False):
    """Contacts that slide and stick, of bodies with six velocities."""
    problems = []
    for k, c in enumerate(sizes):
        B, J = normal(6, 6, seed=7 * k), normal(3 * c, 6, seed=7 * k + 1)
        own = [B @ B.mT + torch.eye(6, dtype=torch.float64), normal(6, seed=7 * k + 2), J, normal(3 * c, seed=7 * k + 3)]
        if compliant:
            R = 0.1 + normal(c, 2, seed=7 * k + 4).abs()
            own.append(R[:, [0, 0, 1]].flatten())
        problems.append([*own, 0.5 + 0 * normal(c)])
    return problems


PROBLEMS = {"solve": lcps, "solve_contact": lambda: contacts(compliant=True), "solve_friction": contacts}
EVERY = pytest.mark.parametrize("kind", PROBLEMS)


def padded(problems, fill=NAN):
    """The problems as one batch with `fill` beyond their sizes, and their sizes."""
    count = len(problems[0])
    batch = [lcp.pad(list(x), x[0].dim())[0] for x in zip(*problems)]
    exists = [lcp.pad([torch.ones_like(x) for x in each], each[0].dim())[0] > 0 for each in zip(*problems)]
    sizes = tensor([len(problem[count - 1]) for problem in problems]).long()
    return [torch.where(e, x, fill) for e, x in zip(exists, batch)], sizes


def weights(results):
    return [1 + k + torch.arange(x.shape[-1], dtype=torch.float64) for k, x in enumerate(results)]


def gradients(results, arguments):
    return torch.autograd.grad(sum((w * x).sum() for w, x in zip(weights(results), results)), arguments)


def cut(x, like):
    """What `like`, of one problem, has of the padded x."""
    return x[tuple(slice(0, n) for n in like.shape)]


def beyond(x, like):
    """The padded x with 0 in place of what `like` has of it."""
    rest = x.detach().clone()
    cut(rest, like).zero_()
    return rest


@pytest.mark.parametrize("kind, options", [
    *((kind, {}) for kind in PROBLEMS), *((kind, {"guess": True}) for kind in PROBLEMS),
    ("solve", {"kappa": 0.1}), ("solve_friction", {"kappa": 0.1}),
])
def test_each_element_gets_the_bits_that_it_gets_alone(kind, options):
    make, solver = PROBLEMS[kind], getattr(lcp, kind)
    problems = make()
    arguments, sizes = padded(problems)
    inputs = leaves(arguments)
    start = lambda x: {"guess": torch.full_like(x, 0.1)} if "guess" in options else options
    first = 3 if kind == "solve_friction" else 1
    results = solver(*inputs, sizes=sizes, **start(arguments[first].nan_to_num()))
    found = gradients(results[:2], inputs)
    for b, problem in enumerate(problems):
        own = leaves(problem)
        alone = solver(*own, **start(own[first].detach()))
        assert alone[2] == 0
        for x, y in zip((*results, *found), (*alone, *gradients(alone[:2], own))):
            assert_same(cut(x[b], y), y)
            assert not beyond(x[b], y).any()


@EVERY
def test_sizes_give_the_same_bits_in_float32_and_for_any_number_of_threads(kind):
    make, solver = PROBLEMS[kind], getattr(lcp, kind)
    problems = [[x.float() for x in problem] for problem in 10 * make()]
    arguments, sizes = padded(problems)
    inputs = leaves(arguments)
    expected = solver(*inputs, sizes=sizes)
    slopes = gradients(expected[:2], inputs)
    for b, problem in enumerate(problems):
        own = leaves(problem)
        alone = solver(*own)
        for x, y in zip((*expected, *slopes), (*alone, *gradients(alone[:2], own))):
            assert_same(cut(x[b], y), y)
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            again = leaves(arguments)
            results = solver(*again, sizes=sizes)
            assert_same(results, expected)
            assert_same(gradients(results[:2], again), slopes)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("method", ["auto", "lemke", "enumeration", "newton_min", "central_path"])
def test_every_method_has_sizes(method):
    problems = lcps([3, 0, 5, 1, 3, 2])
    (M, q), sizes = padded(problems)
    results = lcp.solve(M, q, method=method, sizes=sizes)
    for b, problem in enumerate(problems):
        for x, y in zip(results, lcp.solve(*problem, method=method)):
            assert_same(cut(x[b], y), y)
            assert not beyond(x[b], y).any()


@pytest.mark.parametrize("options", [{"ties": t} for t in ("inactive", "active", "midpoint")] + [{"kappa": 0.1}])
def test_gradients_of_every_kind_have_sizes(options):
    M, q, *_ = tied_problems(4, n=4)
    sizes = tensor([4, 2, 3, 0]).long()
    inputs = leaves([M, q])
    found = gradients(lcp.solve(*inputs, sizes=sizes, **options)[:2], inputs)
    for b, n in enumerate(sizes):
        own = leaves([M[b, :n, :n], q[b, :n]])
        for x, y in zip(found, gradients(lcp.solve(*own, **options)[:2], own)):
            assert_same(cut(x[b], y), y)


@EVERY
def test_derivatives_are_those_of_differences(kind):
    make, solver = PROBLEMS[kind], getattr(lcp, kind)
    arguments, sizes = padded(make()[:3], fill=0.3)
    options = {} if kind == "solve" else {"tolerance": 1e-14}
    exact = lambda *x: solver(*x, sizes=sizes, **options)[:2]
    inputs = leaves(arguments)
    assert gradcheck(exact, inputs, check_forward_ad=True)
    assert gradgradcheck(exact, inputs, check_fwd_over_rev=True)


def test_the_smoothed_derivative_has_sizes_in_every_order():
    (M, q), sizes = padded(lcps()[:4], fill=0.3)
    smooth = lambda *x: lcp.solve(*x, sizes=sizes, kappa=0.1)[:2]
    jacobian = torch.func.jacfwd(lambda y: smooth(M, y)[0].sum(0))(q)
    reverse = torch.func.jacrev(lambda y: smooth(M, y)[0].sum(0))(q)
    assert_near(jacobian, reverse)
    hessian = torch.func.hessian(lambda y: smooth(M, y)[0].sin().sum())(q)
    assert_near(hessian, torch.func.jacrev(torch.func.jacrev(lambda y: smooth(M, y)[0].sin().sum()))(q))


@EVERY
def test_tangents_beyond_are_not_read(kind):
    make, solver = PROBLEMS[kind], getattr(lcp, kind)
    problems = make()
    arguments, sizes = padded(problems)
    given, _ = padded([[0.1 * torch.ones_like(x) for x in problem] for problem in problems])
    if kind == "solve":
        given = [x.nan_to_num() for x in given]
    found = torch.func.jvp(lambda *x: solver(*x, sizes=sizes)[:2], tuple(arguments), tuple(given))[1]
    for b, problem in enumerate(problems):
        own = tuple(0.1 * torch.ones_like(x) for x in problem)
        for x, y in zip(found, torch.func.jvp(lambda *x: solver(*x)[:2], tuple(problem), own)[1]):
            assert_near(cut(x[b], y), y)
            assert x[b].isfinite().all()


@EVERY
def test_sizes_work_through_all_of_pytorch(kind):
    make, solver = PROBLEMS[kind], getattr(lcp, kind)
    arguments, sizes = padded(make(), fill=0.3)
    expected = solver(*arguments, sizes=sizes)
    for again in (
        vmap(lambda s, *x: solver(*x, sizes=s))(sizes, *arguments),
        torch.compile(lambda s, *x: solver(*x, sizes=s), fullgraph=True, backend="aot_eager")(sizes, *arguments),
        [x.flatten(0, 1) for x in solver(*(x.unflatten(0, (1, -1)) for x in arguments), sizes=sizes[None])],
    ):
        assert_same(tuple(again), tuple(expected))
    inputs = leaves(arguments)
    compiled = torch.compile(lambda *x: solver(*x, sizes=sizes)[:2], fullgraph=True, backend="aot_eager")
    assert_same(gradients(compiled(*inputs), inputs), gradients(solver(*inputs, sizes=sizes)[:2], inputs))
    check_meta([(kind, arguments, {"sizes": sizes})])


def test_a_shared_problem_may_have_many_sizes():
    (M, q), = lcps([4])
    z = lcp.solve(M, q, sizes=tensor([[1, 4, 0], [2, 4, 3]]).long())[0]
    for b, n in enumerate([1, 4, 0, 2, 4, 3]):
        assert_same(z.flatten(0, 1)[b, :n], lcp.solve(M[:n, :n], q[:n])[0])


def test_certificates_have_sizes():
    problems = lcps()
    (M, q), sizes = padded(problems)
    z = lcp.solve(M, q, sizes=sizes)[0]
    certificate = lcp.certify(M, q, z, sizes=sizes)
    for b, (own_M, own_q) in enumerate(problems):
        own = lcp.certify(own_M, own_q, lcp.solve(own_M, own_q)[0])
        for x, y in zip(certificate, own):
            assert_same(cut(x[b], y), y)
    for kind, certify, used in (("solve_friction", lcp.certify_friction, 2), ("solve_contact", lcp.certify_contact, 1)):
        problems, solver = PROBLEMS[kind](), getattr(lcp, kind)
        arguments, sizes = padded(problems)
        certificate = certify(*arguments, *solver(*arguments, sizes=sizes)[:used], sizes=sizes)
        for b, problem in enumerate(problems):
            for x, y in zip(certificate, certify(*problem, *solver(*problem)[:used])):
                assert_same(x[b], y)


@EVERY
def test_wrong_sizes_are_named(kind):
    make, solver = PROBLEMS[kind], getattr(lcp, kind)
    arguments, sizes = padded(make(), fill=0.0)
    most = arguments[-1].shape[-1]
    for bad, message in (
        (sizes + most, rf"sizes must be 0..{most}; got"),
        (sizes - 1, rf"sizes must be 0..{most}; got -1"),
        (sizes.double(), r"sizes must be Long; got Double"),
        (sizes[:2], r"and sizes \[2\] must broadcast"),
    ):
        with pytest.raises(RuntimeError, match=message):
            solver(*arguments, sizes=bad)


def test_solve_mixed_has_no_sizes():
    with pytest.raises(RuntimeError, match="sizes must be None where there are equations"):
        lcp._solve_with_basis(*lcps([2])[0], 1, sizes=tensor([2]).long())


# pad and unpad


def test_pad_and_unpad_are_inverse_and_differentiable():
    parts = leaves([normal(n, seed=n) for n in (3, 0, 2)])
    values, sizes = lcp.pad(parts, 1)
    assert_same(sizes, tensor([3, 0, 2]).long())
    assert_same(values, torch.stack([torch.cat([x, torch.zeros(3 - len(x), dtype=x.dtype)]) for x in parts]))
    for x, y in zip(lcp.unpad(values, sizes), parts):
        assert_same(x, y)
    assert gradcheck(lambda *x: lcp.unpad(lcp.pad(list(x), 1)[0], sizes), parts)


def test_pad_brings_every_dimension_to_the_largest():
    values, sizes = lcp.pad([torch.ones(2, 1, 3), torch.ones(2, 4, 2)], 2)
    assert values.shape == (2, 2, 4, 3)
    assert values[0].sum() == 6 and values[1].sum() == 16
    assert_same(sizes, torch.tensor([1, 4]))


def test_pad_continues_a_diagonal():
    """Scenes with different numbers of bodies: the velocities that one lacks have a mass of their own, and rest."""
    values, _ = lcp.pad([2 * torch.eye(1), 3 * torch.eye(3)], 2, diagonal=1.0)
    assert_same(values[0], torch.diag(torch.tensor([2.0, 1, 1])))
    assert_same(values[1], 3 * torch.eye(3))


@pytest.mark.parametrize(
    "arguments, options, message",
    [
        (([], 1), {}, "tensors must be at least one; got none"),
        (([torch.ones(2)], 2), {}, r"dims must be 1..1, the dimensions of tensors\[0\]; got 2"),
        (([torch.ones(2)], 1), {"diagonal": 1.0}, "dims must be 2 where diagonal is not 0; got 1"),
        (([torch.ones(2, 3)], 2), {"diagonal": 1.0}, r"tensors\[0\] must be square where diagonal is not 0; got \[2, 3\]"),
        (([torch.ones(2), torch.ones(2).double()], 1), {}, r"tensors\[1\] must be Float .* got Double"),
        (([torch.ones(2, 3), torch.ones(3, 3)], 1), {}, r"tensors\[1\] must be \[2\] with 1 dimensions .* got \[3, 3\]"),
    ],
)
def test_pad_names_what_does_not_fit(arguments, options, message):
    with pytest.raises(RuntimeError, match=message):
        lcp.pad(*arguments, **options)


@pytest.mark.parametrize(
    "sizes, message",
    [
        ([1], r"sizes must be \[...\] for x \[..., n\]; got \[1\] for \[2, 3\]"),
        ([1, 4], r"sizes must be 0..3, the size of x's rows; got 4"),
    ],
)
def test_unpad_names_what_does_not_fit(sizes, message):
    with pytest.raises(RuntimeError, match=message):
        lcp.unpad(torch.ones(2, 3), torch.tensor(sizes))


def test_the_helpers_and_sizes_are_torchscript():
    @torch.jit.script
    def solve_all(M: list[torch.Tensor], q: list[torch.Tensor]) -> list[torch.Tensor]:
        values, sizes = torch.ops.lcp.pad(q, 1)
        z, w, status = torch.ops.lcp.solve(torch.ops.lcp.pad(M, 2)[0], values, sizes=sizes)
        return torch.ops.lcp.unpad(z, sizes)

    file = io.BytesIO()
    torch.jit.save(solve_all, file)
    file.seek(0)
    problems = lcps()
    for z, (M, q) in zip(torch.jit.load(file)(*map(list, zip(*problems))), problems):
        assert_same(z, lcp.solve(M, q)[0])


@EVERY
def test_compiled_autograd_knows_sizes(kind):
    make, solver = PROBLEMS[kind], getattr(lcp, kind)
    arguments, sizes = padded(make(), fill=0.3)
    inputs = leaves(arguments)
    results = solver(*inputs, sizes=sizes)[:2]
    torch._dynamo.reset()
    with torch._dynamo.compiled_autograd._enable(lambda graph: torch.compile(graph, backend="eager", fullgraph=True)):
        found = gradients(results, inputs)
    again = leaves(arguments)
    assert_same(found, gradients(solver(*again, sizes=sizes)[:2], again))
