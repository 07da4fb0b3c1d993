"""A differentiable linear-complementarity layer for PyTorch.

The functions are the operators torch.ops.lcp.* with named results. They take any batch dimensions, work under autograd in
both modes, torch.func and torch.compile, and raise an error for wrong shapes, dtypes or options before any work. Numbers, lists
and arrays are taken for tensors. Each element of a batch has a status of its own; see Status. Ctrl-C ends a long call.

physics has mechanical systems that are stepped in time, nn layers and models, losses those of learning an LCP, learning
what data say of a model, identification the estimation of parameters and states. In a shell,  python -m torchlcp  says
what is installed, and tests it.

    [CPS] Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009.
"""

from torchlcp import _library  # noqa: F401, first: it registers the operators
from torchlcp import _contact, _friction, _layer, _operators, _pad, _simulate, _step
from torchlcp import identification, learning, losses, nn, physics
from torchlcp._built import VERSION
from torchlcp._contact import *  # noqa: F403
from torchlcp._friction import *  # noqa: F403
from torchlcp._layer import *  # noqa: F403
from torchlcp._operators import *  # noqa: F403
from torchlcp._pad import *  # noqa: F403
from torchlcp._simulate import *  # noqa: F403
from torchlcp._step import *  # noqa: F403

__version__ = VERSION
# Extended by one statement for each module, which is the form that type checkers understand.
__all__ = ["identification", "learning", "losses", "nn", "physics"]
__all__ += _contact.__all__
__all__ += _friction.__all__
__all__ += _layer.__all__
__all__ += _operators.__all__
__all__ += _pad.__all__
__all__ += _simulate.__all__
__all__ += _step.__all__
