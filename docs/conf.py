"""How script/docs makes a site of this folder, with Sphinx."""

import html
import pathlib
import re

import ziamath
from docutils.nodes import SkipNode

root = pathlib.Path(__file__).parents[1]
project = "TorchLCP"
author = copyright = "The TorchLCP authors"
release = re.search(r"project\(TorchLCP VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text()).group(1)

extensions = ["myst_nb", "sphinxcontrib.mermaid", "breathe", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"TorchLCP {release}"
html_show_sourcelink = False
exclude_patterns = ["figures/*.py"]

myst_enable_extensions = ["dollarmath"]
html_math_renderer = "svg"
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
suppress_warnings = ["duplicate_declaration.cpp"]  # of the namespaces, which all headers have in common


def readable(app, what, name, object, options, lines):
    """Docstrings are plain text with sections: | is an absolute value in them, and * and ` have no meaning. Lines that begin
    with a name and a colon, and those below them, are items of a list."""
    lines[:] = [re.sub(r"([|*`])", r"\\\1", line) for line in lines]
    for k in reversed([k for k, line in enumerate(lines) if re.match(r'"?[a-z]\w*"?(, \w+)*: ', line)]):
        end = next((e for e in range(k + 1, len(lines)) if not lines[e].startswith("    ")), len(lines))
        item = ["* " + lines[k], *("  " + line.strip() for line in lines[k + 1 : end])]
        lines[k:end] = ["", *item, ""]


def skip(app, what, name, object, skipped, options):
    """The members of a named tuple are described by its own docstring."""
    return skipped or type(object).__name__ == "_tuplegetter"


def formula(tex, inline):
    """An SVG of the formula, in the colour of the text and on its line, which needs neither scripts nor fonts."""
    drawn = ziamath.Latex(tex, size=18, inline=inline, color="currentColor")
    style = f'role="img" aria-label="{html.escape(tex)}" style="vertical-align: {drawn.getyofst():.1f}px"'
    return drawn.svg().replace("<svg ", f"<svg {style} ", 1)


def inline_formula(self, node):
    self.body.append(formula(node.astext(), inline=True))
    raise SkipNode


def displayed_formula(self, node):
    self.body.append(f'<p style="overflow-x: auto">{formula(node.astext(), inline=False)}</p>')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("svg", (inline_formula, None), (displayed_formula, None))
    app.connect("autodoc-process-docstring", readable, priority=100)  # before napoleon, which reads the sections
    app.connect("autodoc-skip-member", skip)
