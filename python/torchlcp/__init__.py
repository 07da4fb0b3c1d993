"""A differentiable linear-complementarity layer for PyTorch.

The functions are the operators torch.ops.lcp.*, with names for what they return: they take any batch dimensions, work
under autograd in both modes, torch.func and torch.compile, and throw for a mistake in shapes, dtypes or options before
any work. What becomes of an element of the batch is in its status; see Status.

    [CPS] Cottle, Pang, Stone: The Linear Complementarity Problem, SIAM, 2009.
"""

from torchlcp import _library  # noqa: F401, first: it registers the operators
from torchlcp._built import VERSION
from torchlcp._contact import (
    ContactCertificate,
    ContactParameters,
    ContactSolution,
    FreeMotion,
    add_equality,
    certify_contact,
    contact_parameters,
    delassus_diagonal,
    solve_contact,
)
from torchlcp._layer import LCP
from torchlcp._operators import (
    Certificate,
    DirectionalDerivative,
    MixedSolution,
    Solution,
    Status,
    certify,
    directional_derivative,
    gradient_radius,
    solve,
    solve_mixed,
    status_name,
)

__version__ = VERSION
__all__ = [
    "LCP",
    "Certificate",
    "ContactCertificate",
    "ContactParameters",
    "ContactSolution",
    "DirectionalDerivative",
    "FreeMotion",
    "MixedSolution",
    "Solution",
    "Status",
    "add_equality",
    "certify",
    "certify_contact",
    "contact_parameters",
    "delassus_diagonal",
    "directional_derivative",
    "gradient_radius",
    "solve",
    "solve_contact",
    "solve_mixed",
    "status_name",
]
