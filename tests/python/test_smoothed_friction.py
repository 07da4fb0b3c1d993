"""The derivative of lcp::solve_friction that is smoothed by kappa, and the points that it is taken from."""
import math

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import jacfwd, jacrev

from friction_problems import STATES, box_on_ground, problem
from support import NAN, WARNINGS_ARE_ERRORS, assert_near, assert_same, gradients, lcp, leaves, tensor, times

pytestmark = [pytest.mark.usefixtures("library"), WARNINGS_ARE_ERRORS]


REDUNDANT = {"slide": [0.8, 0, -0.0981, 0, 0, 0], "stick": [0.02, 0, -0.0981, 0, 0, 0]}  # of a box


def smooth(kappa):
    """A function of the problem whose values and derivatives are those of the point of the smooth path."""

    def point(*arguments):
        v, gamma, u, status, iterations = lcp._friction_point(*(x.detach() for x in arguments))
        return lcp._friction_path(*arguments, gamma, u, kappa=kappa)

    return point


@pytest.mark.parametrize("kappa", [1.0, 1e-2, 1e-4, 1e-8])
def test_the_smooth_path_obeys_its_law(kappa):
    for states in (["apart"], ["slide"], ["stick"], STATES, STATES + STATES):
        A, v_free, J, b, mu = arguments = problem(states, 100)[0]
        v, gamma, u = smooth(kappa)(*arguments)
        assert_near(u, times(J, v) + b)
        assert_near(times(A, v - v_free), times(J.mT, gamma))
        (u, u_n), (gamma, gamma_n) = ((x.unflatten(-1, (-1, 3))[..., :2], x[..., 2::3]) for x in (u, gamma))
        assert (u_n > 0).all() and (gamma_n > 0).all()
        assert_near(gamma_n * u_n / kappa, torch.ones_like(u_n))
        speed = (u_n * u_n + (mu * u.norm(dim=-1)).square()).sqrt()
        assert_near(gamma, -(mu * mu * gamma_n / speed)[..., None] * u)


@pytest.mark.parametrize("states", [[], *([x] for x in STATES), STATES])
def test_derivatives_on_the_smooth_path_are_those_of_differences(states):
    arguments = leaves(problem(states, 2, seed=3)[0])
    assert gradcheck(smooth(0.05), arguments, check_forward_ad=True)
    assert gradgradcheck(smooth(0.05), arguments, check_fwd_over_rev=True)


@pytest.mark.parametrize("box", REDUNDANT)
def test_derivatives_on_the_smooth_path_of_redundant_contacts_are_those_of_differences(box):
    A, *rest = leaves(box_on_ground(REDUNDANT[box]))
    assert gradcheck(lambda *x: smooth(0.05)(A.detach(), *x)[0], rest, check_forward_ad=True)


@pytest.mark.parametrize("states", [*([x] for x in STATES), STATES, *REDUNDANT])
def test_the_error_of_the_smoothed_gradient_is_proportional_to_kappa(states):
    if isinstance(states, str):  # where only what does not depend on the split of the impulses has an exact gradient
        A, v_free, J, b, mu = box_on_ground(REDUNDANT[states])
        of = lambda A, v_free, mu: (A, v_free, J, b, mu.expand(4))
        arguments = [A, v_free, mu[0]]
    else:
        of, arguments = lambda *x: x, problem(states, 5, seed=3)[0]
    f = lambda **options: gradients(lambda *x: lcp.solve_friction(*of(*x), **options)[0].sin().sum(), arguments)
    error = lambda kappa: max((x - y).abs().max() for x, y in zip(f(kappa=kappa), f()))
    assert error(1e-8) < 1e-3
    assert 80 < error(1e-6) / error(1e-8) < 125


def test_values_stay_exact_where_the_gradient_is_smoothed():
    arguments = leaves(problem(STATES, 7)[0])
    assert_same(lcp.solve_friction(*arguments, kappa=0.1), lcp.solve_friction(*arguments))


def test_the_smoothed_gradient_has_every_order_and_mode():
    arguments = problem(STATES, 2, seed=3)[0]
    f = lambda v_free: lcp.solve_friction(arguments[0], v_free, *arguments[2:], kappa=0.05)[0].sum(0)
    path = lambda v_free: smooth(0.05)(arguments[0], v_free, *arguments[2:])[0].sum(0)
    expected = jacrev(path)(arguments[1])
    assert_near(jacrev(f)(arguments[1]), expected)
    assert_near(jacfwd(f)(arguments[1]), expected)
    assert_near(jacfwd(jacrev(f))(arguments[1]), jacrev(jacrev(path))(arguments[1]))


def test_a_ball_has_a_gradient_before_it_touches_the_ground():
    """One contact without friction has v_n = q + kappa / (m u_n): dv_n / dq in closed form, also far from the ground."""
    mass, gap, kappa = 2.0, 0.3, 0.01
    v_free = tensor([0.5, 0.0, -0.1]).requires_grad_()
    eye = torch.eye(3, dtype=torch.float64)
    v = lcp.solve_friction(mass * eye, v_free, eye, tensor([0.0, 0.0, gap]), tensor([0.0]), kappa=kappa)[0]
    assert_same(v.detach(), v_free.detach())
    q = v_free[2].item() + gap
    expected = (1 + q / math.sqrt(q * q + 4 * kappa / mass)) / 2
    assert_near(torch.autograd.grad(v[2], v_free)[0], tensor([0.0, 0.0, expected]))


def test_a_throw_at_a_wall_has_a_gradient_of_its_end_in_its_start_before_it_arrives():
    """With the exact gradient the ball flies on as if there were no wall; the smoothed one knows that the wall is near."""
    dt, steps, eye = 0.1, 8, torch.eye(3, dtype=torch.float64)
    J, mu = torch.stack([eye[1], eye[2], -eye[0]]), tensor([0.3])  # the wall's normal points along -x

    def end(speed, **options):
        x, v = torch.zeros(3, dtype=torch.float64), torch.stack([speed, 0 * speed, 0.1 + 0 * speed])
        for _ in range(steps):
            gap = 1 - x[0]
            v = lcp.solve_friction(eye, v, J, torch.stack([0 * gap, 0 * gap, gap / dt]), mu, **options)[0]
            x = x + dt * v
        return x[0]

    speed = tensor(1.0).requires_grad_()  # it ends at .8 of the 1 m to the wall
    flight = steps * dt
    slopes = [torch.autograd.grad(end(speed, kappa=kappa), speed)[0].item() for kappa in (0.0, 1e-4, 1e-2, 1.0)]
    assert slopes[0] == pytest.approx(flight)
    assert slopes == sorted(slopes, reverse=True) and slopes[1] > 0.99 * flight and slopes[3] < 0.7 * flight


def test_the_smoothed_gradient_of_an_unsolved_element_is_nan_where_it_is_asked_for():
    arguments = [x.repeat(2, *[1] * x.dim()) for x in box_on_ground([0.0, 0, -1, 0, 0, 0])]
    arguments[1][0, 2] = NAN
    for asked in (0.0, 1.0):
        weights = tensor([asked, 1.0])[:, None]
        found = gradients(lambda *x: (weights * lcp.solve_friction(*x, kappa=0.1)[0]).sum(), arguments)
        for x in found[1:4]:
            assert x[0].isnan().all() if asked else not x[0].any()
            assert x[1].isfinite().all()
