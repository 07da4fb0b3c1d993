"""The build backend: scikit-build-core, run with the torch of the environment that the package is built for.

Metadata need the right torch too, though they do not depend on it: so a build without it ends before pip looks for, and
downloads, what the package requires.
"""

import functools

from environment import use_torch
from scikit_build_core import build
from scikit_build_core.build import (  # noqa: F401
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)


def with_torch(hook):
    @functools.wraps(hook)
    def call(*arguments, **keywords):
        use_torch()
        return hook(*arguments, **keywords)

    return call


prepare_metadata_for_build_wheel = with_torch(build.prepare_metadata_for_build_wheel)
prepare_metadata_for_build_editable = with_torch(build.prepare_metadata_for_build_editable)
build_wheel = with_torch(build.build_wheel)
build_editable = with_torch(build.build_editable)
