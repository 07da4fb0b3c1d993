"""Mechanical systems with contact and friction, stepped in time.

Each system is a class of its parameters. They are tensors, or numbers, lists or arrays, as are states and inputs; they
broadcast against these, and results are differentiable in all of them. A number that is out of its range is an error. An
element of which a tensor has such a number, as a negative mu that a fit tries, has the status BAD_INPUT. simulate steps a
system through all inputs, to which it may add a torchlcp.Feedback of the state, step once; both return tensors by name,
with the status of each step. Their mathematics is compiled, the same for C++, TorchScript and Python.

All batch dimensions of all arguments broadcast. Derivatives have both modes and any order. torch.func and
torch.compile(fullgraph=True) take the rollouts, too. There those of most systems are loops over torchlcp.solve, while
otherwise they are a single walk through all steps: batch dimensions are faster than torch.func.vmap. What is an error where
numbers can be read, such as a Tripod that tips, has the status BAD_INPUT there. RigidScene says what holds for it.

    block = SlidingBlock(mass=1.0, dt=0.1, mu=0.3, gravity=9.81)
    rollout = block.simulate(v=torch.tensor([0.0, 1.0]), u=torch.zeros(20, 2))
"""

from torchlcp.physics import (
    _compliant, _direct_friction, _falling_block, _friction_cone, _planar_block, _point_mass, _rigid, _robot, _robot_files,
    _sliding_block, _system, _tripod,
)
from torchlcp.physics._compliant import *  # noqa: F403
from torchlcp.physics._direct_friction import *  # noqa: F403
from torchlcp.physics._falling_block import *  # noqa: F403
from torchlcp.physics._friction_cone import *  # noqa: F403
from torchlcp.physics._planar_block import *  # noqa: F403
from torchlcp.physics._point_mass import *  # noqa: F403
from torchlcp.physics._rigid import *  # noqa: F403
from torchlcp.physics._robot import *  # noqa: F403
from torchlcp.physics._robot_files import *  # noqa: F403
from torchlcp.physics._sliding_block import *  # noqa: F403
from torchlcp.physics._system import *  # noqa: F403
from torchlcp.physics._tripod import *  # noqa: F403

__all__ = []  # extended by one statement for each module, which is the form that type checkers understand
__all__ += _compliant.__all__
__all__ += _direct_friction.__all__
__all__ += _falling_block.__all__
__all__ += _friction_cone.__all__
__all__ += _planar_block.__all__
__all__ += _point_mass.__all__
__all__ += _rigid.__all__
__all__ += _robot.__all__
__all__ += _robot_files.__all__
__all__ += _sliding_block.__all__
__all__ += _system.__all__
__all__ += _tripod.__all__
