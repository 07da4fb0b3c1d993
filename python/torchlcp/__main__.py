"""What is installed, and whether it works:  python -m torchlcp [--no-test]"""

import argparse
import platform
import sys
import time
from collections.abc import Callable

import torch

import torchlcp
from torchlcp import Status, physics
from torchlcp._built import LIBRARY


def check_solved(status: torch.Tensor) -> None:
    torch.testing.assert_close(status, torch.full_like(status, Status.SOLVED))


def a_problem_of_known_solution() -> None:
    """w = M z + q with the solution z = (4/3, 7/3)."""
    M = torch.tensor([[2.0, 1.0], [1.0, 2.0]], dtype=torch.float64)
    z, _, status = torchlcp.solve(M, torch.tensor([-5.0, -6.0], dtype=torch.float64))
    check_solved(status)
    torch.testing.assert_close(z, torch.tensor([4 / 3, 7 / 3], dtype=torch.float64))


def the_gradient_of_a_solution() -> None:
    """Against finite differences."""
    M = torch.tensor([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 2.0]], dtype=torch.float64, requires_grad=True)
    q = torch.tensor([-1.0, 2.0, -3.0], dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda M, q: torchlcp.solve(M, q)[:2], (M, q))


def a_contact_with_friction() -> None:
    """A unit mass that slides over the ground at 3 m/s while it falls at 1 m/s, mu = 1/2."""
    one = torch.eye(3, dtype=torch.float64)
    v_free, mu = torch.tensor([3.0, 0, -1], dtype=torch.float64), torch.tensor([0.5], dtype=torch.float64)
    solution = torchlcp.solve_friction(one, v_free, one, torch.zeros_like(v_free), mu)
    check_solved(solution.status)
    torch.testing.assert_close(solution.v, torch.tensor([2.5, 0, 0], dtype=torch.float64))


def a_rollout_with_its_gradient() -> None:
    """A block that slides for 10 steps: d v / d mu = -t g."""
    mu = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    block = physics.SlidingBlock(mass=1.0, dt=0.01, mu=mu, gravity=9.81)
    v, u = torch.tensor([1.0, 0.1], dtype=torch.float64), torch.zeros(10, 2, dtype=torch.float64)
    rollout = block.simulate(v, u)
    check_solved(rollout.status)
    end = rollout.v_next[-1]
    torch.testing.assert_close(end, torch.tensor([1 - 0.1 * 0.3 * 9.81, 0.0], dtype=torch.float64))
    (gradient,) = torch.autograd.grad(end.sum(), mu)
    torch.testing.assert_close(gradient, torch.tensor(-0.1 * 9.81, dtype=torch.float64))


PARTS: tuple[Callable[[], None], ...] = (
    a_problem_of_known_solution,
    the_gradient_of_a_solution,
    a_contact_with_friction,
    a_rollout_with_its_gradient,
)


def passes(part: Callable[[], None]) -> bool:
    """Runs a part of the test and prints what became of it."""
    start = time.perf_counter()
    try:
        part()
        outcome = "ok"
    except Exception as error:
        outcome = "failed: " + " ".join((str(error) or type(error).__name__).split())
    print(f"{part.__name__.replace('_', ' ')}: {outcome} ({time.perf_counter() - start:.2f} s)", flush=True)
    return outcome == "ok"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torchlcp", description="Says what is installed, and tests it.")
    parser.add_argument("--no-test", action="store_true", help="only say what is installed")
    arguments = parser.parse_args()
    print(f"torchlcp {torchlcp.__version__}, torch {torch.__version__}, Python {platform.python_version()}")
    print(f"library: {LIBRARY}")
    print(f"instruction set: {torch.ops.lcp._instruction_set()}")
    print(f"threads: {torch.get_num_threads()}")
    if arguments.no_test:
        return 0
    return 0 if all([passes(part) for part in PARTS]) else 1


if __name__ == "__main__":
    sys.exit(main())
