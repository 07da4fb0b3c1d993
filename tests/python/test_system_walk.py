"""lcp::_system_walk, its adjoint and its tangent through PyTorch; what the first two compute is
tests/physics/system_walk_test.cpp."""
import math

import pytest
import torch

from support import TIES, assert_near, assert_same, check_meta, check_meta_strides, check_operators, lcp, normal, tensor

pytestmark = pytest.mark.usefixtures("library")

STEPS = 25
NAMES = ["parameters", "x", "u"]
PLANAR_BLOCKS = ["planar_block by exact direction", "planar_block by fixed point"]
POINT_MASSES = ["point_mass at position level", "point_mass at velocity level"]


def directions_of(n):
    angle = 2 * math.pi / n * torch.arange(n).double()
    return torch.stack([angle.cos(), angle.sin()])


def planar_block(name, directions, *batch, steps=STEPS, seed=0, scheme=(5, 0, 0)):
    """Blocks that slide, turn and come to rest. scheme: the passes, their tolerance, and whether they are relaxed."""
    parameters = tensor([1.0, 0.04, 0.4, 9.81]) * (1 + 0.1 * normal(*batch, 4, seed=seed))
    reported = 4
    if name == PLANAR_BLOCKS[1]:
        parameters = torch.cat([parameters, tensor(scheme).expand(*batch, 3)], -1)
        reported = 6
    x = torch.cat([normal(*batch, 2, seed=seed + 1), torch.zeros(*batch, reported).double()], -1)
    return [parameters, directions_of(directions), x, 3 * normal(*batch, steps, 2, seed=seed + 2), name]


def point_mass(name, *batch, steps=STEPS, seed=0):
    """Masses of about 1 kg that fall, bounce, slide and stick."""
    parameters = tensor([1.0, 0.04, 0.4, 9.81, 0.5]) * (1 + 0.1 * normal(*batch, 5, seed=seed))
    x = torch.cat([normal(*batch, 1, seed=seed + 1), 0.2 * normal(*batch, 1, seed=seed + 2).abs(),
                   normal(*batch, 2, seed=seed + 3)], -1)
    return [parameters, tensor([[0.0, 1, -1, 0], [1, 0, 0, 0]]), x, 2 * normal(*batch, steps, 2, seed=seed + 4), name]


def tripod(directions, *batch, steps=STEPS, seed=0):
    """Blocks that slide, turn and come to rest."""
    D = torch.cat([directions_of(directions)] * 3 + [torch.zeros(2, 3).double()], 1)
    body = tensor([1.0, 2e-3, 0.01, 0.3, 9.81, 0.01, 0.045, 0, -0.03, 0.035, -0.03, -0.035])
    state = normal(*batch, 6, seed=seed + 1) * tensor([1.0, 1, 1, 0.3, 0.3, 4])
    x = torch.cat([state, torch.zeros(*batch, 9).double()], -1)
    return [body * (1 + 0.05 * normal(*batch, 12, seed=seed)), D, x, 0.3 * normal(*batch, steps, 3, seed=seed + 2) *
            tensor([1.0, 1, 0.02]), "tripod"]


def systems(*batch, **options):
    exact, fixed_point = PLANAR_BLOCKS
    return [planar_block(exact, 8, *batch, **options), planar_block(fixed_point, 6, *batch, **options),
            planar_block(fixed_point, 8, *batch, scheme=(30, 1e-13, 1), **options),
            *(point_mass(name, *batch, **options) for name in POINT_MASSES), tripod(4, *batch, **options),
            tripod(8, *batch, **options)]


SYSTEMS = len(systems())


def walk(arguments, tolerance=None):
    return lcp._system_walk(*arguments, tolerance, True)


def walk_back(arguments, ties="active", wanted=7, gradients=None):
    x_next, z, w, residual, status, basis = walk(arguments)
    return lcp._system_walk_adjoint(*arguments[:4], x_next, z, w, status, basis, *(gradients or (x_next, z)),
                                    arguments[4], ties, wanted)


def changes_of(arguments, seed=9):
    """Changes of the parameters, the first state and the inputs."""
    return [normal(*arguments[place].shape, seed=seed + place) for place in (0, 2, 3)]


def walk_forward(arguments, changes, ties="active"):
    x_next, z, w, residual, status, basis = walk(arguments)
    return lcp._system_walk_tangent(*arguments[:4], x_next, z, w, status, basis, *changes, arguments[4], ties)


def calls():
    for arguments in systems(2, steps=3):
        x_next, z, w, residual, status, basis = walk(arguments)
        yield "_system_walk", [*arguments, None, True], {}
        yield "_system_walk_adjoint", [*arguments[:4], x_next, z, w, status, basis, x_next, z, arguments[4], "active", 7], {}
        yield "_system_walk_tangent", [*arguments[:4], x_next, z, w, status, basis, *changes_of(arguments), arguments[4],
                                       "active"], {}


def test_all_steps_are_solved_and_z_is_a_solution():
    for arguments in systems(50):
        x_next, z, w, residual, status, basis = walk(arguments)
        assert (status == 0).all() and (residual < 1e-9).all()
        assert (z >= 0).all() and (w >= 0).all() and (z * w == 0).all()
        assert_same(lcp._system_walk(*arguments, None, False)[:5], (x_next, z, w, residual, status))


@pytest.mark.parametrize("system", range(SYSTEMS))
def test_gradients_are_those_of_finite_differences(system):
    arguments = systems(3, steps=12)[system]
    # Behind these are a tripod's forces, which are not unique at rest, and a planar block's number of passes.
    columns = slice(0, 6)
    x_next, z, *_ = walk(arguments)
    weights = torch.zeros_like(x_next)
    weights[..., columns] = torch.cos(1.7 * torch.arange(x_next[..., columns].numel()) + 0.3).double().view(
        x_next[..., columns].shape)
    found = walk_back(arguments, gradients=(weights, torch.zeros_like(z)))
    for place, gradient in zip((0, 2, 3), found):
        if place == 0 and arguments[4] == PLANAR_BLOCKS[1]:
            assert (gradient[:, 4:] == 0).all()  # the scheme
            gradient = gradient.where(torch.arange(gradient.shape[-1]) < 4, math.nan)
        scale = gradient.nan_to_num(0).abs().max()
        for i in range(0, gradient.numel(), 1 + gradient.numel() // 25):
            if gradient.reshape(-1)[i].isnan():
                continue
            values = []
            for step in (1e-7, -1e-7):
                moved = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
                moved[place].view(-1)[i] += step
                values.append((walk(moved, 1e-13)[0] * weights).sum())
            difference = (values[0] - values[1]) / 2e-7
            assert abs(gradient.reshape(-1)[i] - difference) < 1e-5 * (1 + scale), (place, i)


@pytest.mark.parametrize("ties", TIES)
def test_the_tangent_is_the_transpose_of_the_adjoint(ties):
    for arguments in systems(50):
        changes = changes_of(arguments)
        ends = walk_forward(arguments, changes, ties)
        weights = [normal(*end.shape, seed=20 + k) for k, end in enumerate(ends)]
        gradients = walk_back(arguments, ties, gradients=weights)
        product = lambda xs, ys: sum((x * y).flatten(1).sum(1) for x, y in zip(xs, ys))
        size = product([x.abs() for x in ends], [x.abs() for x in weights])
        # A sliding direction that has not converged may change much by a little.
        rounding = 1e-6 if arguments[4] == PLANAR_BLOCKS[1] else 1e-10
        assert ((product(ends, weights) - product(changes, gradients)).abs() < rounding * size).all()


def test_the_tangent_of_float32_is_that_of_float64():
    for arguments in systems(5, steps=5):
        changes = changes_of(arguments)
        single = [a.float() if isinstance(a, torch.Tensor) else a for a in arguments]
        found = walk_forward(single, [c.float() for c in changes])[0][..., :6]
        exact = walk_forward(arguments, changes)[0][..., :6]
        assert found.dtype == torch.float32 and (found - exact).abs().max() < 1e-3 * exact.abs().max()


def test_meta_tensors_have_the_shapes_and_strides_of_the_results():
    check_meta(calls())
    check_meta_strides(calls())


def test_the_operators_pass_the_checks_of_torch_library():
    check_operators(calls())


def test_vmap_is_a_batch():
    for arguments in systems(3):
        mapped = torch.vmap(lambda p, x, u: walk([p, arguments[1], x, u, arguments[4]]))(*arguments[0:1], *arguments[2:4])
        assert_same(mapped, walk(arguments))


def test_every_shape_of_the_batch_gives_the_same():
    for arguments in systems(2, 3):
        whole, back = walk(arguments), walk_back(arguments)
        changes = changes_of(arguments)
        ahead = walk_forward(arguments, changes)
        parameters, D, x, u, name = arguments
        for i in range(2):
            for j in range(3):
                one = [parameters[i, j], D, x[i, j], u[i, j], name]
                assert_same(walk(one), tuple(r[i, j] for r in whole))
                assert_same(walk_back(one), tuple(r[i, j] for r in back))
                assert_same(walk_forward(one, [c[i, j] for c in changes]), tuple(r[i, j] for r in ahead))
        shared = [parameters[0, 0], D, x[:, :1], u[:1], name]
        spread = [a.expand(2, 3, *a.shape[-core:]).contiguous() for a, core in zip(shared[::2], (1, 1))]
        full = [spread[0], D, spread[1], u[:1].expand(2, 3, STEPS, -1).contiguous(), name]
        assert_same(walk(shared), walk(full))
        assert_same(walk_back(shared), walk_back(full))


def test_only_wanted_gradients_are_computed_and_they_are_the_same():
    for arguments in systems(2):
        everything = walk_back(arguments)
        for k in range(3):
            assert_same(walk_back(arguments, wanted=1 << k)[k], everything[k])


@pytest.mark.parametrize("ties", TIES)
def test_ties_choose_the_gradient_of_a_touch(ties):
    # y + dt v_y_next = 0 without a force: it lands above, and with less height it is stopped.
    arguments = [tensor([1.0, 0.125, 0.5, 8, 0]), tensor([[0.0, 1, -1, 0], [1, 0, 0, 0]]), tensor([0, 0.375, 0.5, -2]),
                 torch.zeros(1, 2).double(), POINT_MASSES[0]]
    weights = tensor([[0.0, 0, 0, 1]])
    of_x = walk_back(arguments, ties, gradients=(weights, torch.zeros(1, 4).double()))[1]
    of_v_y = {"inactive": tensor([0.0, 0, 0, 1]), "active": tensor([0.0, -8, 0, 0])}
    expected = of_v_y.get(ties, (of_v_y["inactive"] + of_v_y["active"]) / 2)
    assert_near(of_x, expected)


def test_gradients_through_a_step_that_is_not_solved_are_nan_and_others_are_not():
    for arguments in systems(4):
        arguments[3][1, 7, 0] = math.nan
        x_next, z, w, residual, status, basis = walk(arguments)
        assert (status[1, 7:] == 4).all() and (status[1, :7] == 0).all() and (status[[0, 2, 3]] == 0).all()
        assert x_next[1, 7:].isnan().all() and z[1, 7:].isnan().all() and residual[1, 7:].isnan().all()
        weights = torch.zeros_like(x_next), torch.zeros_like(z)
        weights[0][:, 6, :6] = 1
        before = walk_back(arguments, gradients=weights)
        assert all(g.isfinite().all() for g in before) and (before[2][:, 7:] == 0).all()
        weights[0][:, 8, :6] = 1
        through = walk_back(arguments, gradients=weights)
        # A block that rests does not depend on where it came from.
        assert through[0][1].isnan().any() and through[2][1, 7].isnan().all()
        assert all(g[[0, 2, 3]].isfinite().all() for g in through)


def test_changes_behind_a_step_that_is_not_solved_are_nan_where_anything_changes():
    for arguments in systems(4):
        arguments[3][1, 7, 0] = math.nan
        for size in (1, 0):
            changes = [size * change for change in changes_of(arguments)]
            for end in walk_forward(arguments, changes):
                assert end[1, 7:].isnan().all() if size else (end == 0).all()
                assert end[1, :7].isfinite().all() and end[[0, 2, 3]].isfinite().all()


def test_a_failure_does_not_reach_what_a_block_at_rest_came_from():
    arguments = [tensor([1.0, 0.1, 0.5, 10]), directions_of(8), tensor([0.1, 0.2, 0, 0, 0, 0]),
                 tensor([[0.0, 0], [math.nan, 0]]), PLANAR_BLOCKS[0]]
    weights = torch.zeros(2, 6).double(), torch.zeros(2, 8).double()
    weights[0][1] = 1
    of_parameters, of_x, of_u = walk_back(arguments, gradients=weights)
    assert of_parameters.isnan().all() and of_u[1].isnan().all()
    assert (of_x == 0).all() and (of_u[0] == 0).all()


def test_nothing_to_do_is_done():
    for batch, steps in [((0,), 3), ((2,), 0), ((), 0)]:
        for arguments in systems(*batch, steps=steps):
            x_next, *_, status, basis = walk(arguments)
            assert x_next.shape == (*batch, steps, arguments[2].shape[-1]) and status.shape == (*batch, steps)
            assert all((g == 0).all() for g in walk_back(arguments))
            assert walk_forward(arguments, changes_of(arguments))[0].shape == x_next.shape


def test_mistakes_are_named():
    def error_of(place, value):
        arguments = tripod(4)
        arguments[place] = value
        with pytest.raises(RuntimeError) as error:
            walk(arguments)
        return str(error.value).split("\n")[0]

    assert error_of(4, "quadruped") == "there is no system quadruped"
    assert error_of(0, torch.ones(5).double()) == "a tripod has 12 parameters; got 5"
    assert error_of(2, torch.ones(6).double()) == "a tripod has 15 states; got 6"
    assert error_of(3, torch.ones(3, 2).double()) == "a tripod has 3 inputs; got 2"
    assert error_of(1, torch.ones(2, 4).double()) == "a tripod does not have 4 pairs"
    assert error_of(4, POINT_MASSES[0]) == "a point_mass at position level has 5 parameters; got 12"
    assert error_of(2, torch.ones(15)) == "x must have parameters's dtype, Double; got Float"
