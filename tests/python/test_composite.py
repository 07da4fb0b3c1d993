"""Operators made of others that tracing sees as one: csrc/ops/composite.h, by rollouts of bodies."""
import pytest
import torch
from support import WARNINGS_ARE_ERRORS, assert_same, lcp, normal, tensor

pytestmark = [pytest.mark.usefixtures("library"), WARNINGS_ARE_ERRORS]

STATE_SIZES = (3, 4, 3, 3)
OPTIONS = {"formulation": "exact_cone", "substeps": 2, "directions": 4, "tolerance": 1e-9}


def state(*batch, bodies=1):
    """Dumbbells that touch the ground with both balls, or nearly, and slide."""
    position, orientation, velocity, omega = (normal(*batch, bodies, k, seed=k) for k in STATE_SIZES)
    position[..., 2] = 0.1
    orientation = tensor([1.0, 0, 0, 0]) + 0.01 * orientation
    velocity = tensor([3.0, 0, -1]) + 0.1 * velocity
    return position, orientation / orientation.norm(dim=-1, keepdim=True), velocity, 0.1 * omega


def roll_out(start, mu, steps=3, batch=(1,), bodies=1, device="cpu"):
    u = torch.zeros(steps, *batch, bodies, 6, dtype=torch.float64)
    centers, radii = tensor([[0.2, 0, 0], [-0.2, 0, 0]]), tensor([0.1, 0.1])
    of_bodies = [[x] * bodies for x in (tensor(1.0), torch.eye(3, dtype=torch.float64), centers, radii, tensor(0.0))]
    others = [tensor([0.0, 0, 1])], [tensor(0.0)], tensor([0.0, 0, -9.81]), mu, tensor([0.2]), tensor([1e3]), tensor([0.1])
    arguments = torch.utils._pytree.tree_map(lambda x: x.to(device), [*start, u, *of_bodies, *others])
    return lcp._simulate_bodies(*arguments, 0.01, **OPTIONS)


@pytest.mark.parametrize("start, batch", [((), ()), ((5,), (1,)), ((2, 1), (3,))])
@pytest.mark.parametrize("steps", [1, 4])
def test_shapes_without_data_are_those_of_the_results(start, batch, steps):
    start, mu = state(*start), tensor([0.4])
    for a, b in zip(*(roll_out(start, mu, steps, batch, device=device) for device in ("cpu", "meta"))):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)


def test_more_bodies_cannot_be_traced():
    start = state(bodies=2)
    assert roll_out(start, tensor([0.4]), batch=(), bodies=2)[0].shape == (3, 2, 3)
    compiled = torch.compile(lambda *start: roll_out(start, tensor([0.4]), batch=(), bodies=2), backend="eager", fullgraph=True)
    with pytest.raises(Exception, match="lcp::_simulate_bodies can be traced with one body only; got 2"):
        compiled(*start)


def test_parts_record_derivatives_of_every_order_and_mode():
    start, mu = state(2), tensor([0.4])
    f = lambda mu: sum(x.square().sum() for x in roll_out(start, mu)[:4])
    assert torch.autograd.functional.jacobian(f, mu).abs() > 1
    assert torch.autograd.gradcheck(f, mu.requires_grad_(), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, mu)
    with torch.inference_mode():
        found = f(mu)
    assert_same(found.clone(), f(mu).detach())


def test_it_is_compiled_with_its_derivative():
    start, mu = state(2), tensor([0.4])
    f = lambda mu: roll_out(start, mu)[0].sum()
    compiled = torch.compile(f, backend="aot_eager", fullgraph=True)
    assert_same(compiled(mu), f(mu))
    mu.requires_grad_()
    assert_same(torch.autograd.grad(compiled(mu), mu), torch.autograd.grad(f(mu), mu))


@pytest.mark.parametrize("schema", [
    # The names of an enumerator and of options with their defaults, and of a result that has a struct as a member.
    "lcp::_simulate_falling_block(Tensor x, Tensor v, int steps, Tensor[] parameters, *, str method=\"auto\", "
    "str ties=\"inactive\", float kappa=0., float? tolerance=None, int? max_pivots=None) -> (Tensor x_next, Tensor v_next, "
    "Tensor force, Tensor z, Tensor residual, Tensor status)",
    # A state before and after a step, and numbers of a system behind the star.
    "lcp::_compliant_particle_exact_step(Tensor position, Tensor velocity, Tensor u, Tensor[] parameters, *, float dt, "
    "float sigma, float beta) -> (Tensor position_next, Tensor velocity_next, Tensor gamma)",
    # Tensors and lists that may be absent, and results that are named by the text.
    "lcp::_structured_matrix(Tensor phi, Tensor beta, Tensor? alpha, Tensor A, Tensor? S) -> Tensor",
    "lcp::_structured_bases(int n, str basis) -> (Tensor A, Tensor S)",
])
def test_a_schema_follows_from_names_and_the_function(schema):
    (found,) = torch._C._jit_get_schemas_for_operator(schema.partition("(")[0])
    assert str(found) == schema


def test_arguments_that_a_struct_refuses_are_named():
    numbers = [torch.ones((), dtype=torch.float64)] * 3
    v = torch.zeros(2, dtype=torch.float64)
    with pytest.raises(RuntimeError, match=r"parameters must be 4 tensors; got 3"):
        torch.ops.lcp._sliding_block_exact_step(v, v, numbers)
    with pytest.raises(RuntimeError, match=r"formulation must be forward, direct, traditional or mixed; got none"):
        torch.ops.lcp._sliding_block_problem(v, v, [*numbers, numbers[0]], formulation="none")
