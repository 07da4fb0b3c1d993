"""The build backend: scikit-build-core, run with the torch of the environment that the package is built for.

Even the metadata, which do not depend on torch, are only made with the right torch, so that a build without it fails before
pip downloads the requirements of the package.
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
