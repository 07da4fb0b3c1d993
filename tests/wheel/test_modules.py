"""Each module of torchlcp.nn, against formulas that are written here in other words."""

import pytest
import torch
from modules import MAKERS, inputs

import torchlcp
from torchlcp import Status
from torchlcp.nn import DirectModel, StateMap, StructuredMatrix, TraditionalModel, relu_pair, relu_pair_overlap


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
