"""A differentiable linear-complementarity layer for PyTorch.

The functions are the operators torch.ops.lcp.* with named results. They take any batch dimensions, work under autograd in
both modes, torch.func and torch.compile, and raise an error for wrong shapes, dtypes or options before any work. Each
element of a batch has a status of its own; see Status.

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
