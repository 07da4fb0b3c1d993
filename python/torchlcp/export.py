"""Learned models without TorchScript:  python -m torchlcp.export model.pt [model.pt2] [--package FILE]

The training programs write a model as TorchScript, model.pt, which PyTorch has deprecated. This module writes the same
model as a program of torch.export, model.pt2, and compiles that by AOTInductor for C++ without Python.

It uses nothing but torch: the training programs run it as a script, too, which gets the operators by --library. The
package torchlcp does not import it, since  python -m  would then run it a second time.
"""

import argparse
import inspect
import json
import os
import pathlib
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import torch

ATTRIBUTES = "attributes.json"
"""The extra file of torch.export.load that holds what attributes_of returns, as JSON."""

# TorchScript's ways to make and read lists and tuples: what each makes of its inputs.
_CONSTRUCTIONS: dict[str, Callable[..., Any]] = {
    "prim::ListConstruct": lambda *items: (list(items),),
    "prim::TupleConstruct": lambda *items: (items,),
    "prim::ListUnpack": tuple,
    "prim::TupleUnpack": tuple,
}


def _function_of(node: Any) -> Callable[..., Any]:
    """What a node of a graph of TorchScript does, as a function of its inputs that returns a tuple of its outputs."""
    if node.kind() in _CONSTRUCTIONS:
        return _CONSTRUCTIONS[node.kind()]
    namespace, _, name = node.kind().partition("::")
    overload = node.schema().partition("(")[0].partition(".")[2]  # of, for example, aten::add.Tensor(Tensor self, ...
    operator = getattr(getattr(getattr(torch.ops, namespace), name, None), overload or "default", None)
    if not isinstance(operator, torch._ops.OpOverload):
        raise ValueError(f"the method `step` of a model must be a sequence of operators; this one has {node.kind()}")
    arguments, several = operator._schema.arguments, len(operator._schema.returns) != 1

    def call(*inputs: Any) -> Any:
        positional = [x for x, argument in zip(inputs, arguments) if not argument.kwarg_only]
        outputs = operator(*positional, **{a.name: x for x, a in zip(inputs, arguments) if a.kwarg_only})
        return outputs if several else (outputs,)

    return call


class _Step(torch.nn.Module):
    """Runs the method `step` of a model, node by node of its graph, so that torch.export can record it."""

    def __init__(self, model: torch.jit.ScriptModule):
        super().__init__()
        if not isinstance(getattr(model, "step", None), torch.ScriptMethod):
            raise ValueError("the model has no method `step`")
        step: Any = model.step
        for name, parameter in model.named_parameters():
            self.register_parameter(name, torch.nn.Parameter(parameter.detach(), parameter.requires_grad))
        for name, buffer in model.named_buffers():
            self.register_buffer(name, buffer)
        graph = step.inlined_graph
        _, *self.arguments = [value.debugName() for value in graph.inputs()]  # the first is the model
        self.result = next(graph.outputs()).debugName()
        self.constants: dict[str, Any] = {}
        self.tensors: dict[str, str] = {}  # the values that are parameters or buffers, with their names there
        self.calls: list[tuple[Callable[..., Any], list[str], list[str]]] = []
        for node in graph.nodes():
            inputs, outputs = ([x.debugName() for x in values] for values in (node.inputs(), node.outputs()))
            if node.kind() == "prim::Constant":
                self.constants[outputs[0]] = node.output().toIValue()
            elif node.kind() != "prim::GetAttr":
                self.calls.append((_function_of(node), inputs, outputs))
            elif isinstance(getattr(model, node.s("name")), torch.Tensor):
                self.tensors[outputs[0]] = node.s("name")
            else:
                self.constants[outputs[0]] = getattr(model, node.s("name"))
        # The inputs have names by which a program can be called, as the model can.
        self.names = [argument.name for argument in step.schema.arguments[1:]]
        forward: Any = lambda *inputs: self.run(inputs)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        forward.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in self.names])
        self.forward = forward

    def run(self, inputs: tuple[torch.Tensor, ...]) -> Any:
        values = {**self.constants, **{value: getattr(self, name) for value, name in self.tensors.items()}}
        values.update(zip(self.arguments, inputs))
        for function, given, made in self.calls:
            values.update(zip(made, function(*(values[name] for name in given))))
        return values[self.result]


def export_model(model: torch.jit.ScriptModule) -> torch.export.ExportedProgram:
    """The method `step` of a model as a program of torch.export.

    The program has the operators that `step` runs, and so its bits. TorchScript's own converter,
    torch._export.converter.TS2EPConverter, makes buffers of the parameters and leaves out `detach`, on which gradients of
    these models depend.

    Args:
        model: what torch.jit.load makes of a model.pt, or any module whose `step` takes tensors and has neither branches
            nor loops. Its attribute `input_sizes` has, for each input by its name, the sizes of the dimensions behind the
            batch; an input without such an entry is a number for each element of the batch.
    Returns:
        A program with the inputs and the results of `step`, of which each has one batch dimension in front, of any size,
        and with the parameters and buffers of the model by their names.
    Raises:
        ValueError: the model has no `step`, or one that is no sequence of operators.
    """
    step = _Step(model)
    sizes = getattr(model, "input_sizes", {})
    dtype = next((parameter.dtype for parameter in step.parameters()), torch.float64)
    # A batch of more than one element, since PyTorch takes sizes of 0 and 1 for constants.
    examples = tuple(torch.ones(7, *sizes.get(name, []), dtype=dtype) for name in step.names)
    batch = {name: {0: torch.export.Dim("batch")} for name in step.names}
    program = torch.export.export(step, examples, dynamic_shapes=batch, strict=False)
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # the place of this file, which is no part of the model
    return program


def attributes_of(model: torch.jit.ScriptModule) -> dict[str, float]:
    """The numbers of a model that are no tensors, which a program of torch.export does not keep.

    Args:
        model: as for export_model.
    Returns:
        format_version, dt (s), mass (kg), gravity (m/s^2), mu and, of models of tosses, rate (1/s), each where the model has
        it. A mu that was learned is a parameter of the program instead.
    """
    found = {name: getattr(model, name, None) for name in ("format_version", "dt", "mass", "gravity", "mu", "rate")}
    return {name: value for name, value in found.items() if isinstance(value, (int, float))}


def compile_package(program: torch.export.ExportedProgram, path: str | os.PathLike[str], attributes: dict[str, float]) -> None:
    """Compiles a program into a package of AOTInductor, which runs in C++ and in Python. It has no gradients.

    A compiler for C++ must be installed. The package is for processors that have the instruction sets of this one.

    Args:
        program: what export_model or torch.export.load returns.
        path: the file to write, whose name ends with .pt2.
        attributes: numbers that the metadata of the package has as texts.
    """
    options = {
        "aot_inductor.metadata": {name: repr(value) for name, value in attributes.items()},
        # Else a parameter without dimensions, such as mu, becomes a constant that PyTorch 2.13 does not compile:
        # LoweringException: AttributeError: 'Constant' object has no attribute 'data'.
        "always_keep_tensor_constants": True,
    }
    torch._inductor.aoti_compile_and_package(program, package_path=os.fspath(path), inductor_configs=options)


def _write(path: pathlib.Path, write: Callable[[pathlib.Path], None]) -> None:
    """Writes a file by a function of the path to write to, so that `path` is replaced completely or not at all."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".torchlcp-") as folder:
        unfinished = pathlib.Path(folder) / "unfinished.pt2"
        write(unfinished)
        os.replace(unfinished, path)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m torchlcp.export",
        description="Writes a learned model as a program of torch.export: the method `step` of a model.pt.",
    )
    parser.add_argument("model", type=pathlib.Path, help="the model.pt of a training program")
    parser.add_argument("program", type=pathlib.Path, nargs="?", help="the file to write; without it, MODEL with the ending .pt2")
    parser.add_argument("--package", type=pathlib.Path, help="also compile the program, by AOTInductor, into this file")
    parser.add_argument("--library", type=pathlib.Path, help="libtorchlcp.so, where the package torchlcp is not installed")
    arguments = parser.parse_args()
    for deprecated in ("`torch.jit", "`isinstance"):  # which this program exists for, and which PyTorch itself calls
        warnings.filterwarnings("ignore", deprecated)
    try:
        if arguments.library:
            torch.ops.load_library(arguments.library.resolve())
        model = torch.jit.load(arguments.model)
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"torch {torch.__version__}: " + str(error).strip().splitlines()[0])
    program, attributes = export_model(model), attributes_of(model)
    extra = {ATTRIBUTES: json.dumps(attributes)}
    _write(
        arguments.program or arguments.model.with_suffix(".pt2"),
        lambda path: torch.export.save(program, path, extra_files=extra),
    )
    if arguments.package:
        _write(arguments.package, lambda path: compile_package(program, path, attributes))


if __name__ == "__main__":
    main()
