"""The features of PyTorch that an operator has to support, for both solvers."""
import io
import itertools

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap
from torch.utils.checkpoint import checkpoint

from support import (
    K, N, OPTIONS, SOLVERS, WARNINGS_ARE_ERRORS, anomaly_mode, assert_near, assert_same, autocast, basis, check_meta,
    deterministic, gradients, lcp, leaves, loss, normal, problems, saved_as_arrays, split, split_solve, tensor,
    tied_problems, times, values,
)

pytestmark = [pytest.mark.usefixtures("library"), WARNINGS_ARE_ERRORS]


# torch.library


def calls():
    """For each operator and each of its paths, arguments over a batch of three."""
    H, h, v, y, tied = tied_problems(3, free=K, seed=4)
    first, second = normal(3, N, seed=5), normal(3, N, seed=6)
    for options in [*OPTIONS, {"method": "lemke", "tolerance": 1e-6, "max_pivots": 50, "guess": v}]:
        yield "solve", (H, h), options
        yield "_solve_with_basis", (H, h, K), options | {"guess": v[:, K:]}
        yield "solve_mixed", split(H, h), options | {"guess": v[:, K:]}
    yield "certify", (H, h, v), {}
    yield "certify", (H, h, v), {"tolerance": 0.1}
    yield "directional_derivative", (H, h, v, H, first), {}
    yield "gradient_radius", (H, h, v, first), {}
    for equations, tied_active in [(0, False), (0, True), (K, False), (K, True)]:
        states = basis(v, y, equations)
        yield "_piece", (H, h, v, y, states, tied_active), {}
        yield "_tangent", (H, states, first, tied_active), {}
        yield "_adjoint", (H, states, first, second, tied_active), {}
    for equations in [0, K]:
        yield "_path_point", (H, h, v, equations, 0.1), {}
    yield "_path_tangent", (H, 1 + v, 1 + y, first, second), {}
    yield "_path_adjoint", (H, 1 + v, 1 + y, first, second), {}
    for size in [(N, N), (3, N, N)]:
        yield "_sum_outer", (first, second, size), {}


def differentiable(arguments):
    real = lambda x: isinstance(x, torch.Tensor) and x.is_floating_point()
    return [x.clone().requires_grad_() if real(x) else x for x in arguments]


def test_every_operator_passes_opcheck():
    for operator, arguments, options in calls():
        torch.library.opcheck(getattr(lcp, operator).default, differentiable(arguments), options)


def test_meta_tensors_have_the_shapes_of_the_results():
    check_meta(calls())


def test_what_is_not_differentiable_has_no_history():
    M, q = leaves(problems(3))
    z = lcp.solve(M, q)[0]
    assert not lcp.solve(M, q)[2].requires_grad
    others = [*lcp.certify(M, q, z), *lcp.directional_derivative(M, q, z, M, q), lcp.gradient_radius(M, q, z, q)]
    assert not any(x.requires_grad for x in others)
    numbers = lambda q: lcp.certify(M.detach(), q, z.detach())[:3]
    assert_same(jvp(numbers, (q.detach(),), (q.detach(),))[1], (torch.zeros(3).double(),) * 3)


# Modes of autograd


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("mode", [deterministic, anomaly_mode, saved_as_arrays, torch.autograd.graph.save_on_cpu])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_gradients_are_the_same_in_a_mode(solver, options, mode):
    arguments = problems(3)
    expected = gradients(loss(solver, **options), arguments)
    with mode():
        assert_same(gradients(loss(solver, **options), arguments), expected)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_checkpoint_gives_the_same_gradients(solver, reentrant):
    arguments = problems(3)
    inputs = leaves(arguments)
    checkpoint(loss(solver), *inputs, use_reentrant=reentrant).backward()
    assert_same([x.grad for x in inputs], list(gradients(loss(solver), arguments)))


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected in LcpSolve")
@pytest.mark.parametrize("solver, node", [("solve", "LcpSolveBackward"), ("solve_mixed", "LcpSolveMixedBackward")])
def test_anomaly_mode_names_the_solver_whose_gradient_is_nan(solver, node):
    H, h = -torch.eye(N, dtype=torch.float64), -torch.ones(N, dtype=torch.float64)
    total = lambda H, h: values(solver)(H, h)[-1].sum()
    with anomaly_mode(), pytest.raises(RuntimeError, match=f"Function '{node}' returned nan values in its 0th output"):
        gradients(total, (H, h))


@pytest.mark.parametrize("solver", SOLVERS)
def test_without_gradients_nothing_is_recorded(solver):
    arguments = leaves(problems(3))
    with torch.no_grad():
        assert not any(x.requires_grad for x in values(solver)(*arguments))
    with torch.inference_mode():
        results = values(solver)(*arguments)
    assert all(x.is_inference() for x in results)
    assert_same(results, values(solver)(*(x.detach() for x in arguments)))


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_graph_is_used_once_and_inputs_are_not_to_change_under_it(solver):
    inputs = leaves(problems(3))
    total = loss(solver)(*inputs)
    torch.autograd.grad(total, inputs, retain_graph=True)
    torch.autograd.grad(total, inputs)
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        torch.autograd.grad(total, inputs)
    H, h = inputs[0] * 1, inputs[1]
    outputs = lcp.solve(H, h)
    H.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(outputs[0].sum(), inputs)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_forward_mode_takes_duals_of_either_argument(solver, options):
    H, h = problems(3)
    dH, dh = normal(3, N, N, seed=5), normal(3, N, seed=6)
    f = values(solver, **options)
    jacobians = jacrev(f, (0, 1))(H, h)
    expected = [sum(times(x.flatten(-y.dim()), y.flatten()) for x, y in zip(row, (dH, dh))) for row in jacobians]

    def tangents(*duals):
        return [forward_ad.unpack_dual(x).tangent for x in f(*duals)]

    with forward_ad.dual_level():
        one = tangents(forward_ad.make_dual(H, dH), h)
        other = tangents(H, forward_ad.make_dual(h, dh))
        both = tangents(forward_ad.make_dual(H, dH), forward_ad.make_dual(h, dh))
        assert all(x is None for x in tangents(H, h))
    assert_near([x + y for x, y in zip(one, other)], expected)
    assert_near(both, expected)


def test_autocast_solves_in_float32_what_comes_out_of_a_linear_layer():
    torch.manual_seed(0)
    linear = torch.nn.Linear(N, N)
    H, h = (x.float().requires_grad_() for x in problems(3))
    with autocast():
        M, q = H @ torch.eye(N), linear(h)
        assert M.dtype == q.dtype == torch.bfloat16
        z, w, status = lcp.solve(M, q, guess=q)
        mixed = split_solve(M, q)
        others = [*lcp.certify(M, q, z)[:3], *lcp.directional_derivative(M, q, z, M, q)[:2]]
        others.append(lcp.gradient_radius(M, q, z, q))
        exact = lcp.solve(M.double(), q.double())[0]
    assert_same((z, w, status), lcp.solve(M.float(), q.float()))
    assert_same(mixed, split_solve(M.float(), q.float()))
    assert {x.dtype for x in others} == {torch.float32} and exact.dtype == torch.float64
    total = z.sum() + sum(x.sum() for x in mixed[:3])
    for x in torch.autograd.grad(total, (H, h, linear.weight)):
        assert x.dtype == torch.float32 and x.isfinite().all() and x.any()


# torch.func


@pytest.fixture
def no_fallback():
    """Lets torch.vmap raise where an operator has no rule for it, instead of running it element by element."""
    torch._C._functorch._set_vmap_fallback_enabled(False)
    yield
    torch._C._functorch._set_vmap_fallback_enabled(True)


def one_by_one(f, in_dims, arguments):
    size = next(x.shape[d] for x, d in zip(arguments, in_dims) if d is not None)
    each = [f(*(x if d is None else x.select(d, i) for x, d in zip(arguments, in_dims))) for i in range(size)]
    return tuple(map(torch.stack, zip(*each)))


def test_vmap_of_every_operator_is_the_loop(no_fallback):
    for operator, arguments, options in calls():
        if operator == "_sum_outer" and len(arguments[2]) == 3:
            continue  # its arguments have a batch dimension already
        guess = options.get("guess", arguments[1])
        constants = {name: x for name, x in options.items() if name != "guess"}
        tensors = [x for x in arguments if isinstance(x, torch.Tensor)]
        rest = arguments[len(tensors) :]

        def f(guess, *tensors):
            proposal = {"guess": guess} if "guess" in options else {}
            result = getattr(lcp, operator)(*tensors, *rest, **constants, **proposal)
            return result if isinstance(result, tuple) else (result,)

        in_dims = [0] * (1 + len(tensors))
        assert_same(vmap(f)(guess, *tensors), one_by_one(f, in_dims, [guess, *tensors]))


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0), (2, 1), (-1, -1)])
@pytest.mark.parametrize("solver", SOLVERS)
def test_vmap_takes_batches_of_any_rank_beside_the_mapped_dimension(solver, in_dims, no_fallback):
    solve = {"solve": lcp.solve, "solve_mixed": split_solve}[solver]
    batches = [lambda x: x, lambda x: x[:, 0], lambda x: x[:, 0, 0], lambda x: x[:, :1], lambda x: x[:, :, :1]]
    for some, others in itertools.product(batches, repeat=2):
        arguments, dims = [], []
        for x, batch, dim in zip(problems(3, 4, 2), (some, others), in_dims):
            x = batch(x)
            dims.append(None if dim is None else dim % x.dim())
            arguments.append(x[0] if dim is None else x.movedim(0, dim).contiguous())
        assert_same(vmap(solve, in_dims=in_dims)(*arguments), one_by_one(solve, dims, arguments))


@pytest.mark.parametrize("solver", SOLVERS)
def test_vmap_nests_chunks_guesses_and_may_be_empty(solver, no_fallback):
    H, h = problems(3, 2)
    solve = {"solve": lcp.solve, "solve_mixed": split_solve}[solver]
    expected = solve(H, h)
    guess = torch.ones_like(expected[-2])
    assert_same(vmap(vmap(solve))(H, h), expected)
    columns = vmap(vmap(solve, in_dims=(None, 0)), in_dims=(None, 1))(H[0, 0], h)
    assert_same(columns, tuple(x.movedim(0, 1) for x in solve(H[0, 0], h)))
    assert_same(vmap(solve, chunk_size=2)(H, h), expected)
    assert_same(vmap(vmap(lambda H, h, guess: solve(H, h, guess=guess)))(H, h, guess), solve(H, h, guess=guess))
    assert [x.shape for x in vmap(solve)(H[:0], h[:0])] == [x[:0].shape for x in expected]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_transforms_of_torch_func_agree_with_autograd(solver, options, no_fallback):
    arguments = problems(3)
    f = loss(solver, **options)
    expected = gradients(f, arguments)
    assert_same(grad(f, (0, 1))(*arguments), expected)
    assert_same(vjp(f, *arguments)[1](tensor(1.0)), expected)
    assert_same(vmap(grad(f, (0, 1)))(*arguments), expected)
    assert_near(jacrev(f, (0, 1))(*arguments), expected)
    assert_near(jacfwd(f, (0, 1))(*arguments), expected)
    tangent = sum((x * y).sum() for x, y in zip(expected, arguments))
    assert_near(jvp(f, arguments, arguments)[1], tangent)
    assert_near(vmap(lambda H, h: jvp(f, (H, h), (H, h))[1])(*arguments).sum(), tangent)
    block = hessian(f, (0, 1))(arguments[0][1], arguments[1][1])
    assert_near(torch.utils._pytree.tree_map(lambda x: x[1], vmap(hessian(f, (0, 1)))(*arguments)), block)


class Layer(torch.nn.Module):
    def __init__(self, H):
        super().__init__()
        self.H = torch.nn.Parameter(H.clone())

    def forward(self, h):
        return lcp.solve(self.H, h)[0]


def test_a_module_is_called_with_other_parameters_and_as_an_ensemble(no_fallback):
    H, h = problems(3)
    layers = [Layer(x) for x in H]
    total = lambda parameters, layer: functional_call(layer, parameters, (h,)).sin().sum()
    for layer in layers:
        (expected,) = torch.autograd.grad(layer(h).sin().sum(), layer.H)
        assert_same(grad(total)(dict(layer.named_parameters()), layer)["H"], expected)
    parameters, buffers = stack_module_state(layers)
    ensemble = vmap(lambda p, b, h: functional_call(layers[0], (p, b), (h,)), in_dims=(0, 0, None))
    assert_same(ensemble(parameters, buffers, h), torch.stack([layer(h) for layer in layers]))


@pytest.mark.parametrize(
    "M, q, message",
    [
        (torch.ones(5, 1), -torch.ones(5, 1), r"M must be \[..., n, n\]; got \[1\]"),
        (torch.ones(5, 1, 1), -torch.ones(5), r"q must be \[..., n\] with M's n = 1; got \[\]"),
        (torch.ones(5, 2, 2), -torch.ones(5, 3), r"q must be \[..., n\] with M's n = 2; got \[3\]"),
    ],
)
def test_vmap_checks_the_shapes_that_its_function_sees(M, q, message):
    with pytest.raises(RuntimeError, match=message):
        vmap(lcp.solve)(M, q)


def test_a_tensor_that_has_left_its_vmap_is_refused():
    H, h = problems(3)
    kept = []
    vmap(lambda h: kept.append(h) or h)(h)
    with pytest.raises(RuntimeError, match="lcp::solve got a tensor that has left its torch.vmap"):
        lcp.solve(H[0], kept[0])


# TorchScript and torch.export


def scripted(H: torch.Tensor, h: torch.Tensor):
    z, w, status = torch.ops.lcp.solve(H, h, ties="midpoint", method="lemke", max_pivots=50)
    x, y, v, mixed_status = torch.ops.lcp.solve_mixed(
        H[..., :2, :2], H[..., :2, 2:], H[..., 2:, :2], H[..., 2:, 2:], h[..., :2], h[..., 2:], kappa=0.1
    )
    return z.sin().sum() + (w * w).sum() + x.sin().sum() + (y * y).sum() + v.sin().sum()


def test_torchscript_is_saved_loaded_and_differentiated():
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(scripted), file)
    file.seek(0)
    loaded = torch.jit.load(file)
    for batch in [(3,), (3,), (3,), (2, 2), (0,)]:  # the first runs only observe
        arguments = problems(*batch)
        assert_same(loaded(*arguments), scripted(*arguments))
        assert_same(gradients(loaded, arguments), gradients(scripted, arguments))
    arguments = problems(3)
    if torch.get_default_device().type == "cpu":  # TorchScript's fuser for GPUs refuses every function there
        assert_near(jvp(loaded, arguments, arguments)[1], jvp(scripted, arguments, arguments)[1])
    assert_same(vmap(loaded)(*arguments), vmap(scripted)(*arguments))
    assert_near(gradients(torch.jit.trace(scripted, problems(2)), arguments), gradients(scripted, arguments))


class Solver(torch.nn.Module):
    def __init__(self, solver, **options):
        super().__init__()
        self.values = values(solver, **options)

    def forward(self, H, h):
        return self.values(H, h)


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_exported_program_is_saved_loaded_and_differentiated_for_any_batch(solver):
    batch = torch.export.Dim("batch")
    module = Solver(solver, ties="midpoint")
    program = torch.export.export(module, problems(3), dynamic_shapes=({0: batch}, {0: batch}))
    assert f"lcp.{solver}.default" in [str(node.target) for node in program.graph.nodes]
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for arguments in [problems(3), problems(7)]:
        assert_same(list(loaded(*arguments)), list(module(*arguments)))
        total = lambda f: lambda H, h: sum((x.sin() + x * x).sum() for x in f(H, h))
        assert_same(gradients(total(loaded), arguments), gradients(total(module), arguments))
    with pytest.raises(AssertionError, match="Guard failed"):
        loaded(*problems(3, 2))
