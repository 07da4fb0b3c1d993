"""torchlcp.nn: what all modules have in common."""

import copy
import inspect
import math
import pickle

import pytest
import torch
from modules import BLOCKS, MAKERS, PARAMETERS, each, inputs, solvable, value_of

import torchlcp
from torchlcp import Status, nn
from torchlcp.nn import DirectModel, StateMap, StructuredMatrix, TraditionalModel


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
