"""The LCP of contacts with a pyramid in place of each friction cone, and the motion that its solution means."""
import math

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import vmap

from friction_problems import STATES, problem, solve
from support import NAN, WARNINGS_ARE_ERRORS, assert_near, assert_same, lcp, leaves, tensor, times

pytestmark = [pytest.mark.usefixtures("library"), WARNINGS_ARE_ERRORS]


def test_mistakes_of_pyramids_are_named():
    one = torch.eye(3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="directions must be >= 3; got 2"):
        lcp.friction_problem(one, one[0], one, one[0], one[0, :1], directions=2)
    with pytest.raises(RuntimeError, match="angle must be finite; got nan"):
        lcp.friction_problem(one, one[0], one, one[0], one[0, :1], angle=NAN)
    with pytest.raises(RuntimeError, match=r"z must be \[..., 6\] for 1 contacts with 4 directions; got \[5\]"):
        lcp.friction_motion(one, one[0], one, torch.ones(5).double())


def pyramid(arguments, **directions):
    """The same contacts with polyhedral friction: v and gamma, differentiable."""
    A, v_free, J, b, mu = arguments
    z = lcp.solve(*lcp.friction_problem(*arguments, **directions))[0]
    return lcp.friction_motion(A, v_free, J, z, **directions)


def test_a_pyramid_is_exact_along_its_directions():
    one = torch.eye(3, dtype=torch.float64)
    for turn in (0.0, 0.4):
        free = tensor([math.cos(turn), math.sin(turn), -1])
        arguments = one, free, one, torch.zeros(3).double(), tensor([0.5])
        for directions in (3, 4, 7):  # friction acts against the motion
            v, gamma = pyramid(arguments, directions=directions, angle=turn + math.pi)
            assert_near((v, gamma), solve(*arguments))
        v, _ = pyramid(arguments, directions=4, angle=turn + math.pi / 4)
        assert (v - solve(*arguments)[0]).norm() > 0.05


def test_pyramids_with_many_directions_come_near_the_cone():
    arguments = problem(STATES, 20)[0]
    exact = solve(*arguments)[0]
    errors = [(pyramid(arguments, directions=n)[0] - exact).norm(dim=-1).max() for n in (4, 16, 64)]
    assert errors[0] > 3 * errors[1] > 9 * errors[2] and errors[2] < 0.02
    v, gamma = pyramid(arguments, directions=8, angle=0.3)
    A, v_free, J, _, mu = arguments
    assert_near(times(A, v - v_free), times(J.mT, gamma))
    gamma = gamma.unflatten(-1, (3, 3))
    assert (gamma[..., :2].norm(dim=-1) <= mu * gamma[..., 2] + 1e-12).all()


def test_pyramids_are_differentiable():
    arguments = problem(STATES, seed=4)[0]
    motion = lambda *x: tuple(pyramid(x, directions=5, angle=0.2))
    assert gradcheck(motion, leaves(arguments), check_forward_ad=True)
    assert gradgradcheck(motion, leaves(arguments))
    shared = [problem(STATES, 2, seed=4)[0][0][:1], *problem(STATES, 2, seed=4)[0][1:4], arguments[4]]
    assert gradcheck(motion, leaves(shared))
    for f in (motion, lcp.friction_problem):
        assert_near(vmap(f)(*problem(STATES, 3)[0]), tuple(f(*problem(STATES, 3)[0])))


def test_torchscript_takes_the_lcp_and_its_motion_also_by_position():
    def motion(A, v_free, J, b, mu):
        M, q = torch.ops.lcp.friction_problem(A, v_free, J, b, mu, 6, 0.1)
        z = torch.ops.lcp.solve(M, q)[0]
        return torch.ops.lcp.friction_motion(A, v_free, J, z, 6, angle=0.1)

    arguments = problem(STATES, 3)[0]
    expected = motion(*arguments)
    assert expected[0].isfinite().all()
    assert_same(torch.jit.script(motion)(*arguments), expected)


@pytest.mark.parametrize("directions, angle", [(4, 0.0), (5, 0.3), (8, 0.1)])
def test_a_ball_that_rolls_has_the_gradient_of_sticking(directions, angle):
    """Its contact moves by the round-off of a sum that cancels."""
    generator = torch.Generator().manual_seed(0)
    count = 10_000
    uniform = lambda *shape: torch.rand(*shape, generator=generator, dtype=torch.float64)
    mass, radius = 0.5 + uniform(count), 0.05 + 0.1 * uniform(count)
    A = torch.diag_embed(torch.cat([mass[:, None].expand(-1, 3), (0.4 * mass * radius**2)[:, None].expand(-1, 3)], -1))
    J = torch.zeros(count, 3, 6, dtype=torch.float64)
    J[:, 0, 0] = J[:, 1, 1] = J[:, 2, 2] = 1
    J[:, 0, 4], J[:, 1, 3] = -radius, radius
    spin = 20 * uniform(count, 3) - 10
    v = torch.stack([radius * spin[:, 1], -radius * spin[:, 0], -uniform(count)], -1)
    v_free = torch.cat([v, spin], -1).requires_grad_()
    options = {"directions": directions, "angle": angle}
    mu, b = torch.full((1,), 0.5, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    M, q = lcp.friction_problem(A, v_free, J, b, mu, **options)
    z, w, status = lcp.solve(M, q, ties="active")
    assert (status == 0).all()
    weights = uniform(count, 6)
    found, = torch.autograd.grad((lcp.friction_motion(A, v_free, J, z, **options)[0] * weights).sum(), v_free)
    inverse = torch.linalg.inv(A)
    held = torch.eye(6) - inverse @ J.mT @ torch.linalg.solve(J @ inverse @ J.mT, J)
    assert (found - (held.mT @ weights[..., None])[..., 0]).abs().max() < 1e-9
