"""Ctrl-C ends a long call of an operator, and leaves nothing locked."""
import signal
import subprocess
import sys

import pytest

HEAD = """
import os, sys
sys.path.insert(0, sys.argv[1])
import torch, torchlcp
from torchlcp import learning
from torchlcp.physics import *
from torchlcp.identification import *
torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
torch.set_num_threads(int(sys.argv[2]))
normal = torch.randn

def box(batch):
    scene = RigidScene([RigidBody.box(1.0, (0.1, 0.1, 0.1))] * 2, [Plane.inclined()], dt=1e-3, mu=0.5)
    position = torch.tensor([[0, 0, 0.05], [1, 0, 0.05]]).expand(batch, 2, 3)
    return scene, RigidState.at_rest(position)
"""
# What takes minutes. `forward` is done first, without an interrupt.
CALLS = {
    "solve": "call = lambda: torchlcp.solve(-torch.eye(400) @ normal(400, 400, 400), normal(400, 400))",
    "one of many": """
M = torch.eye(300).repeat(2, 1, 1)
M[1] = normal(300, 300)
q = torch.stack([torch.ones(300), normal(300)])
call = lambda: [torchlcp.solve(M, q) for _ in range(100)]
""",
    "small": """
M, q = torch.eye(4) + 0.1 * normal(4, 4), normal(4_000_000, 4)
call = lambda: [torch.ops.lcp.solve(M, q) for _ in range(10_000)]
""",
    "solve_contact": """
A, J = torch.eye(600).expand(200, 600, 600), normal(200, 300, 600)
call = lambda: torchlcp.solve_contact(A, normal(200, 600), J, normal(200, 300), torch.full((200, 300), 1e-3), 0.5)
""",
    "solve_friction": """
A, J = torch.eye(300).expand(400, 300, 300), normal(400, 300, 300)
call = lambda: torchlcp.solve_friction(A, normal(400, 300), J, 0 * normal(400, 300), 0.5)
""",
    "gradient": """
M = (torch.eye(600) + 0.001 * normal(600, 600)).requires_grad_()
q = -torch.ones(1, 600)
z = torchlcp.solve(M, q.expand(60, 600)).z
call = lambda: [torch.autograd.grad(z.sum(), M, retain_graph=True) for _ in range(10_000)]
""",
    "rollout": """
scene, state = box(64)
call = lambda: [scene.simulate(state, torch.zeros(20_000, 2, 6)) for _ in range(100)]
""",
    "steps": """
scene, state = box(1)
call = lambda: scene.simulate(state, torch.zeros(1_000_000, 2, 6), kappa=1e-6)
""",
    "systems": """
block = SlidingBlock(1.0, 0.1, 0.3, 9.81)
call = lambda: [block.simulate(normal(1000), normal(10_000, 1000)) for _ in range(1000)]
""",
    "fit_network": """
x = normal(2000, 4)
call = lambda: learning.fit_network(x, normal(2000, 2), threads=int(sys.argv[2]))
""",
    "fit": """
block = PlanarBlock(1.0, 0.01, 0.3, 9.81)
u = normal(2000, 100, 2)
def residuals(theta):
    return PlanarBlock(1.0, 0.01, theta[..., :1], 9.81).simulate(normal(100, 2), u).v_next.movedim(0, -3).flatten(-3)
call = lambda: [least_squares(residuals, torch.full((3, 1), 0.2), max_iterations=10_000, tolerance=1e-300) for _ in range(1000)]
""",
}
TAIL = """
print("begins", flush=True)
try:
    call()
    print("ends", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
M, q = torch.eye(20) * 2, torch.full((100, 20), -1.0, requires_grad=True)
torchlcp.solve(M, q).z.sum().backward()
assert (q.grad == -0.5).all()
print("alive", flush=True)
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CALLS)
def test_a_long_call_ends_with_keyboard_interrupt(package, name, threads):
    command = [sys.executable, "-c", HEAD + CALLS[name] + TAIL, str(package), str(threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begins\n", process.stderr.read()
        try:
            process.communicate(timeout=1)
            raise AssertionError("the call takes less than a second")
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        try:
            printed, errors = process.communicate(timeout=900)
        finally:
            process.kill()
    assert (printed, errors) == ("interrupted\nalive\n", "")
    # Python ends by SIGINT after a KeyboardInterrupt that left an exec() of a string, as modules do when they are imported.
    assert process.returncode in (0, -signal.SIGINT)


def test_another_handler_decides(package):
    """One that raises ends the call with its exception; one that does not lets it go on."""
    code = HEAD + """
import signal, threading
signal.signal(signal.SIGUSR1, lambda *_: print("seen", flush=True))
def stop(*_):
    raise ValueError("enough")
signal.signal(signal.SIGUSR2, stop)
main = threading.main_thread().ident
threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGUSR1)).start()
threading.Timer(0.8, signal.pthread_kill, (main, signal.SIGUSR2)).start()
try:
    torchlcp.solve(-torch.eye(400) @ normal(400, 400, 400), normal(400, 400))
except ValueError as error:
    print(error)
"""
    result = subprocess.run([sys.executable, "-c", code, package, "2"], capture_output=True, text=True, timeout=900)
    assert (result.returncode, result.stdout, result.stderr) == (0, "seen\nenough\n", "")
