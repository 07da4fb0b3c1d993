"""Models as programs of torch.export: python/torchlcp/export.py, and the model.pt2 of the training programs."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit")

ROOT = pathlib.Path(__file__).parents[2]
PRETRAINED = sorted((ROOT / "models" / "pretrained").glob("*.pt"))
FAST = ("--samples", 20, "--iterations", 2)
SIZES = {"position": [3], "orientation": [4], "velocity": [3], "angular_velocity": [3]}


@pytest.fixture(scope="module")
def export(library):
    """The module, without the package."""
    spec = importlib.util.spec_from_file_location("export", ROOT / "python" / "torchlcp" / "export.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reloaded(export, model, folder):
    torch.export.save(export.export_model(model), folder / "model.pt2")
    return torch.export.load(folder / "model.pt2").module()


def inputs_of(model, batch, seed=0):
    generator = torch.Generator().manual_seed(seed)
    names = [argument.name for argument in model.step.schema.arguments[1:]]
    sizes = getattr(model, "input_sizes", {})
    inputs = [2 * torch.randn(batch, *sizes.get(name, []), dtype=torch.float64, generator=generator) for name in names]
    if "position" in names:  # of cubes of .1 m, about as high as they are long
        inputs[0][:, 2] = 0.06 + inputs[0][:, 2] / 100
    return inputs


def assert_same(program, model):
    """The bits of all results for several batches, and the gradients of all parameters."""
    parameters = dict(program.named_parameters())
    assert list(parameters) == [name for name, _ in model.named_parameters()]
    for name, parameter in model.named_parameters():
        assert torch.equal(parameters[name], parameter) and parameters[name].requires_grad == parameter.requires_grad
    for batch in (0, 1, 2, 7, 1000):
        inputs = inputs_of(model, batch)
        if batch > 2:
            inputs[0].view(batch, -1)[1] = torch.nan
        found, expected = program(*inputs), model.step(*inputs)
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
        if batch > 2 and "weight_0" not in parameters:  # a network of tosses solves nothing
            assert expected[-1].dtype == torch.int8 and expected[-1][1] == 4
    inputs = inputs_of(model, 50)
    gradients = []
    for results, of in ((program(*inputs), program), (model.step(*inputs), model)):
        solved = results[-1] == 0
        assert solved.any()
        loss = sum((x * x.sin()).sum() for x in (x[solved] for x in results[:-1]))
        gradients.append(torch.autograd.grad(loss, list(of.parameters()), allow_unused=True))
    for a, b in zip(*gradients):
        # TorchScript may add the terms of a gradient in another order.
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12 * (0 if b is None else float(b.abs().max())))


@pytest.mark.parametrize("path", PRETRAINED, ids=lambda path: path.stem)
def test_a_program_has_the_bits_of_the_pretrained_model(export, tmp_path, path):
    model = torch.jit.load(path)
    program = reloaded(export, model, tmp_path)
    assert_same(program, model)
    inputs = inputs_of(model, 5)
    assert torch.equal(program(*(x.float() for x in inputs))[0], model(*(x.float() for x in inputs)))


@pytest.mark.parametrize("program, flags", [
    ("train_direct", FAST), ("train_direct", (*FAST, "--dtype", "float32")), ("train_direct", (*FAST, "--start", "random")),
    ("train_slack", FAST), ("train_penalty", FAST), ("train_structured", FAST), ("fit_linear_program", ("--samples", 100)),
    ("train_in_the_loop", FAST), ("train_bilevel", (*FAST, "--parameters", "networks")),
    ("train_network", ("--samples", 50, "--starts", 48, "--black-box-iterations", 20)),
    ("train_mpec", ("--samples", 20, "--starts", 2)), ("train_directions", (*FAST, "--starts", 2)),
    ("train_tosses", ("--simulated", 12, "--window", 20, "--iterations", 1)),
    ("train_tosses", ("--simulated", 12, "--window", 20, "--iterations", 1, "--model", "network")),
], ids=str)
def test_a_program_has_the_bits_of_the_model_of_a_run(export, build, run, tmp_path, program, flags):
    if not (build / "bin" / program).exists():
        pytest.skip(f"{program} is not built")
    result = run(program, *flags, "--out", "out", "--quiet")
    assert (result.returncode, result.stderr) == (0, "")
    model = torch.jit.load(tmp_path / "out" / "model.pt")
    assert_same(reloaded(export, model, tmp_path), model)


def test_training_programs_write_it(run, export, tmp_path):
    """It is among the files of the run, and a run without it removes that of an earlier run."""
    result = run("train_direct", *FAST, "--out", "out", env={**os.environ, "TORCHLCP_PYTHON": sys.executable})
    assert result.returncode == 0 and "no model.pt2" not in result.stderr
    assert "out/model.pt2\n" in result.stdout
    assert "model.pt2" in json.loads((tmp_path / "out" / "config.json").read_text())["files"]
    attributes = {export.ATTRIBUTES: ""}
    program = torch.export.load(tmp_path / "out" / "model.pt2", extra_files=attributes)
    model = torch.jit.load(tmp_path / "out" / "model.pt")
    assert_same(program.module(), model)
    assert json.loads(attributes[export.ATTRIBUTES]) == {
        "format_version": 2, "dt": model.dt, "mass": model.mass, "gravity": model.gravity, "mu": model.mu}
    assert str(ROOT) not in str(program)  # nor is any other place where it was made
    assert run("train_direct", *FAST, "--seed", 1, "--out", "out").returncode == 0
    assert not (tmp_path / "out" / "model.pt2").exists()


@pytest.mark.parametrize("script, reason", [
    (None, "cannot run /no/python"),
    ("echo half a program >$5; echo no torch here >&2; exit 1", "no torch here"),
    ("exit 0", "/python wrote none"),
])
def test_without_it_a_run_says_how_to_write_it(run, tmp_path, script, reason):
    python = pathlib.Path("/no/python")
    if script:
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
    environment = {**os.environ, "TORCHLCP_PYTHON": str(python)}
    result = run("train_direct", *FAST, "--out", "out", env=environment)
    (line,) = [line for line in result.stderr.splitlines() if "model.pt2" in line]
    assert result.returncode == 0 and line.startswith("no model.pt2: ") and reason in line
    assert f"by a Python with torch {torch.__version__.partition('+')[0]}: python3 /" in line
    assert not (tmp_path / "out" / "model.pt2").exists() and not list((tmp_path / "out").glob(".torchlcp*"))
    quiet = run("train_direct", *FAST, "--out", "out", "--quiet", env=environment)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    if script is None:  # as the line says
        command = line.split(": python3 ")[1].split()
        assert subprocess.run([sys.executable, *command], cwd=tmp_path).returncode == 0
        assert (tmp_path / "out.pt2").exists()


def test_the_example_steps_a_program_in_a_fresh_process(build, package, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(package)}
    command = [sys.executable, "-m", "torchlcp.export", PRETRAINED[1], tmp_path / "direct.pt2"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == [tmp_path / "direct.pt2"]
    command = [sys.executable, ROOT / "examples" / "load_program.py", tmp_path / "direct.pt2"]
    text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert "dt = 0.1 s" in text and "sticks: v = 0.0 m/s, u = 1.0 N  ->  0.0000 m/s, friction -1.0000 N" in text
    assert text.count("True") == 4  # each parameter has a gradient


def test_a_failure_leaves_the_earlier_file(export, tmp_path, monkeypatch):
    target = tmp_path / "model.pt2"
    target.write_text("earlier")

    def fails(program, path, extra_files):
        path.write_text("half")
        raise OSError("no room")

    monkeypatch.setattr(torch.export, "save", fails)
    monkeypatch.setattr(sys, "argv", ["export", str(PRETRAINED[1]), str(target)])
    with pytest.raises(OSError, match="no room"):
        export.main()
    assert list(tmp_path.iterdir()) == [target] and target.read_text() == "earlier"


@pytest.mark.parametrize("model, message", [
    (None, "does not exist"), (ROOT / "README.md", "failed reading zip archive"),
    (PRETRAINED[0], "Unknown builtin op: lcp::solve")])
def test_a_file_that_cannot_be_read_is_named_in_one_line(tmp_path, model, message):
    command = [sys.executable, ROOT / "python" / "torchlcp" / "export.py", model or tmp_path / "none.pt", tmp_path / "model.pt2"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1 and result.stderr.count("\n") == 1
    assert re.match(rf"torch {re.escape(torch.__version__)}: .*{message}", result.stderr)
    assert not list(tmp_path.iterdir())


class Loop(torch.nn.Module):
    def forward(self, v):
        return v

    @torch.jit.export
    def step(self, v, times: int):
        for _ in range(times):
            v = v + v
        return v


class Forward(torch.nn.Module):
    def forward(self, v):
        return v


@pytest.mark.parametrize("module, message", [(Loop, "must be a sequence of operators; this one has prim::Loop"),
                                             (Forward, "the model has no method `step`")])
def test_what_is_no_sequence_of_operators_is_refused(export, module, message):
    with pytest.raises(ValueError, match=message):
        export.export_model(torch.jit.script(module()))


def assert_package_steps_as(model, export, folder, error):
    """Up to rounding, since compiled code may add in another order."""
    attributes = export.attributes_of(model)
    export.compile_package(export.export_model(model), folder / "model_aoti.pt2", attributes)
    package = torch._inductor.aoti_load_package(str(folder / "model_aoti.pt2"))
    metadata = package.get_metadata()
    assert {name: float(metadata[name]) for name in attributes} == attributes
    for batch in (0, 1, 2, 1000):
        inputs = inputs_of(model, batch)
        with torch.no_grad():
            for a, b in zip(package(*inputs), model.step(*inputs), strict=True):
                torch.testing.assert_close(a, b, rtol=error, atol=error)


@pytest.mark.long
@pytest.mark.parametrize("path", PRETRAINED, ids=lambda path: path.stem)
def test_a_package_steps_as_the_model_does(export, tmp_path, path):
    """The test of the installed package runs one in C++."""
    assert_package_steps_as(torch.jit.load(path), export, tmp_path, 1e-13)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["exact_cone", "polyhedral", "compliant", "network"])
def test_a_package_steps_as_the_model_of_tosses_does(export, build, run, tmp_path, kind):
    """A step of a cube solves contacts to a tolerance."""
    if not (build / "bin" / "train_tosses").exists():
        pytest.skip("train_tosses is not built")
    flags = ("--model", "network") if kind == "network" else ("--contact", kind, "--learn", "mu", "side")
    result = run("train_tosses", "--simulated", 12, "--window", 20, "--iterations", 1, *flags, "--out", "out", "--quiet")
    assert (result.returncode, result.stderr) == (0, "")
    assert_package_steps_as(torch.jit.load(tmp_path / "out" / "model.pt"), export, tmp_path, 1e-9)
