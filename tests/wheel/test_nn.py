"""torchlcp.nn: against formulas that are written here in other words, and against the files that C++ wrote."""

import copy
import inspect
import math
import pathlib
import pickle

import pytest
import torch

import torchlcp
from torchlcp import Status, nn
from torchlcp.nn import (
    DirectModel, LcpNetwork, StateMap, StructuredMatrix, TraditionalModel, relu_pair, relu_pair_overlap,
)

PRETRAINED = pathlib.Path(__file__).parents[2] / "models" / "pretrained"
MAKERS = {
    "state map": lambda: StateMap(3, hidden=4, velocity_scale=2.0, force_scale=5.0),
    "matrix": lambda: StructuredMatrix(3, rank=2, basis="nonnegative"),
    "direct": lambda: DirectModel(hidden=3),
    "slack": lambda: DirectModel(forces="slack", bias=False, force_scale=2.0),
    "friction": lambda: TraditionalModel("friction", gravity=9.81, dt=0.1),
    "rows": lambda: TraditionalModel("rows", monotone=True),
    "relu pairs": lambda: TraditionalModel("rows", relu_pairs=True),
    "structured": lambda: TraditionalModel("structured", basis="diagonal"),
    "networks": lambda: TraditionalModel("networks", hidden=2, force_unit=3.0),
    "LCP network": lambda: LcpNetwork(2, 1, 2, f="affine", G="network", q="network", hidden=3),
}
PARAMETERS = {  # as include/lcp/nn names them
    "state map": ["affine.weight", "affine.bias", "hidden_in.weight", "hidden_in.bias", "hidden_out.weight"],
    "matrix": ["phi", "beta", "alpha"],
    "slack": ["f.affine.weight", "G.affine.weight", "G.affine.bias"],
    "friction": ["mu"],
    "rows": ["learned"],
    "relu pairs": ["learned", "negative"],
    "structured": ["learned", "matrix.phi", "matrix.beta", "matrix.alpha"],
    "LCP network": ["M", "f_bias", "f_weight", "G_bias", "G_weight", "G_hidden_weight", "G_hidden_bias", "G_out_weight",
                    "q_bias", "q_weight", "q_hidden_weight", "q_hidden_bias", "q_out_weight"],
}
BLOCKS = [name for name in MAKERS if name not in ("state map", "matrix", "LCP network")]
each = pytest.mark.parametrize("name", MAKERS)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def inputs(count=20):
    v, u = torch.randn(2, count, dtype=torch.float64)
    return v, 3 * u


def value_of(module, v, u):
    """What forward returns for some arguments."""
    if isinstance(module, StructuredMatrix):
        return module()
    if isinstance(module, LcpNetwork):
        return module(torch.stack([v, u], -1))
    return module(v, u, torch.stack([v.abs(), u.abs()], -1)) if isinstance(module, DirectModel) else module(v, u)


def solvable(name):
    """The module in float64, so that every LCP has a solution."""
    module = MAKERS[name]().double()
    if isinstance(module, DirectModel):  # near a true block
        with torch.no_grad():
            c = module.dt / module.mass / module.G.velocity_scale
            module.f.affine.weight.copy_(torch.tensor([[1, c], [-1, -c]]))
            module.G.affine.weight.mul_(0.01)
            true = [c, 0, 0, c] if module.forces == "slack" else [0, -c, -c, 0]
            module.G.affine.bias.copy_(torch.tensor(true))
    elif isinstance(module, LcpNetwork):
        module.set_theta(module.random(1, torch.Generator().manual_seed(0))[0])
    elif name in ("rows", "relu pairs"):
        rows = TraditionalModel.true_rows(1.5)
        rows[:2, :2] *= torch.tensor([[1.2, 1], [1, 1.2]])  # away from where monotone rows have a kink
        with torch.no_grad():
            if name == "relu pairs":
                module.negative.copy_((-rows[:, :3]).relu() + 0.3)
                rows[:, :3] = rows[:, :3].relu() + 0.3
            module.learned.copy_(rows)
    elif isinstance(module, TraditionalModel) and name != "friction":
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter, std=0.1)
        phi, beta = torch.tensor([1.0, -1, 0]), torch.tensor([0.0, 1, 1])
        with torch.no_grad():
            if name == "structured":
                module.matrix.phi.add_(phi.unsqueeze(-1))
                module.matrix.beta.add_(beta)
                module.learned.add_(TraditionalModel.true_rows(1.5)[:, 3:])
            else:
                module.phi.affine.bias.add_(phi)
                module.beta.affine.bias.add_(beta)
                module.f.affine.weight.add_(torch.tensor([[1.0, 1], [-1, -1], [0, 0]]))
                module.f.affine.bias.add_(torch.tensor([0.0, 0, 1.5]))
    return module


# What all modules have in common


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_have_the_names_of_cpp(name):
    assert [key for key, _ in MAKERS[name]().named_parameters()] == PARAMETERS[name]


@each
def test_state_is_saved_and_loaded(name, tmp_path):
    module, other, (v, u) = MAKERS[name](), MAKERS[name](), inputs()
    for parameter in other.parameters():
        torch.nn.init.normal_(parameter)
    torch.save(module.state_dict(), tmp_path / "state.pt")
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for copied in (other, copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        torch.testing.assert_close(value_of(copied, v, u), value_of(module, v, u), rtol=0, atol=0, equal_nan=True)
        assert repr(copied) == repr(module) and type(module).__name__ in repr(module)


def test_the_parameters_of_a_module_are_one_vector():
    """As include/lcp/nn orders them, for the theta of random and projected."""
    for name in ("rows", "structured", "networks", "LCP network"):
        module = MAKERS[name]()
        theta = module.random(3, torch.Generator().manual_seed(0))
        assert theta.shape == (3, module.size) and theta.dtype == torch.float64 and (theta[0] != theta[1]).any()
        assert torch.equal(theta, module.random(3, torch.Generator().manual_seed(0)))
        torch.nn.utils.vector_to_parameters(theta[0].to(next(module.parameters()).dtype), module.parameters())


class Call(torch.nn.Module):
    """A function of a module as a module."""

    def __init__(self, module, function):
        super().__init__()
        self.module = module
        self.function = function

    def forward(self):
        return self.function(self.module)


@each
def test_differentiates_in_all_parameters(name):
    module, (v, u) = solvable(name), inputs(4)
    functions = [lambda module: value_of(module, v, u)]
    if isinstance(module, (DirectModel, TraditionalModel)):
        functions += [lambda module: module.step(v, u).v_next, lambda module: module.step(v, u).force]
    for function in functions:
        call = Call(module, function)
        names, values = zip(*call.named_parameters(), strict=True)
        value = lambda *x: torch.func.functional_call(call, dict(zip(names, x, strict=True)), ())
        assert value(*values).isfinite().all()
        assert torch.autograd.gradcheck(value, [x.detach().clone().requires_grad_() for x in values], atol=1e-6)


@pytest.mark.parametrize("name", BLOCKS)
def test_an_ensemble_is_mapped_and_a_model_compiled(name):
    module, (v, u) = solvable(name), inputs()
    call = Call(module, lambda module: module.step(v, u).v_next)
    parameters = {key: torch.stack([x, x]) for key, x in call.named_parameters()}
    mapped = torch.func.vmap(lambda given: torch.func.functional_call(call, given, ()))(parameters)
    compiled = torch.compile(lambda: call(), fullgraph=True, backend="aot_eager")()
    torch.testing.assert_close(mapped, call().expand(2, -1))
    torch.testing.assert_close(compiled, call())


@pytest.mark.parametrize("name", BLOCKS)
def test_steps_solve_the_learned_problem(name):
    """v_next and the force belong to each other, and z solves the LCP of G and f."""
    module, (v, u) = solvable(name), inputs()
    step = module.step(v, u)
    assert (step.status == Status.SOLVED).all() and step.status.dtype == torch.int8
    torch.testing.assert_close(step.force, module.mass * (step.v_next - v) / module.dt - u)
    G, f = module.G_of(v, u), module.f_of(v, u)
    if isinstance(module, TraditionalModel):
        z = torchlcp.solve(G, f).z
        torch.testing.assert_close(step.friction, z[:, :2] * module.force_unit)
        torch.testing.assert_close(step.gamma, z[:, 2] * module.velocity_unit)
        state = torch.stack([v / module.velocity_unit, u / module.force_unit, torch.ones_like(v)], -1)
        v_next = (torch.cat([state, z], -1) @ module.dynamics) * module.velocity_unit
        torch.testing.assert_close(step.v_next, v_next, atol=1e-12, rtol=1e-9)
        assert torch.equal(module(v, u), step.v_next)
    else:
        plus, minus = step.v_next.relu(), (-step.v_next).relu()
        p = torch.linalg.solve(G, torch.stack([plus, minus], -1) - f)  # f + G p = (v+, v-)
        torch.testing.assert_close(module(v, u, p), torch.stack([plus, minus], -1))


@pytest.mark.parametrize("name", nn.__all__)
def test_what_is_public_is_documented(name):
    thing = getattr(nn, name)
    methods = [x for key, x in vars(thing).items() if not key.startswith("_") and inspect.isfunction(x)]
    assert inspect.getdoc(thing) and all(inspect.getdoc(method) for method in methods if method.__name__ != "extra_repr")


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: StateMap(0), "outputs must be > 0; got 0"),
        (lambda: StateMap(1, hidden=-1), "hidden must be >= 0; got -1"),
        (lambda: StateMap(1, force_scale=0.0), "force_scale must be > 0; got 0.0"),
        (lambda: StructuredMatrix(0), "size must be > 0; got 0"),
        (lambda: StructuredMatrix(2, rank=-1), "rank must be >= 0; got -1"),
        (lambda: DirectModel(mass=0.0), "mass must be > 0; got 0.0"),
        (lambda: DirectModel(mu=math.nan), "mu must be >= 0, or NaN with slack forces; got nan"),
        (lambda: DirectModel(gravity=-1.0), "gravity must be >= 0; got -1.0"),
        (lambda: DirectModel(forces="all"), "forces must be friction or slack; got all"),
        (lambda: TraditionalModel("columns"), "kind must be friction, rows, structured or networks; got columns"),
        (lambda: TraditionalModel(dt=0.0), "dt must be > 0; got 0.0"),
        (lambda: TraditionalModel().hold(torch.ones(3, 6), torch.ones(3, 6)), r"mask must be \[3, 6\], bool"),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_basis_that_does_not_exist_is_named():
    with pytest.raises(RuntimeError, match="basis must be none, diagonal or nonnegative; got full"):
        StructuredMatrix(3, basis="full")


def test_the_layer_is_that_of_the_package():
    assert nn.LCP is torchlcp.LCP


# Each module


def test_a_state_map_is_an_affine_map_and_a_network():
    module, (v, u) = MAKERS["state map"]().double(), inputs()
    s = torch.stack([v / 2, u / 5], -1)
    torch.testing.assert_close(module(v, u), module.affine(s))  # at first
    torch.nn.init.normal_(module.hidden_out.weight)
    torch.testing.assert_close(module(v, u), module.affine(s) + module.hidden_out(module.hidden_in(s).tanh()))
    assert StateMap(2, bias=False)(torch.zeros(()), torch.zeros(5)).tolist() == [[0, 0]] * 5


@pytest.mark.parametrize("basis", ["none", "diagonal", "nonnegative"])
def test_a_structured_matrix_is_the_sum_of_its_parts(basis):
    module = StructuredMatrix(3, basis=basis)
    upper = torch.zeros(3, 3)
    upper[0, 1], upper[0, 2], upper[1, 2] = module.beta
    symmetric = {
        "none": 0,
        "diagonal": 0.01 * torch.eye(3),
        "nonnegative": torch.full((3, 3), 0.01),
    }[basis]
    torch.testing.assert_close(module(), module.phi @ module.phi.T + upper - upper.T + symmetric)
    assert (module.alpha is None) == (basis == "none")


def test_the_forces_of_a_direct_model():
    friction = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    model = DirectModel(mu=0.5, mass=2.0, gravity=10.0, forces="slack")
    assert model.max_friction == 10 and model.forces_of(friction).tolist() == [[10, 9], [8, 10]]
    assert torch.equal(DirectModel().forces_of(friction), friction)


def test_a_model_of_friction_steps_as_the_system_and_rests_exactly():
    model, (v, u) = TraditionalModel("friction", mass=2.0, dt=0.1, gravity=9.81).double(), inputs(200)
    torch.nn.init.constant_(model.mu, 0.3)
    block = torchlcp.physics.SlidingBlock(2.0, 0.1, 0.3, 9.81)
    exact = block.exact_step(v, u).v_next
    v_next = model(v, u)
    torch.testing.assert_close(v_next, exact, atol=1e-12, rtol=1e-9)
    assert torch.equal(v_next == 0, exact == 0) and (exact == 0).any()
    assert torch.equal(model.sticks(model.step(v, u).friction, model.step(v, u).gamma), exact == 0)
    torch.testing.assert_close(model.rows(), model.true_rows(0.3 * 2 * 9.81))


def test_the_rows_of_a_true_block_are_its_problem():
    model, (v, u) = TraditionalModel("rows", mass=1.0, dt=1.0).double(), inputs()
    model.load_state_dict({**model.state_dict(), "learned": model.true_rows(1.5)})
    problem = torchlcp.physics.SlidingBlock(1.0, 1.0, 1.5, 1.0).problem(v, u)
    torch.testing.assert_close(model.G_of(v, u), problem.M)
    torch.testing.assert_close(model.f_of(v, u), problem.q)
    model.exact_rest = True
    exact = torchlcp.physics.SlidingBlock(1.0, 1.0, 1.5, 1.0).exact_step(v, u).v_next
    assert torch.equal(model(v, u) == 0, exact == 0) and (exact == 0).any()
    assert (model.step(v, u, method="lemke", max_pivots=0).status == Status.PIVOT_LIMIT).any()


def test_held_entries_have_their_values_and_no_gradient():
    model = TraditionalModel("rows")
    mask = torch.zeros(3, 6, dtype=torch.bool)
    mask[0, 0] = mask[2, 5] = True
    model.hold(mask, torch.full((3, 6), 7.0))
    rows = model.rows()
    assert (rows[mask] == 7).all() and torch.equal(rows[~mask], model.learned[~mask])
    rows.sum().backward()
    assert torch.equal(model.learned.grad == 0, mask)


def test_monotone_rows_are_monotone():
    rows = TraditionalModel("rows", monotone=True).rows()[:, :3]
    assert torch.linalg.eigvalsh(rows + rows.T).min() > -1e-5


def test_relu_pairs_may_revive():
    model = TraditionalModel("rows", relu_pairs=True)
    assert torch.equal(model.rows()[:, :3], model.learned[:, :3].relu() - model.negative.relu())
    torch.nn.init.constant_(model.learned, -1.0)
    model.rows()[:, :3].sum().neg().backward()
    assert (model.learned.grad[:, :3] == 0).all()
    model.revive, model.learned.grad = True, None
    model.rows()[:, :3].sum().neg().backward()
    assert (model.learned.grad[:, :3] == -1).all()


@pytest.mark.parametrize("revive", [False, True])
def test_a_relu_pair_has_the_gradient_of_descent(revive):
    P, N = torch.tensor([2.0, -1.0, -1.0, 3.0]).requires_grad_(), torch.tensor([-1.0, 1.0, -1.0, 2.0]).requires_grad_()
    pair = relu_pair(P, N, revive=revive)
    assert pair.tolist() == [2, -1, 0, 1]
    pair.backward(torch.tensor([1.0, 1.0, -1.0, -1.0]))
    grown = -1 if revive else 0  # where descent makes P larger, and N where it makes that larger
    assert P.grad.tolist() == [1, 0, grown, -1] and N.grad.tolist() == [-revive * 1.0, -1, 0, 1]
    overlap = relu_pair_overlap(P, N, revive=revive)
    assert overlap == 6 and torch.equal(torch.autograd.grad(overlap, P)[0], torch.tensor([0.0, 0, 0, 2]))


def test_entries_of_a_model_are_penalised():
    model = TraditionalModel("rows", relu_pairs=True)
    torch.nn.init.constant_(model.learned, 2.0)
    torch.nn.init.constant_(model.negative, 3.0)
    mask = torch.zeros(3, 6, dtype=torch.bool)
    mask[0, 0] = mask[2, 5] = True
    model.hold(mask, torch.full((3, 6), 7.0))
    assert model.overlap() == 8 * 6  # one of the nine is held
    G = torch.ones(3, 3).requires_grad_()
    assert model.missed(G).tolist() == [-6, 0, 0, 0, 0, 0, 0, 0, 0] and model.missed(G).requires_grad
    assert TraditionalModel("friction").overlap() == 0
    model.overlap().backward()
    assert (model.negative.grad[0, 0], model.negative.grad[0, 1]) == (0, 2)


@pytest.mark.parametrize("name", ["friction", "rows", "relu pairs", "structured", "networks"])
def test_a_model_starts_as_a_true_block(name):
    model, (v, u) = MAKERS[name]().double(), inputs()
    before = [x.detach().clone() for x in model.parameters()]
    model.start(0.3)
    exact = torchlcp.physics.SlidingBlock(model.mass, model.dt, 0.3, model.gravity).exact_step(v, u).v_next
    if name == "structured":
        with torch.no_grad():
            model.matrix.alpha.zero_()
    torch.testing.assert_close(model(v, u), exact, atol=1e-12, rtol=1e-9)
    assert any((x != y).any() for x, y in zip(model.parameters(), before, strict=True))
    model.start(0.3, noise=0.1)
    noisy = [x.detach().clone() for x in model.parameters()]
    model.start(0.3)
    changed = [(x != y).any() for x, y in zip(model.parameters(), noisy, strict=True)]
    assert any(changed) == (name != "friction")


def test_projected_parameters_are_monotone_and_nonlinear_ones_are_named():
    model = TraditionalModel("rows", monotone=True)
    theta = model.random(4).requires_grad_()
    M = model.projected(theta).view(4, 3, 6)[..., :3]
    assert torch.linalg.eigvalsh(M + M.mT).min() > -1e-12 and M.requires_grad
    model.hold(torch.ones(3, 6, dtype=torch.bool), torch.full((3, 6), 2.0))
    assert (model.projected(theta) == 2).all()
    assert model.nonlinear(theta).shape == (4, 0)
    networks = TraditionalModel("networks", hidden=2)
    assert networks.nonlinear(networks.random(4)).shape == (4, 6 + 6 + 3 * 6)
    assert (networks.nonlinear(networks.random(4)) == 0).all()
    assert torch.equal(networks.projected(theta), theta)


def test_the_nonlinearity_of_a_direct_model():
    model = DirectModel(hidden=3)
    assert model.nonlinearity() == 0 and DirectModel().nonlinearity() == 0
    torch.nn.init.constant_(model.f.hidden_out.weight, 1.0)
    torch.nn.init.constant_(model.G.hidden_out.weight, 2.0)
    assert model.nonlinearity() == 2 * 3 + 4 * 4 * 3
    model.nonlinearity().backward()
    assert (model.G.hidden_out.weight.grad == 4).all()


# A network that ends in an LCP


def network_with(theta):
    network = MAKERS["LCP network"]()
    network.set_theta(theta)
    return network


@pytest.fixture
def theta():
    return MAKERS["LCP network"]().random(3, torch.Generator().manual_seed(0))


def test_a_network_is_what_its_parts_say(theta):
    network, x = network_with(theta[0]), torch.stack(inputs(), -1)
    network.input_unit.copy_(torch.tensor([2.0, 3.0]))
    network.output_unit.fill_(5.0)
    step, parts = network.step(x), network.parts(x)
    s = x / torch.tensor([2.0, 3.0])
    of = lambda name: network.get_parameter(name)
    hidden = (s @ of("q_hidden_weight").T + of("q_hidden_bias")).tanh()
    torch.testing.assert_close(parts.q, s @ of("q_weight").T + of("q_bias") + hidden @ of("q_out_weight").T)
    torch.testing.assert_close(parts.f, s @ of("f_weight").T + of("f_bias"))
    L, U = network.M.tril(), network.M.triu(1)
    torch.testing.assert_close(parts.M, L @ L.T + 0.3 * torch.eye(2) + U - U.T)
    assert torch.equal(network.matrix(), parts.M)
    z = torchlcp.solve(parts.M, parts.q).z
    torch.testing.assert_close(step.z, z)
    torch.testing.assert_close(step.y, 5 * (parts.f + (parts.G * z.unsqueeze(1)).sum(-1)))
    torch.testing.assert_close(step.activity, (parts.G.norm(dim=1) * z).sum(-1))
    assert (step.status == Status.SOLVED).all() and torch.equal(network(x), step.y)
    assert LcpNetwork(2, 1, 2).parts(x).f is None


def test_many_networks_step_at_once_and_are_mapped_and_compiled(theta):
    x = torch.stack(inputs(), -1)
    network = network_with(theta[1])
    together = network.step(x, theta.unsqueeze(1))
    torch.testing.assert_close(together.y[1], network.step(x).y)
    torch.testing.assert_close(torch.func.vmap(lambda t: network.step(x, t).y)(theta), together.y)
    compiled = torch.compile(lambda x: network(x), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), network(x))
    assert torch.equal(network.entry("M", theta)[1], network.M)
    assert torch.equal(network.theta(), theta[1]) and network.size == theta.shape[1]


def test_the_linearization_of_networks_is_that_of_autograd(theta):
    network, x = MAKERS["LCP network"](), torch.stack(inputs(), -1)
    found = network.linearize(x, theta)
    values = lambda t: torch.cat([(step := network.step(x, t)).y, step.activity.unsqueeze(-1)], -1)
    for k in range(3):
        torch.testing.assert_close(found.values[k], values(theta[k]))
        torch.testing.assert_close(found.jacobian[k], torch.func.jacrev(values)(theta[k]))
    with pytest.raises(RuntimeError, match="kappa must be 0; got 0.1"):
        network.linearize(x, theta, kappa=0.1)


def test_a_network_grows_and_is_restricted(theta):
    x = torch.stack(inputs(), -1)
    small = network_with(theta[0])
    large = LcpNetwork(2, 1, 3, f="affine", G="network", q="network", hidden=4)
    grown = large.grown(small, theta[0], torch.Generator().manual_seed(0))
    for name, value in small.named_parameters():
        part = large.entry(name, grown)[tuple(slice(n) for n in value.shape)]
        assert torch.equal(part, value)
    assert torch.equal(grown, large.grown(small, theta[0], torch.Generator().manual_seed(0)))
    two = LcpNetwork(2, 1, 2, f="affine", G="network", q="network", hidden=4)
    unknowns = torch.tensor([0, 2])
    restricted = two.matrix(large.restricted(grown, unknowns))
    torch.testing.assert_close(restricted, large.matrix(grown)[unknowns][:, unknowns])
    assert two.step(x, large.restricted(grown, unknowns)).y.shape == (20, 1)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: LcpNetwork(0, 1, 1), "inputs must be > 0; got 0"),
        (lambda: LcpNetwork(1, 1, 1, definiteness=0.0), "definiteness must be > 0; got 0"),
        (lambda: LcpNetwork(1, 1, 1, G="absent"), "G must not be absent"),
        (lambda: LcpNetwork(1, 1, 1, f="linear"), "f must be absent, constant, affine or network; got linear"),
        (lambda: LcpNetwork(1, 1, 1, activation="sine"), "activation must be tanh or relu; got sine"),
        (lambda: LcpNetwork(1, 1, 1).entry("N", torch.zeros(9)), "the network has no parameter N"),
        (lambda: LcpNetwork(3, 1, 1).save_torchscript("x.pt", inputs=1), "the network has 3 inputs; got 0 positions, 1 velo"),
    ],
)
def test_mistakes_of_networks_are_named(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_a_vector_of_the_wrong_size_is_refused():
    network = LcpNetwork(1, 1, 1)
    with pytest.raises(ValueError, match=rf"theta must be \[{network.size}\]; got \[2\]"):
        network.set_theta(torch.zeros(2))


def test_networks_have_no_rows():
    with pytest.raises(AttributeError, match="networks have no rows"):
        TraditionalModel("networks").rows()


# Files


def near(model, other, v, u):
    torch.testing.assert_close(other.step(v, u), model.step(v, u), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_model_is_written_and_read(name, tmp_path):
    model, other, (v, u) = solvable(name), MAKERS[name]().double(), inputs()
    path = tmp_path / "model.pt"
    model.save_torchscript(path)
    other.load_torchscript(path)
    near(model, other, v, u)
    step, written = model.step(v, u), torch.jit.load(path)
    for got, expected in zip(written.step(v, u), (step.v_next, step.force, step.status), strict=True):
        assert torch.equal(got, expected)
    assert (written.dt, written.mass, written.gravity) == (model.dt, model.mass, model.gravity)
    model.save_torchscript(path)  # replaces it
    before = [x.detach().clone() for x in other.parameters()]
    broken = tmp_path / "broken.pt"
    broken.write_bytes(b"no file")
    for wrong, message in [(broken, "broken.pt: is no TorchScript file")]:
        with pytest.raises(RuntimeError, match=message):
            other.load_torchscript(wrong)
    assert all(torch.equal(x, y) for x, y in zip(other.parameters(), before, strict=True))


def test_a_file_of_another_model_is_refused(tmp_path):
    path = tmp_path / "model.pt"
    DirectModel(dt=0.2).save_torchscript(path)
    for model, message in [
        (DirectModel(dt=0.1), "model.pt: has dt = 0.2, not 0.1"),
        (DirectModel(dt=0.2, hidden=2), "model.pt: has no parameter f_hidden_weight"),
        (TraditionalModel(), "model.pt: is of a DirectModel, not of a TraditionalModel"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            model.load_torchscript(path)
    with pytest.raises(RuntimeError, match="cannot write"):
        DirectModel().save_torchscript(tmp_path / "nowhere" / "model.pt")


def test_what_is_known_of_friction_is_written_down(tmp_path):
    TraditionalModel(known_mu=0.4).save_torchscript(tmp_path / "model.pt")
    assert torch.jit.load(tmp_path / "model.pt").mu == 0.4
    TraditionalModel().save_torchscript(tmp_path / "model.pt")
    assert not hasattr(torch.jit.load(tmp_path / "model.pt"), "mu")
    with pytest.raises(ValueError, match="known_mu must be >= 0, or NaN; got -1"):
        TraditionalModel(known_mu=-1.0)


def test_a_network_is_written_and_read(theta, tmp_path):
    network, (v, u) = network_with(theta[0]), inputs()
    path = tmp_path / "model.pt"
    network.save_torchscript(path, inputs=1, dt=0.1, mass=2.0)
    written = torch.jit.load(path)
    y = network(torch.stack([v, u], -1)).squeeze(-1)
    v_next, force, status = written.step(v, u)
    assert torch.equal(v_next, y) and (status == Status.SOLVED).all()
    torch.testing.assert_close(force, 20 * (y - v) - u)
    other = MAKERS["LCP network"]()
    other.load_state_dict(written.state_dict())
    assert torch.equal(other.theta(), network.theta())


@pytest.mark.parametrize("file", ["sliding_block_network", "track_network"])
def test_a_network_of_cpp_is_loaded(file):
    """By its parameters, whose names and shapes say what it is made of."""
    written = torch.jit.load(PRETRAINED / f"{file}.pt")
    state = written.state_dict()
    outputs, unknowns = state["G_bias"].shape

    def dependence(part):
        kinds = {f"{part}_out_weight": "network", f"{part}_weight": "affine", f"{part}_bias": "constant"}
        return next((kind for name, kind in kinds.items() if name in state), "absent")

    hidden = next((x.shape[0] for name, x in state.items() if name.endswith("_hidden_bias")), 8)
    network = LcpNetwork(
        len(state["input_unit"]), outputs, unknowns, hidden=hidden, **{part: dependence(part) for part in "fGq"})
    network.load_state_dict(state)
    (v, u), position = inputs(50), torch.linspace(-1, 1, 50).double()
    columns = [v, u] if network.inputs == 2 else [position, v, u]
    expected = written(v, u) if network.inputs == 2 else written(v, u, position)
    torch.testing.assert_close(network(torch.stack(columns, -1)).squeeze(-1), expected, rtol=1e-12, atol=1e-12)


# Files that C++ wrote


def name_in_file(name):
    for part, short in (("affine.", ""), ("matrix.", ""), ("hidden_in.", "hidden_"), ("hidden_out.", "out_"), (".", "_")):
        name = name.replace(part, short, 1)
    return name


@pytest.mark.parametrize(
    "file, make",
    [
        ("direct", lambda m: DirectModel(dt=m.dt, mass=m.mass, gravity=m.gravity, mu=m.mu,
                                         velocity_scale=m.velocity_scale, force_scale=m.force_scale)),
        ("slack", lambda m: DirectModel(dt=m.dt, mass=m.mass, gravity=m.gravity, mu=m.mu, forces="slack",
                                        velocity_scale=m.velocity_scale, force_scale=m.force_scale)),
        ("bilevel", lambda m: TraditionalModel("friction", dt=m.dt, mass=m.mass, gravity=m.gravity,
                                               force_unit=m.force_unit)),
        ("penalty", lambda m: TraditionalModel("rows", dt=m.dt, mass=m.mass, gravity=m.gravity,
                                               force_unit=m.force_unit, monotone=True)),
        ("structured", lambda m: TraditionalModel("structured", basis="diagonal", dt=m.dt, mass=m.mass, gravity=m.gravity,
                                                  force_unit=m.force_unit)),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_file_of_cpp_has_the_same_tensors_and_steps(file, make):
    written = torch.jit.load(PRETRAINED / f"sliding_block_{file}.pt")
    state = written.state_dict()
    model = make(written).to(next(written.parameters()).dtype)
    names = {name: name_in_file(name) for name in model.state_dict()}
    assert set(names.values()) == set(state)
    model.load_state_dict({name: state[in_file] for name, in_file in names.items()})
    v, u = inputs(50)
    for got, expected in zip((model.step(v, u).v_next, model.step(v, u).force), written.step(v, u)[:2], strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
