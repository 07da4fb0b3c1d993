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
from torchlcp.nn import DirectModel, StateMap, StructuredMatrix, TraditionalModel

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
}
PARAMETERS = {  # as include/lcp/nn names them
    "state map": ["affine.weight", "affine.bias", "hidden_in.weight", "hidden_in.bias", "hidden_out.weight"],
    "matrix": ["phi", "beta", "alpha"],
    "slack": ["f.affine.weight", "G.affine.weight", "G.affine.bias"],
    "friction": ["mu"],
    "rows": ["learned"],
    "relu pairs": ["learned", "negative"],
    "structured": ["learned", "matrix.phi", "matrix.beta", "matrix.alpha"],
}
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


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in ("state map", "matrix")])
def test_an_ensemble_is_mapped_and_a_model_compiled(name):
    module, (v, u) = solvable(name), inputs()
    call = Call(module, lambda module: module.step(v, u).v_next)
    parameters = {key: torch.stack([x, x]) for key, x in call.named_parameters()}
    mapped = torch.func.vmap(lambda given: torch.func.functional_call(call, given, ()))(parameters)
    compiled = torch.compile(lambda: call(), fullgraph=True, backend="aot_eager")()
    torch.testing.assert_close(mapped, call().expand(2, -1))
    torch.testing.assert_close(compiled, call())


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in ("state map", "matrix")])
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


def test_networks_have_no_rows():
    with pytest.raises(AttributeError, match="networks have no rows"):
        TraditionalModel("networks").rows()


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
