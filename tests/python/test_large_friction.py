"""Friction of any size, infinity among it: right velocities, true statuses and derivatives, in both dtypes."""
import json
import math
import pathlib

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

from friction_problems import box_on_ground, solve
from support import assert_near, gradients, lcp, leaves, normal, tensor

pytestmark = pytest.mark.usefixtures("library")

SIZES = [1e2, 1e4, 1e7, 1e10, 1e12, math.inf]
RECORDED = pathlib.Path(__file__).with_name("recorded_friction.json")


def mass(mu, v_free=(0.8, 0, -0.0981), dtype=torch.float64):
    identity = torch.eye(3, dtype=dtype)
    return [identity, tensor(v_free).to(dtype), identity, torch.zeros(3, dtype=dtype), torch.tensor([mu], dtype=dtype)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("tolerance", [None, 1e-4])
@pytest.mark.parametrize("mu", SIZES)
def test_a_mass_does_not_sink_into_the_floor(mu, tolerance, dtype):
    arguments = mass(mu, dtype=dtype)
    v, gamma, status, _ = lcp.solve_friction(*arguments, tolerance=tolerance)
    assert status == 0
    assert v.abs().max() < 1e-7
    assert_close(gamma, tensor([-0.8, 0, 0.0981]).to(dtype))
    assert lcp.certify_friction(*arguments, v, gamma)[0] < 1e-6
    through = lcp.certify_friction(*arguments, arguments[1], torch.zeros(3, dtype=dtype))
    assert_close(through[0], tensor(0.0981 / 0.8).to(dtype))  # as deep as it goes, relative to its speed


@pytest.mark.parametrize("mu", SIZES)
def test_derivatives_of_what_sticks(mu):
    arguments = mass(mu, (0.8, -0.3, -0.1))
    *given, friction = arguments
    exact = lambda *x: solve(*x, friction, tolerance=1e-14)
    assert gradcheck(exact, leaves(given), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(exact, leaves(given), check_fwd_over_rev=True)
    assert not gradients(lambda *x: sum(y.sum() for y in solve(*x)), arguments)[4].any()


def jammed(mu):
    """A rod that sticks only if the ground pulled at it, so that with any friction it slides."""
    J = torch.cat([torch.eye(3, dtype=torch.float64),
                   torch.linalg.cross(tensor([-0.4, 0.0, -0.3]).expand(3, 3), torch.eye(3, dtype=torch.float64))], 1)
    A = torch.diag(tensor([1.0, 1, 1, 0.02, 0.02, 0.02]))
    return [A, tensor([1.0, 0.2, -0.1, 0, 0, 0]), J, torch.zeros(3, dtype=torch.float64), tensor([mu])]


@pytest.mark.parametrize("mu", [1e4, 1e8, 1e12, math.inf])
def test_a_contact_that_would_have_to_pull_slides(mu):
    arguments = jammed(mu)
    v, gamma, status, _ = lcp.solve_friction(*arguments, tolerance=1e-12)
    u = arguments[2] @ v
    assert status == 0
    assert abs(u[2]) < 1e-11 and 0 <= gamma[2] < 1e-3
    assert u[:2].norm() > 0.1 and gamma[:2].norm() > 0.01  # it slides, held back by its friction
    assert_near(u[:2] / u[:2].norm(), -gamma[:2] / gamma[:2].norm())
    given, friction = leaves(arguments[:4]), arguments[4]
    exact = lambda *x: solve(*x, friction, tolerance=1e-12)
    assert gradcheck(exact, given, check_forward_ad=True, atol=1e-4)
    if mu < 1e6:  # else too few digits of the normal impulse are left for differences of differences
        assert gradgradcheck(lambda *x: solve(*x, friction, tolerance=1e-14)[0], given, atol=1e-4)


@pytest.mark.parametrize("mu", SIZES)
def test_boxes_have_the_motion_of_large_friction(mu):
    """A box that is set down stays where it is, whatever its friction, and its derivative is that of sticking."""
    arguments = box_on_ground([0.03, 0.01, -0.2, 0.02, 0.01, 0.03], mu)
    given = leaves(arguments[:4])
    v, _, status, _ = lcp.solve_friction(*given, arguments[4])
    assert status == 0 and v.abs().max() < 1e-12
    v.sum().backward()
    assert all(x.grad.isfinite().all() for x in given)


@pytest.mark.parametrize("mu", SIZES)
def test_smooth_derivatives_exist(mu):
    arguments = leaves(mass(mu)[:4])
    v, _, status, _ = lcp.solve_friction(*arguments, mass(mu)[4], kappa=1e-3)
    assert status == 0
    v[2].backward()
    slope = (1 - 0.0981 / math.sqrt(0.0981**2 + 4e-3)) / 2
    assert_close(arguments[1].grad[2], tensor(slope), rtol=1e-6, atol=0)


def test_negative_friction_is_bad_input():
    for mu in (-0.1, -math.inf, math.nan):
        assert lcp.solve_friction(*mass(mu))[2] == 4


def test_bodies_that_move_fast_and_approach_slowly():
    J = torch.zeros(3, 2, dtype=torch.float64)
    J[2] = tensor([-1.0, 1])
    zero = torch.zeros(1, dtype=torch.float64)
    v, _, status, _ = lcp.solve_friction(torch.eye(2, dtype=torch.float64), tensor([1.000001265, 1]), J,
                                         torch.zeros(3, dtype=torch.float64), zero)
    assert status == 0
    assert_close(v, tensor([1.0000006325] * 2), rtol=0, atol=1e-15)
    # And many of them, with derivatives that see the contact.
    speeds = 30 * normal(1000, 1, seed=1)
    v_free = (speeds + 1e-8 * normal(1000, 2, seed=2).abs() * tensor([1.0, -1])).requires_grad_()
    v, _, status, _ = lcp.solve_friction(torch.eye(2, dtype=torch.float64), v_free, J,
                                         torch.zeros(3, dtype=torch.float64), zero)
    assert not status.any()
    assert (v - v_free.mean(-1, True)).abs().max() < 1e-13
    (slope,) = torch.autograd.grad(v[:, 0].sum(), v_free)
    assert_near(slope, torch.full_like(slope, 0.5))


def test_steps_of_a_toss_with_corners_nearly_in_one_plane():
    """Steps of a recorded toss: eight corners, whose gaps are some 1e-8 m/s, carry a body at rest."""
    for step in json.loads(RECORDED.read_text()):
        arguments = [tensor(step[name]) for name in ("A", "v_free", "J", "b", "mu")]
        v, gamma, status, iterations = lcp.solve_friction(*arguments)
        assert status == 0 and iterations < 3000
        assert lcp.certify_friction(*arguments, v, gamma)[0] < 1e-9
