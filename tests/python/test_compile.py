"""torch.compile and compiled autograd, for both solvers."""
import contextlib
import itertools

import pytest
import torch
from torch._dynamo import compiled_autograd
from torch._dynamo.utils import counters
from torch._inductor.utils import fresh_cache
from torch.autograd import forward_ad
from torch.func import grad, hessian, jacfwd, jacrev, vmap
from torch.utils.checkpoint import checkpoint

from runs import LONG_TESTS
from support import (
    N, OPTIONS, TIES, WARNINGS_ARE_ERRORS, anomaly_mode, assert_near, basis, deterministic, gradients, lcp, leaves,
    loss, normal, problems, saved_as_clones, tied_problems,
)

pytestmark = [pytest.mark.usefixtures("library"), WARNINGS_ARE_ERRORS]


@pytest.fixture
def compilers():
    """Compilers that know nothing of other tests and leave nothing behind."""
    torch._dynamo.reset()
    compiled_autograd.reset()
    counters.clear()
    alone = torch._inductor.config.patch({
        "compile_threads": 1,
        "cpp_cache_precompile_headers": False,
        "cpp.vec_isa_ok": True,  # no trial of the processor's vector instructions, which compiles a program of its own
    })
    with fresh_cache(), alone:
        yield
    torch._dynamo.reset()


def graphs():
    return counters["stats"]["unique_graphs"]


def compiled(f, backend):
    return torch.compile(f, backend=backend, fullgraph=True, dynamic=True)


def both_solvers(*arguments, **options):
    return loss("solve", **options)(*arguments) + loss("solve_mixed", **options)(*arguments)


@pytest.mark.parametrize(
    "backend, options", [("eager", {}), *itertools.product(["aot_eager"], OPTIONS), *([("inductor", {})] if LONG_TESTS else [])]
)
def test_a_compiled_function_has_the_same_value_and_gradients_for_any_batch(backend, options, compilers):
    f = lambda H, h: both_solvers(H, h, **options)
    g = compiled(f, backend)
    for batch in [6, 7]:
        arguments = problems(batch)
        assert_near(gradients(g, arguments), gradients(f, arguments))
        assert_near(g(*leaves(arguments)).detach(), f(*arguments))
    assert graphs() == 1


def test_options_are_compiled_into_graphs_of_their_own(compilers):
    H, h, _, _, tied = tied_problems(6, seed=4)
    assert tied.any()
    g = compiled(lambda H, h, ties: loss("solve", ties=ties)(H, h), "aot_eager")
    for ties in TIES + TIES:
        f = loss("solve", ties=ties)
        assert_near(gradients(lambda H, h: g(H, h, ties), (H, h)), gradients(f, (H, h)))
    assert graphs() == len(TIES)


@pytest.mark.parametrize("transform", [vmap, lambda f: vmap(grad(f)), jacrev, jacfwd, hessian])
def test_transforms_of_torch_func_are_compiled(transform, compilers):
    f = transform(both_solvers)
    arguments = problems(6)
    assert_near(compiled(f, "aot_eager")(*arguments), f(*arguments))


def test_vmap_is_compiled_with_gradients(compilers):
    f = lambda H, h: vmap(both_solvers)(H, h).sum()
    g = compiled(f, "aot_eager")
    for batch in [6, 7]:
        arguments = problems(batch)
        assert_near(gradients(g, arguments), gradients(f, arguments))


def test_duals_and_autocast_are_compiled(compilers):
    torch.manual_seed(0)
    linear = torch.nn.Linear(N, N)

    def mixed_precision(H, h):
        with torch.autocast("cpu", torch.bfloat16):
            return lcp.solve(H @ torch.eye(N), linear(h))[0].sum()

    def tangent(H, h):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(both_solvers(forward_ad.make_dual(H, H), forward_ad.make_dual(h, h))).tangent

    arguments = problems(6)
    assert_near(compiled(tangent, "aot_eager")(*arguments), tangent(*arguments))
    arguments = [x.float() for x in arguments]
    assert_near(gradients(compiled(mixed_precision, "aot_eager"), arguments), gradients(mixed_precision, arguments))


# Compiled autograd


def compile_backward(backend, fullgraph=True):
    compiler = lambda graph: torch.compile(graph, backend=backend, fullgraph=fullgraph, dynamic=True)
    return compiled_autograd._enable(compiler, dynamic=True)


def compiled_gradients(f, arguments, backend, mode=contextlib.nullcontext, **options):
    inputs = leaves(arguments)
    with mode():
        total = f(*inputs)
    with compile_backward(backend, **options):
        return torch.autograd.grad(total, inputs)


@pytest.mark.parametrize(
    "backend, solver, options",
    [
        *itertools.product(["eager"], ["solve"], OPTIONS),
        *itertools.product(["aot_eager"], ["_solve_with_basis"], OPTIONS),
        ("inductor", "solve", {}),
    ],
)
def test_compiled_autograd_gives_the_same_gradients_for_any_batch(backend, solver, options, compilers):
    f = loss(solver, **options)
    for batch in [6, 7]:
        arguments = problems(batch)
        assert_near(compiled_gradients(f, arguments, backend), gradients(f, arguments))
    assert counters["compiled_autograd"]["captures"] == 1


def test_each_operator_has_a_node_of_its_own_name_in_the_graph_of_compiled_autograd(compilers):
    def total(H, h):
        direct = sum(x.sum() for x in lcp.solve(H, h)[:2])
        mixed = sum(x.sum() for x in lcp._solve_with_basis(H, h, 0)[:2])
        z, w = (x.detach() for x in lcp.solve(H, h)[:2])
        return direct + mixed + lcp._piece(H, h, z, w, basis(z, w), True)[0].sum()

    names = []
    inputs = leaves(problems(3))
    value = total(*inputs)
    record = lambda graph: names.extend(node.name for node in graph.graph.nodes) or graph
    with compiled_autograd._enable(record, dynamic=True):
        torch.autograd.grad(value, inputs)
    for name in ["lcp_solve_backward", "lcp_solve_mixed_backward", "lcp_piece_backward"]:
        assert any(name in node for node in names), names


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_autograd_does_not_confuse_what_nodes_were_made_with(backend, compilers):
    H, h, _, _, _ = tied_problems(1, seed=4)
    weights = normal(2, N, seed=5)
    kinds = [(0, "inactive"), (0, "active"), (1, "inactive"), (1, "active"), (2, "active")]
    for equations, ties in kinds + kinds:
        f = lambda H, h: sum((x * y).sum() for x, y in zip(lcp._solve_with_basis(H, h, equations, ties=ties)[:2], weights))
        assert_near(compiled_gradients(f, (H, h), backend), gradients(f, (H, h)))
    assert counters["compiled_autograd"]["captures"] == len({ties for _, ties in kinds})  # the basis is a tensor


def often(f, inputs, backend, order):
    """The order-th derivative of a number, each by compiled autograd."""
    result = f(*inputs)
    for k in range(order):
        with compile_backward(backend) if backend else contextlib.nullcontext():
            result = torch.autograd.grad(result, inputs, create_graph=k < order - 1)
        result = result if k == order - 1 else sum((x.sin() * x).sum() for x in result)
    return result


@pytest.mark.parametrize("backend, order, options", [("eager", 3, {}), ("aot_eager", 2, {"kappa": 0.1})])
def test_compiled_autograd_differentiates_again(backend, order, options, compilers):
    f, inputs = lambda H, h: lcp.solve(H, h, **options)[0].square().sum(), leaves(problems(3))
    assert_near(often(f, inputs, backend, order), often(f, inputs, None, order))


@pytest.mark.parametrize(
    "mode, fullgraph",
    [(anomaly_mode, True), (deterministic, True), (saved_as_clones, True), (torch.autograd.graph.save_on_cpu, False)],
)
@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_compiled_autograd_works_in_a_mode(mode, fullgraph, compilers):
    arguments, f = problems(3), lambda H, h: lcp.solve(H, h)[0].square().sum()
    assert_near(compiled_gradients(f, arguments, "eager", mode, fullgraph=fullgraph), gradients(f, arguments))


def test_compiled_autograd_works_with_a_checkpoint(compilers):
    arguments, f = problems(3), lambda H, h: lcp.solve(H, h)[0].square().sum()
    checkpointed = lambda H, h: checkpoint(f, H, h, use_reentrant=False)
    assert_near(compiled_gradients(checkpointed, arguments, "eager", fullgraph=False), gradients(f, arguments))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_whole_training_step_is_compiled(backend, compilers):
    def step(H, h):
        both_solvers(H, h).backward()

    arguments = problems(6)
    inputs = leaves(arguments)
    with torch._dynamo.config.patch(compiled_autograd=True):
        torch.compile(step, backend=backend)(*inputs)
    assert_near([x.grad for x in inputs], list(gradients(both_solvers, arguments)))
    assert counters["compiled_autograd"]["captures"] == 1


# Limits of PyTorch: the errors are the same for PyTorch's own operators


def sine(H, h):
    return (h.sin() * h).sum() + (H.sin() * H).sum()


WHOSE = pytest.mark.parametrize("f", [lambda H, h: loss("solve")(H, h), sine], ids=["lcp", "PyTorch"])


@WHOSE
def test_pytorch_has_no_third_order_of_compiled_autograd_with_aot(f, compilers):
    with pytest.raises(RuntimeError, match="torch.compile does not currently support higher order gradients"):
        often(f, leaves(problems(3)), "aot_eager", 3)


@WHOSE
def test_pytorch_has_no_second_backward_of_a_compiled_function(f, compilers):
    inputs = leaves(problems(3))
    with torch._functorch.config.patch(donated_buffer=False):  # it asks for that first
        first = torch.autograd.grad(compiled(f, "aot_eager")(*inputs), inputs, create_graph=True)
    with pytest.raises(RuntimeError, match="aot_autograd does not currently support double backward"):
        torch.autograd.grad(first[0].sum(), inputs)


@WHOSE
def test_pytorch_has_no_compiled_autograd_of_a_tangent(f, compilers):
    inputs = leaves(problems(3))
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(f(*(forward_ad.make_dual(x, x.detach()) for x in inputs))).tangent
        with pytest.raises(NotImplementedError, match="compiled_args not implemented: torch::autograd::Identity"):
            with compile_backward("eager"):
                torch.autograd.grad(tangent, inputs)


@WHOSE
def test_pytorch_has_no_compiled_autograd_of_save_on_cpu_in_one_graph(f, compilers):
    with pytest.raises(torch._dynamo.exc.Unsupported, match="save_on_cpu.__init__.<locals>.unpack_from_cpu"):
        compiled_gradients(f, problems(3), "eager", torch.autograd.graph.save_on_cpu)


@WHOSE
def test_pytorch_has_no_transforms_of_a_compiled_function(f, compilers):
    for transform in [grad, vmap, jacrev]:
        match = r"Calling torch.func.\w+\(compiled_fn\) function from eager mode is not supported"
        with pytest.raises(torch._dynamo.exc.Unsupported, match=match):
            transform(compiled(f, "aot_eager"))(*problems(3))
