"""lcp::_rigid_walk and lcp::_rigid_walk_adjoint through PyTorch; what they compute is tests/physics/rigid_walk_test.cpp."""
import pytest
import torch

from support import assert_near, assert_same, check_meta, check_meta_strides, check_operators, lcp, normal, tensor

pytestmark = pytest.mark.usefixtures("library")

STEPS, BALLS, TENSORS = 40, 8, 17
FORMULATIONS = ["exact_cone", "polyhedral", "compliant"]
UNKNOWNS = {"exact_cone": 0, "polyhedral": 5 + 2, "compliant": 3}  # of each contact


def law(formulation):
    """The formulation, the directions of friction and the angle of the first, sigma and beta."""
    return [formulation, 5, 0.3, 1e-3, 1.0]


def cube(*batch, steps=STEPS, seed=0, formulation="exact_cone"):
    """A cube of 1 kg and 10 cm that falls on the plane z = 0."""
    corners = torch.cartesian_prod(*[tensor([-0.05, 0.05])] * 3).flatten()
    state = [tensor([0.0, 0, 0.09]) + 0.02 * normal(*batch, 3, seed=seed).abs(), normal(*batch, 4, seed=seed + 1),
             normal(*batch, 3, seed=seed + 2), 3 * normal(*batch, 3, seed=seed + 3)]
    scene = [tensor([1.0]), torch.eye(3).double().flatten() / 600, corners, torch.zeros(BALLS).double(),
             tensor([0.0, 0, 1]), tensor([0.0]), tensor([0.0, 0, -9.81]), torch.full((BALLS,), 0.4).double(),
             torch.full((BALLS,), 0.2).double()]
    pairs = [number for k in range(BALLS) for number in (0, k, -1, 0)]
    # So soft that the time step does not limit the stiffness.
    spring = [torch.full((BALLS,), 2e3).double(), torch.full((BALLS,), 0.02).double()]
    return [*scene, *state, 0.1 * normal(*batch, steps, 6, seed=seed + 4), tensor([0.3]), *spring, pairs, 0.005, None, 1.0,
            *law(formulation)]


def walk(arguments, tolerance=1e-9):
    mu, formulation = arguments[7], arguments[-5]
    return lcp._rigid_walk(*arguments, UNKNOWNS[formulation] * mu.shape[-1], tolerance)


def walk_back(arguments, wanted=2**TENSORS - 1, gradients=None):
    *path, iterations = walk(arguments)
    return lcp._rigid_walk_adjoint(*arguments[:TENSORS], *path, *(gradients or path[:5]), *arguments[TENSORS:], 1e-9, "active",
                                   wanted)


def calls():
    for formulation in FORMULATIONS:
        arguments = cube(2, formulation=formulation)
        *path, iterations = walk(arguments)
        yield "_rigid_walk", [*arguments, BALLS * UNKNOWNS[formulation], 1e-9], {}
        yield "_rigid_walk_adjoint", [*arguments[:TENSORS], *path, *path[:5], *arguments[TENSORS:], 1e-9, "midpoint",
                                      2**TENSORS - 1], {}


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_the_cube_falls_and_bounces(formulation):
    *_, gamma, unknowns, states, chosen, status, iterations = walk(cube(5, formulation=formulation))
    assert (status == 0).all()
    touches = gamma.unflatten(-1, (BALLS, 3))[..., 2] > 0
    assert touches.any(-1).any(-1).all() and (chosen >= touches).all()
    assert (chosen.any(-1) >= (iterations > 0)).all()
    assert unknowns.shape == states.shape == (5, STEPS, BALLS * UNKNOWNS[formulation])


def test_what_only_the_walk_back_needs_is_kept_for_it_alone():
    for formulation in FORMULATIONS:
        arguments = cube(2, formulation=formulation)
        path, alone = walk(arguments), lcp._rigid_walk(*arguments, 0, 1e-9)
        assert alone[5].shape == alone[6].shape == (2, STEPS, 0)
        assert_same([*path[:5], *path[7:]], [*alone[:5], *alone[7:]])


def balls(formulation="exact_cone"):
    """Three balls that meet in the air, two of which have their centre of mass off their middle."""
    radii, mass = tensor([0.1, 0.12, 0.08]), tensor([1.0, 0.5, 0.8])
    inertia = (0.4 * mass * radii * radii)[:, None, None] * torch.eye(3).double()
    scene = [mass, inertia.flatten(), 0.01 * tensor([0.0, 0, 0, 1, 0, -1, 0, 1, 1]), radii, tensor([0.0, 0, 1]),
             tensor([0.0]), tensor([0.0, 0, -9.81]), torch.full((6,), 0.3).double(), torch.full((6,), 0.6).double()]
    state = [tensor([0.0, 0, 0.3, 0.3, 0.02, 0.31, 0.7, -0.05, 0.33]), tensor([1.0, 0, 0, 0.1] * 3),
             tensor([1.5, 0, 0, -1, 0.1, 0, -0.5, 0.2, 0]), tensor([1.0, 2, 3, -1, 0, 2, 0.5, 0.1, 0.2])]
    pairs = [0, 0, -1, 0, 1, 1, -1, 0, 2, 2, -1, 0, 0, 0, 1, 2, 0, 0, 2, 3, 1, 1, 2, 3]
    spring = [torch.full((6,), 4e3).double(), torch.full((6,), 0.01).double()]
    return [*scene, *state, torch.zeros(60, 18).double(), tensor([0.3, 0.0, 0.1]), *spring, pairs, 0.005, None, 1.0,
            *law(formulation)]


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("make", [cube, balls])
def test_gradients_are_those_of_finite_differences(make, formulation):
    arguments = make(formulation=formulation)
    path = walk(arguments, 1e-13)[:5]
    assert path[4].any()
    weights = [torch.cos(1.7 * torch.arange(x.numel()) + 0.3).double().view(x.shape) for x in path]
    found = walk_back(arguments, gradients=weights)
    for k, gradient in enumerate(found):
        for i in range(0, gradient.numel(), 1 + gradient.numel() // 10):
            values = []
            for step in (1e-7, -1e-7):
                moved = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
                moved[k].view(-1)[i] += step
                ends = walk(moved, 1e-13)[:5]
                values.append(sum((x * w).sum() for x, w in zip(ends, weights)))
            difference = (values[0] - values[1]) / 2e-7
            assert abs(gradient.reshape(-1)[i] - difference) < 1e-5 * (1 + abs(difference)), (k, i)


def test_meta_tensors_have_the_shapes_and_strides_of_the_results():
    check_meta(calls())
    check_meta_strides(calls())


def test_the_operators_pass_the_checks_of_torch_library():
    check_operators(calls())


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_vmap_is_a_batch(formulation):
    arguments = cube(3, formulation=formulation)
    in_dims = tuple(0 if k in range(9, 14) else None for k in range(TENSORS))
    mapped = torch.vmap(lambda *x: walk([*x, *arguments[TENSORS:]]), in_dims)(*arguments[:TENSORS])
    assert_same(mapped, walk(arguments))


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_only_wanted_gradients_are_computed_and_they_are_the_same(formulation):
    arguments = cube(2, formulation=formulation)
    everything = walk_back(arguments)
    for k in (0, 1, 7, 9, 12, 13, 14, 15, 16):
        assert_near(walk_back(arguments, 1 << k)[k], everything[k])


def test_nothing_to_do_is_done():
    for batch, steps in [((0,), 3), ((2,), 0), ((), 0)]:
        arguments = cube(*batch, steps=steps)
        position, *_, status, iterations = walk(arguments)
        assert position.shape == (*batch, steps, 3) and status.shape == iterations.shape == (*batch, steps)
        assert all((g == 0).all() for g in walk_back(arguments))


def test_mistakes_are_named():
    def error_of(place, value):
        arguments = cube()
        arguments[place] = value
        with pytest.raises(RuntimeError) as error:
            walk(arguments)
        return str(error.value).split("\n")[0]

    pairs = cube()[17]
    single = [a.float() if isinstance(a, torch.Tensor) else a for a in cube()]
    with pytest.raises(RuntimeError, match="mass must be float64; got Float"):
        walk(single)
    assert error_of(17, pairs[:-1]) == "pairs must have four numbers for each of mu's c = 8 contacts; got 31"
    assert error_of(17, [1, *pairs[1:]]) == "pair 0 names body 1 of 1"
    assert error_of(17, [0, 8, *pairs[2:]]) == "pair 0 names ball 8 of 8"
    assert error_of(17, [0, 0, -1, 9, *pairs[4:]]) == "pair 0 names plane or ball 9 of 9"
    assert error_of(17, [0, 0, -1, 1, *pairs[4:]]) == "pair 0 must be of a body and another one, or a fixed plane"
    assert error_of(9, tensor([0.0, 0])) == "position must be [..., 3 b] with mass's b = 1; got [2]"
    assert error_of(18, 0.0) == "dt must be finite and > 0; got 0"
    arguments = cube(formulation="polyhedral")
    *path, iterations = walk(arguments)

    def law_error(number=BALLS * UNKNOWNS["polyhedral"], **changes):
        values = dict(zip(["formulation", "directions", "angle", "sigma", "beta"], law("polyhedral"))) | changes
        with pytest.raises(RuntimeError) as error:
            lcp._rigid_walk(*arguments[:-5], *values.values(), number, 1e-9)
        return str(error.value).split("\n")[0]

    assert law_error(formulation="cone") == "formulation must be exact_cone, polyhedral or compliant; got cone"
    assert law_error(directions=2) == "directions must be >= 3; got 2"
    assert law_error(sigma=0.0) == "sigma must be finite and > 0; got 0"
    assert law_error(beta=-1.0) == "beta must be finite and >= 0; got -1"
    assert law_error(number=8) == "num_unknowns must be 0 or 56; got 8"
    path[5:7] = path[5][..., :0], path[6][..., :0]
    with pytest.raises(RuntimeError, match=r"unknowns must be \[..., T, 56\]; got \[..., T, 0\]"):
        lcp._rigid_walk_adjoint(*arguments[:TENSORS], *path, *path[:5], *arguments[TENSORS:], 1e-9, "active", 1)
    with pytest.raises(RuntimeError, match="ties must be"):
        lcp._rigid_walk_adjoint(*arguments[:TENSORS], *path, *path[:5], *arguments[TENSORS:], 1e-9, "both", 1)


def simulate(arguments, formulation="exact_cone", substeps=1):
    """lcp::_simulate_bodies of one body for the arguments of a walk."""
    mass, inertia, centers, radii, normal, offset, gravity, mu, restitution, *state, u, drag = arguments[:15]
    body = [mass.squeeze(-1)], [inertia.unflatten(-1, (3, 3))], [centers.unflatten(-1, (-1, 3))], [radii], [drag.squeeze(-1)]
    return lcp._simulate_bodies(
        *(x.unsqueeze(-2) for x in state), u.movedim(-2, 0).unsqueeze(-2), *body, [normal], [offset.squeeze(-1)], gravity,
        mu, restitution, *arguments[15:17], arguments[18], formulation=formulation, substeps=substeps, directions=8,
        tolerance=1e-9)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_bodies_are_simulated_by_the_walk(formulation):
    arguments = cube(3, formulation=formulation)
    arguments[-4:-2] = [8, 0.0]  # the directions of lcp::_simulate_bodies
    position, orientation, *_, gamma, _, _, chosen, status, iterations = lcp._rigid_walk(*arguments, 0, 1e-9)
    found = simulate(arguments, formulation)
    assert_same([found[0].squeeze(-2), found[1].squeeze(-2), *found[4:]],
                [x.movedim(-2, 0) for x in (position, orientation, gamma)] + [x.movedim(-1, 0) for x in (status, iterations)])
    force = arguments[13][:, :1]
    once, often = (simulate([*arguments[:13], force.expand(3, rows, 6), *arguments[14:]], formulation, STEPS // rows)
                   for rows in (1, STEPS))
    assert_same([x[-1] for x in once[:4]], [x[-1] for x in often[:4]])


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_simulated_bodies_have_a_gradient_by_every_formulation(formulation):
    arguments = cube()

    def end(mu):
        position, *_, status, _ = simulate([*arguments[:7], mu.expand(BALLS), *arguments[8:]], formulation)
        assert not status.any()
        return position[-1].sum()

    mu = tensor([0.4]).requires_grad_()
    gradient, = torch.autograd.grad(end(mu), mu)
    difference = (end(mu.detach() + 1e-6) - end(mu.detach() - 1e-6)) / 2e-6
    assert gradient != 0 and abs(gradient - difference) < 1e-4 * abs(difference)


def test_mistakes_in_simulated_bodies_are_named():
    with pytest.raises(RuntimeError, match="formulation must be exact_cone, polyhedral or compliant; got cone"):
        simulate(cube(), "cone")
    with pytest.raises(RuntimeError, match="substeps must be >= 1; got 0"):
        simulate(cube(), substeps=0)
