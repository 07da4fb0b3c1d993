"""What the tests of torchlcp.nn are given."""

import pytest
import torch
from modules import MAKERS


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.fixture
def theta():
    return MAKERS["LCP network"]().random(3, torch.Generator().manual_seed(0))
