"""Files of the models of torchlcp.nn, also those that C++ wrote."""

import pathlib

import pytest
import torch
from modules import BLOCKS, MAKERS, inputs, network_with, solvable

from torchlcp import Status
from torchlcp.nn import DirectModel, LcpNetwork, TraditionalModel

PRETRAINED = pathlib.Path(__file__).parents[2] / "models" / "pretrained"


def near(model, other, v, u):
    torch.testing.assert_close(other.step(v, u), model.step(v, u), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_model_is_written_and_read(name, tmp_path):
    model, other, (v, u) = solvable(name), MAKERS[name]().double(), inputs()
    path = tmp_path / "model.pt"
    model.save_torchscript(path)
    other.load_torchscript(path)
    near(model, other, v, u)
    step, written = model.step(v, u), torch.jit.load(path)
    for got, expected in zip(written.step(v, u), (step.v_next, step.force, step.status), strict=True):
        assert torch.equal(got, expected)
    assert (written.dt, written.mass, written.gravity) == (model.dt, model.mass, model.gravity)
    model.save_torchscript(path)  # replaces it
    before = [x.detach().clone() for x in other.parameters()]
    broken = tmp_path / "broken.pt"
    broken.write_bytes(b"no file")
    for wrong, message in [(broken, "broken.pt: is no TorchScript file")]:
        with pytest.raises(RuntimeError, match=message):
            other.load_torchscript(wrong)
    assert all(torch.equal(x, y) for x, y in zip(other.parameters(), before, strict=True))


def test_a_file_of_another_model_is_refused(tmp_path):
    path = tmp_path / "model.pt"
    DirectModel(dt=0.2).save_torchscript(path)
    for model, message in [
        (DirectModel(dt=0.1), "model.pt: has dt = 0.2, not 0.1"),
        (DirectModel(dt=0.2, hidden=2), "model.pt: has no parameter f_hidden_weight"),
        (TraditionalModel(), "model.pt: is of a DirectModel, not of a TraditionalModel"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            model.load_torchscript(path)
    with pytest.raises(RuntimeError, match="cannot write"):
        DirectModel().save_torchscript(tmp_path / "nowhere" / "model.pt")


def test_what_is_known_of_friction_is_written_down(tmp_path):
    TraditionalModel(known_mu=0.4).save_torchscript(tmp_path / "model.pt")
    assert torch.jit.load(tmp_path / "model.pt").mu == 0.4
    TraditionalModel().save_torchscript(tmp_path / "model.pt")
    assert not hasattr(torch.jit.load(tmp_path / "model.pt"), "mu")
    with pytest.raises(ValueError, match="known_mu must be >= 0, or NaN; got -1"):
        TraditionalModel(known_mu=-1.0)


def test_a_network_is_written_and_read(theta, tmp_path):
    network, (v, u) = network_with(theta[0]), inputs()
    path = tmp_path / "model.pt"
    network.save_torchscript(path, inputs=1, dt=0.1, mass=2.0)
    written = torch.jit.load(path)
    y = network(torch.stack([v, u], -1)).squeeze(-1)
    v_next, force, status = written.step(v, u)
    assert torch.equal(v_next, y) and (status == Status.SOLVED).all()
    torch.testing.assert_close(force, 20 * (y - v) - u)
    other = MAKERS["LCP network"]()
    other.load_state_dict(written.state_dict())
    assert torch.equal(other.theta(), network.theta())


@pytest.mark.parametrize("file", ["sliding_block_network", "track_network"])
def test_a_network_of_cpp_is_loaded(file):
    """By its parameters, whose names and shapes say what it is made of."""
    written = torch.jit.load(PRETRAINED / f"{file}.pt")
    state = written.state_dict()
    outputs, unknowns = state["G_bias"].shape

    def dependence(part):
        kinds = {f"{part}_out_weight": "network", f"{part}_weight": "affine", f"{part}_bias": "constant"}
        return next((kind for name, kind in kinds.items() if name in state), "absent")

    hidden = next((x.shape[0] for name, x in state.items() if name.endswith("_hidden_bias")), 8)
    network = LcpNetwork(
        len(state["input_unit"]), outputs, unknowns, hidden=hidden, **{part: dependence(part) for part in "fGq"})
    network.load_state_dict(state)
    (v, u), position = inputs(50), torch.linspace(-1, 1, 50).double()
    columns = [v, u] if network.inputs == 2 else [position, v, u]
    expected = written(v, u) if network.inputs == 2 else written(v, u, position)
    torch.testing.assert_close(network(torch.stack(columns, -1)).squeeze(-1), expected, rtol=1e-12, atol=1e-12)


def name_in_file(name):
    for part, short in (("affine.", ""), ("matrix.", ""), ("hidden_in.", "hidden_"), ("hidden_out.", "out_"), (".", "_")):
        name = name.replace(part, short, 1)
    return name


@pytest.mark.parametrize(
    "file, make",
    [
        ("direct", lambda m: DirectModel(dt=m.dt, mass=m.mass, gravity=m.gravity, mu=m.mu,
                                         velocity_scale=m.velocity_scale, force_scale=m.force_scale)),
        ("slack", lambda m: DirectModel(dt=m.dt, mass=m.mass, gravity=m.gravity, mu=m.mu, forces="slack",
                                        velocity_scale=m.velocity_scale, force_scale=m.force_scale)),
        ("bilevel", lambda m: TraditionalModel("friction", dt=m.dt, mass=m.mass, gravity=m.gravity,
                                               force_unit=m.force_unit)),
        ("penalty", lambda m: TraditionalModel("rows", dt=m.dt, mass=m.mass, gravity=m.gravity,
                                               force_unit=m.force_unit, monotone=True)),
        ("structured", lambda m: TraditionalModel("structured", basis="diagonal", dt=m.dt, mass=m.mass, gravity=m.gravity,
                                                  force_unit=m.force_unit)),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_file_of_cpp_has_the_same_tensors_and_steps(file, make):
    written = torch.jit.load(PRETRAINED / f"sliding_block_{file}.pt")
    state = written.state_dict()
    model = make(written).to(next(written.parameters()).dtype)
    names = {name: name_in_file(name) for name in model.state_dict()}
    assert set(names.values()) == set(state)
    model.load_state_dict({name: state[in_file] for name, in_file in names.items()})
    v, u = inputs(50)
    for got, expected in zip((model.step(v, u).v_next, model.step(v, u).force), written.step(v, u)[:2], strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)
