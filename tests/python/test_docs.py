"""The Python of README and docs, and the script of a figure, run as they stand; files that they name exist."""
import multiprocessing
import pathlib
import re
import runpy
import sys

import pytest
import torch  # noqa: F401  # each snippet runs in a fork of this process, which need not import it again

ROOT = pathlib.Path(__file__).parents[2]
README = "README.md"


def snippets(document):
    return re.findall(r"^```(?:python|\{code-cell\})\n(.*?)^```$", (ROOT / document).read_text(), re.M | re.S)


def in_a_fork(function, *arguments):
    """Fails unless the function returns."""
    process = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == 0


@pytest.fixture
def run(build, package, capfd, monkeypatch):
    """Runs code in the project's folder, where torchlcp can be imported; returns what it printed."""
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(package)

    def call(code):
        in_a_fork(exec, code.replace('"build/lib', f'"{build}/lib'), {"__name__": "__main__"})
        printed, errors = capfd.readouterr()
        assert errors == ""
        return printed

    return call


@pytest.mark.parametrize(
    "document, more, printed",
    [
        ("README.md", "print(z, rollout.v_next[-1])", "tensor([[0.5000, 0.0000],\n        [0.3333, 0.3333]]"),
        ("docs/programs.md", "", "tensor([0.0000, 0.7057]"),
    ],
)
def test_snippet_prints(run, document, more, printed):
    (snippet,) = snippets(document)
    assert printed in run(snippet + more)


def documents():
    return [path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md") if snippets(path)]


@pytest.mark.parametrize("document", documents(), ids=str)
def test_document(run, document):
    run("".join(snippets(document)))


@pytest.mark.parametrize("language, suffix, comment", [("py", "py", "#"), ("c++", "cpp", "//")])
def test_excerpts_are_lines_of_examples(language, suffix, comment):
    """Blocks of py and c++, which are not run here; test_examples.py and tests/package run the examples."""

    def code_lines(text):
        lines = [re.sub(f" *{comment}.*", "", line).strip() for line in text.splitlines()]
        return [line for line in lines if line]

    def is_of(example, excerpt):
        rest = iter(example)
        return all(line in rest for line in excerpt)

    examples = [code_lines(path.read_text()) for path in (ROOT / "examples").glob(f"*.{suffix}")]
    texts = [path.read_text() for path in (ROOT / "docs").rglob("*.md")]
    block = re.compile(rf"^```{re.escape(language)}\n(.*?)^```$", re.M | re.S)
    excerpts = [code_lines(excerpt) for text in texts for excerpt in block.findall(text)]
    strange = [excerpt for excerpt in excerpts if not any(is_of(example, excerpt) for example in examples)]
    assert excerpts and not strange


@pytest.mark.parametrize("document", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_named_files_exist(document):
    named = re.findall(r"`((?:csrc|include|models|training|tests|docs|script)/[\w./]+)`", (ROOT / document).read_text())
    missing = [path for path in named if "name" not in path and not (ROOT / path).exists()]
    assert named and not missing


# The table of docs/architecture.md: which modules each may include, and with them those that they may. A module is a
# folder, or a header that more modules may include than the others of its folder.
KNOWN = {
    "simd": [],
    "interrupt": [],
    "linalg": ["simd", "interrupt", "Eigen"],
    "solver": ["linalg", "lcp/method.h", "lcp/status.h"],
    "batch": ["solver"],
    "lcs": ["batch", "lcp/ties.h"],
    "contact": ["interrupt", "Eigen", "lcp/status.h"],
    "contact/cuda": ["contact", "linalg"],
    "contact/tensor_cone.h": ["LibTorch"],
    "friction": ["contact/cuda", "solver"],
    "rigid": ["friction", "batch", "rigid/parameter.h", "lcp/ties.h"],
    "compliant": ["rigid"],
    "systems": ["lcs", "lcp/detail/step_formulas.h"],
    "ops": ["systems", "compliant", "contact/tensor_cone.h", "ops/call_python.h", "ops/composite.h", "ops/registration.h",
            "ops/rollout/registered.h", "ops/rollout/rollout.h", "lcp"],
    "ops/call_python.h": ["LibTorch"],
    "ops/composite.h": ["lcp", "ops/registration.h"],
    "ops/registration.h": ["LibTorch"],
    "ops/rollout/rollout.h": ["ops/rollout/step_text.h", "rigid", "lcp"],
    "ops/rollout/registered.h": ["lcp"],
    "ops/rollout/step_text.h": ["LibTorch"],
    "rigid/parameter.h": [],
    "physics": ["lcp/physics", "physics/scene_list.h", "contact/tensor_cone.h", "ops/composite.h", "ops/rollout/registered.h",
                "ops/rollout/rollout.h", "rigid", "Eigen"],
    "physics/scene_list.h": ["lcp/physics", "ops/composite.h"],
    "learning": ["lcp/learning", "ops/composite.h"],
    "learning/network": ["lcp/learning/fit_network.h", "lcp/learning", "lcp/identification", "interrupt", "ops/call_python.h",
                         "ops/composite.h"],
    "identification": ["lcp/identification", "ops/call_python.h", "ops/composite.h", "Eigen"],
    "identification/motion": ["lcp/identification/fit_motion.h", "physics/scene_list.h", "ops/call_python.h", "ops/composite.h"],
    "models": ["lcp/nn", "ops/composite.h"],
    "training": ["lcp/physics", "lcp/learning", "lcp/learning/network_search.h", "lcp/identification/fit_motion.h", "lcp/nn",
                 "Eigen"],
    "lcp": ["lcp/detail/step_formulas.h", "lcp/export.h", "lcp/interrupt.h", "lcp/method.h", "lcp/status.h", "lcp/ties.h",
            "LibTorch"],
    "lcp/physics": ["lcp"],
    "lcp/learning": ["lcp"],
    "lcp/learning/fit_network.h": ["lcp/learning/network_search.h"],
    "lcp/learning/network_search.h": ["lcp/nn"],
    "lcp/identification": ["lcp"],
    "lcp/identification/fit_motion.h": ["lcp/identification/motion_model.h", "lcp/identification/motion_windows.h"],
    "lcp/identification/motion_model.h": ["lcp/identification", "lcp/physics"],
    "lcp/identification/motion_windows.h": ["lcp/identification", "lcp/physics"],
    "lcp/nn": ["lcp"],
    "lcp/lcp.h": ["lcp/physics", "lcp/learning", "lcp/identification/fit_motion.h", "lcp/nn"],
    "lcp/export.h": [],
    "lcp/interrupt.h": ["lcp/export.h"],
    "lcp/method.h": [],
    "lcp/status.h": [],
    "lcp/detail/step_formulas.h": [],
    "lcp/ties.h": [],
}
LIBRARIES = {"Eigen": "Eigen", "ATen": "LibTorch", "c10": "LibTorch", "torch": "LibTorch"}
# Where the headers of each folder are included from.
BASES = {"include": "include", "csrc": "csrc", "models": ".", "training": "."}


def module_of(file):
    first = file.split("/")[0]
    return LIBRARIES.get(first) or max((m for m in KNOWN if f"{file}/".startswith(f"{m}/")), key=len, default=None)


def known(module):
    return {module}.union(*(known(other) for other in KNOWN.get(module, [])))


def test_includes_follow_the_arrows():
    assert {path.name for path in (ROOT / "csrc").iterdir() if path.is_dir()} <= set(KNOWN)
    wrong = []
    for folder, base in BASES.items():
        for path in [*(ROOT / folder).rglob("*.h"), *(ROOT / folder).rglob("*.cpp")]:
            module = module_of(path.relative_to(ROOT / base).as_posix())
            for header in re.findall(r'^#include ["<]([^">]+)[">]', path.read_text(), re.M):
                own = folder == "training" and (ROOT / folder / header).exists()
                if not own and module_of(header) not in known(module) | {None}:
                    wrong.append(f"{path.relative_to(ROOT)}: {header}")
    assert not wrong


def test_folders_of_training_depend_on_each_other_as_their_table_says():
    table = (ROOT / "docs" / "architecture.md").read_text().split("## The programs")[1]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", table, re.M)
    folders = [path for path in (ROOT / "training").iterdir() if path.is_dir()]
    names = {folder.name for folder in folders}
    included = {}
    for folder in folders:
        sources = [path.read_text() for path in (*folder.glob("*.h"), *folder.glob("*.cpp"))]
        first = {name for source in sources for name in re.findall(r'^#include "(\w+)/', source, re.M)}
        included[folder.name] = (first & names) - {folder.name}
    assert included == {folder: set(re.findall(r"`(\w+)`", others)) for folder, others in rows}


@pytest.mark.parametrize("name", ["gradients", "learning_basin"])
def test_figure(build, tmp_path, monkeypatch, name):
    target = tmp_path / f"{name}.png"
    script = ROOT / "docs" / "figures" / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(script), str(build / "lib" / "libtorchlcp.so"), str(target)])
    in_a_fork(runpy.run_path, str(script), None, "__main__")
    assert target.stat().st_size > 10_000
