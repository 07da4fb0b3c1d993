"""Numbers, lists and arrays in place of tensors, in the operators and in physics."""

import numpy as np
import pytest
import torch
from systems import G, SYSTEMS, each, numbers

import torchlcp
from torchlcp import physics
from torchlcp.physics import CompliantGround, Plane, PlanarBlock, RigidBody, RigidScene, RigidState, SlidingBlock, Tripod

ONE = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
as_lists = lambda x: x.tolist()
as_arrays = lambda x: x.numpy()
kinds = pytest.mark.parametrize("kind", [as_lists, as_arrays], ids=["lists", "arrays"])


def converted(arguments, kind):
    if isinstance(arguments, torch.Tensor):
        return kind(arguments)
    return tuple(converted(x, kind) for x in arguments) if isinstance(arguments, tuple) else arguments


def assert_equal(got, expected):
    for x, y in zip(got, expected, strict=True):
        torch.testing.assert_close(x, y, rtol=0, atol=0)


@kinds
def test_operators_take_what_is_no_tensor(kind):
    M, q = numbers(2, 1, 0, 0, 2, 1, 0, 0, 2).view(3, 3), numbers(-1, 2, -3)
    z = torchlcp.solve(M, q).z
    given = kind(M), kind(q)
    assert_equal(torchlcp.solve(*given, guess=kind(z), sizes=2), torchlcp.solve(M, q, guess=z, sizes=torch.tensor(2)))
    assert_equal(torchlcp.certify(*given, kind(z)), torchlcp.certify(M, q, z))
    assert_equal(torchlcp.solve(M, kind(q)), torchlcp.solve(M, q))
    assert_equal(torchlcp.solve(M.float(), q.tolist()), torchlcp.solve(M.float(), q.float()))
    one, v, b, mu = torch.eye(3).double(), numbers(3, 0, -1), numbers(0, 0, 0), numbers(0.5)
    expected = torchlcp.solve_friction(one, v, one, b, mu)
    for of_mu in (0.5, [0.5], np.array(0.5), torch.tensor(0.5).double()):
        assert_equal(torchlcp.solve_friction(kind(one), kind(v), kind(one), kind(b), of_mu), expected)
        assert_equal(torchlcp.friction_problem(one, v, one, b, of_mu), torchlcp.friction_problem(one, v, one, b, mu))
        assert torchlcp.certify_friction(one, v, one, b, of_mu, *expected[:2]).residual < 1e-12
    w = torchlcp.delassus_diagonal(kind(one), kind(one))
    springs = torchlcp.contact_parameters(0.0, [100.0], 0.0, w, 0.1)
    assert_equal(torchlcp.solve_contact(kind(one), kind(v), kind(one), *springs, 0.5)[:1],
                 torchlcp.solve_contact(one, v, one, *springs, mu)[:1])


def test_tensors_within_lists_keep_their_gradients():
    slope = torch.tensor(-3.0, dtype=torch.float64, requires_grad=True)
    torchlcp.solve([[2.0, 0.0], [0.0, 2.0]], [slope, 1.0]).z.sum().backward()
    assert slope.grad == -0.5


@each
@kinds
def test_systems_take_states_and_inputs_that_are_no_tensors(name, kind):
    system, arguments, _ = SYSTEMS[name]
    given = converted(arguments, kind)
    assert_equal(system.simulate(*given), system.simulate(*arguments))
    if name != "falling":
        state, u = given
        first = u[0] if kind is as_arrays else list(u[0])
        assert_equal(system.step(state, first), system.step(arguments[0], arguments[1][0]))
        assert all(x.isfinite().all() for x in system.certify(state, u, system.simulate(*arguments)))


@pytest.mark.parametrize("mu", [[0.3], np.array([0.3]), torch.tensor([0.3]).double(), torch.tensor(0.3).double(), 0.3,
                                np.float64(0.3), [0.3] * 8], ids=repr)
def test_scenes_take_friction_of_any_kind(mu):
    body = RigidBody.box([1.0], [0.2, 0.2, 0.1])
    scene = RigidScene([body], [Plane([0, 0, 1], 0)], dt=0.01, mu=mu, gravity=np.array([0, 0, -G]))
    state = RigidState.at_rest([[0.0, 0.0, 0.05]])
    expected = RigidScene(
        [RigidBody.box(1.0, numbers(0.2, 0.2, 0.1))], [Plane.inclined()], dt=0.01, mu=0.3
    ).step(state, torch.zeros(1, 6).double())
    step = scene.step(state, np.zeros((1, 6)))
    for got, x in zip(step, expected, strict=True):
        torch.testing.assert_close(got.squeeze(), x.squeeze(), rtol=0, atol=0)


def test_parameters_are_numbers_lists_or_arrays():
    blocks = [SlidingBlock(1, 0.1, mu, G) for mu in ([0.1, 0.2], np.array([0.1, 0.2]), numbers(0.1, 0.2))]
    v = [block.simulate(1.0, [0, 0]).v_next for block in blocks]
    assert v[0].shape == (2, 2) and torch.equal(v[0], v[1]) and torch.equal(v[0], v[2])
    supports = [[0.045, 0.0], [-0.03, 0.035], [-0.03, -0.035]]
    assert torch.equal(Tripod(1.0, 0.01, 0.01, 0.3, G, supports=supports).static_normals(),
                       Tripod(1.0, 0.01, 0.01, 0.3, G).static_normals())
    D = [[1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, -1.0]]
    assert PlanarBlock(1.0, 0.1, 0.3, G).problem([1.0, 0.0], [0.0, 0.0], directions=D).M.shape == (5, 5)
    assert torch.equal(physics.rotation_by([0.1, 0.2, 0.3]), physics.rotation_by(numbers(0.1, 0.2, 0.3)))


@pytest.mark.parametrize("call, message", [
    (lambda: torchlcp.solve("M", [1.0]), "M must be a number, a tensor, or a list or an array of numbers; got str"),
    (lambda: torchlcp.solve(ONE, None), None),
    (lambda: torchlcp.solve(ONE, [1.0, [2.0]]), "q must be a number, a tensor, or a list or an array of numbers; got list"),
    (lambda: torchlcp.solve_friction(ONE, [1.0, 0, 0], ONE, [0.0] * 3, {}), "mu must be .*; got dict"),
    (lambda: SlidingBlock(1.0, 0.1, "rough", G), "mu must be .*; got str"),
    (lambda: SlidingBlock(1.0, 0.1, 0.3, G).step(1.0, object()), "u must be .*; got object"),
    (lambda: RigidScene([], [], dt=[0.1], mu=0.3), "dt must be a number; got list"),
    (lambda: Plane("up", 0.0), "normal must be .*; got str"),
    (lambda: CompliantGround(0.3, 1e4, 0.1, sigma="small"), "sigma must be a number; got str"),
    (lambda: RigidState.at_rest({}), "position must be .*; got dict"),
])
def test_what_is_no_tensor_is_named(call, message):
    with pytest.raises((TypeError, RuntimeError), match=message):
        call()


@pytest.mark.parametrize("make, message", [
    (lambda: SlidingBlock(1.0, 0.1, [0.3, -0.3], G), "mu must be >= 0; got -0.3"),
    (lambda: RigidScene([], [], dt=0.1, mu=np.array([np.nan])), "mu must be >= 0; got nan"),
])
def test_numbers_of_lists_that_are_out_of_their_range_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
