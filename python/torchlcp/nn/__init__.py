"""Layers and models that solve LCPs, as torch.nn.Module.

LCP is the layer. StateMap, StructuredMatrix, DirectModel, TraditionalModel and LcpNetwork are those of include/lcp/nn, whose
formulas they call; the entries of their state_dict have the names of the parameters and buffers in C++. All their
parameters as one vector are torch.nn.utils.parameters_to_vector(model.parameters()), and many models at once are
torch.func.vmap of torch.func.functional_call.
"""

from torchlcp import _layer
from torchlcp._layer import *  # noqa: F403
from torchlcp.nn import (
    _direct_model, _lcp_network, _relu_pair, _state_map, _structured_matrix, _traditional_model,
)
from torchlcp.nn._direct_model import *  # noqa: F403
from torchlcp.nn._lcp_network import *  # noqa: F403
from torchlcp.nn._relu_pair import *  # noqa: F403
from torchlcp.nn._state_map import *  # noqa: F403
from torchlcp.nn._structured_matrix import *  # noqa: F403
from torchlcp.nn._traditional_model import *  # noqa: F403

__all__ = []  # extended by one statement for each module, which is the form that type checkers understand
__all__ += _direct_model.__all__
__all__ += _layer.__all__
__all__ += _lcp_network.__all__
__all__ += _relu_pair.__all__
__all__ += _state_map.__all__
__all__ += _structured_matrix.__all__
__all__ += _traditional_model.__all__
