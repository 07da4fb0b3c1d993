"""How script/docs makes a site of this folder, with Sphinx."""

import pathlib
import re

root = pathlib.Path(__file__).parents[1]
project = "TorchLCP"
author = copyright = "The TorchLCP authors"
release = re.search(r"project\(TorchLCP VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text()).group(1)

extensions = ["myst_nb", "sphinxcontrib.mermaid", "breathe", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"TorchLCP {release}"
html_show_sourcelink = False
exclude_patterns = ["figures/*.py"]

myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
napoleon_use_rtype = False
breathe_projects = {"torchlcp": str(root / "build/docs/doxygen/xml")}
breathe_default_project = "torchlcp"
breathe_default_members = ("members",)


def readable(app, what, name, object, options, lines):
    """Docstrings are plain text with sections: | is an absolute value in them, and * and ` have no meaning. The lines of a
    named tuple that begin with the name of a member, and those below them, describe the members."""
    lines[:] = [re.sub(r"([|*`])", r"\\\1", line) for line in lines]
    members = getattr(object, "_fields", ())
    starts = [k for k, line in enumerate(lines) if line.split(":")[0] in members]
    if starts:
        lines[starts[0]:] = ["Attributes:", *("    " + line for line in lines[starts[0]:])]


def skip(app, what, name, object, skipped, options):
    """The members of a named tuple are described by its own docstring."""
    return skipped or type(object).__name__ == "_tuplegetter"


def setup(app):
    app.connect("autodoc-process-docstring", readable, priority=100)  # before napoleon, which reads the sections
    app.connect("autodoc-skip-member", skip)
