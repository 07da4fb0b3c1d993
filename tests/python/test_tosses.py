"""Recorded tosses of a cube: reading them, and comparing motion with them."""
import pathlib

import numpy as np
import pytest
from runs import check_a_killed_run_resumes, read_csv, write_csv

RECORDED = pathlib.Path(__file__).parents[3] / "shared" / "data" / "cube_tosses"
CUBE = ("--mu", 0.3, "--restitution", 0.2, "--side", 0.1, "--inertia", 0.1**2 / 6)
SAMPLED = ("--length-unit", 1, "--rate", 150, "--substeps", 1)


@pytest.fixture
def tosses(run, tmp_path):
    """Files of six tosses of a cube, 90 steps each."""
    result = run("simulate", "--system", "cube", "--trajectories", 6, "--steps", 90, "--dt", 1 / 150, "--mu", 0.3,
                 "--restitution", 0.2, "--height", 0.15, "--animation", "none", "--out", "simulated", "--quiet")
    assert result.returncode == 0, result.stderr
    data = read_csv(tmp_path / "simulated" / "data.csv")
    folder = tmp_path / "tosses"
    folder.mkdir()
    for k in range(6):
        write_csv(folder / f"{k}.csv", **{name: column[data["trajectory"] == k] for name, column in data.items()})
    return folder


def test_a_cube_is_exact_on_its_own_tosses(learn, tosses, tmp_path):
    metrics = learn("evaluate_tosses", "--tosses", tosses, *CUBE, "--measured-side", 0.1, *SAMPLED)
    assert metrics["tosses"] == 6 and metrics["unsolved"] == 0
    for protocol, error in (("whole", 1e-6), ("from_first_contact", 0.2), ("windows_80", 1e-6)):
        assert metrics[protocol]["position_error_percent"] < 100 * error, protocol
    assert metrics["whole"]["rotation_error_deg"] < 1e-4 and metrics["whole"]["penetration_percent"] < 1
    errors = read_csv(tmp_path / "out" / "errors.csv")
    whole = errors["position_error_m"][errors["protocol"] == 0]
    assert len(whole) == 6 and whole.mean() == pytest.approx(metrics["whole"]["position_error_m"])
    other = learn("evaluate_tosses", "--tosses", tosses, *CUBE[2:], "--mu", 0.1, "--measured-side", 0.1, *SAMPLED, out="other")
    assert other["whole"]["position_error_percent"] > 1
    assert np.isfinite(other["whole"]["position_error_percent_std"])


@pytest.mark.parametrize("flags, message", [
    ((), "--tosses is missing"), (("--tosses", "none"), "cannot read the folder none"),
    (("--tosses", ".", "--restitution", 2), "--restitution must be from 0 to 1; got 2")])
def test_mistakes_are_named(run, flags, message):
    result = run("evaluate_tosses", *flags, "--out", "out")
    assert result.returncode == 2 and message in result.stderr


SHORT = ("--simulated", 12, "--window", 20)


def test_a_cube_is_learned_from_a_start_far_off(learn, run, tmp_path):
    """Its parameters are where those of other seeds end, too, and its file predicts as it does."""
    flags = ("--restitution", 0.3, "--center", 0.002, 0, -0.004, "--rounding", 0.003, "--tilt-x", 0.004)
    metrics = learn("train_tosses", "--simulated", 60, "--iterations", 150, *flags, "--threads", 2)
    found = metrics["parameters"]
    for name, true, error in (("mu", 0.18, 0.01), ("side", 0.1048, 0.0021), ("restitution", 0.3, 0.06),
                              ("center_x", 0.002, 0.002), ("center_y", 0, 0.002), ("center_z", -0.004, 0.002),
                              ("rounding", 0.003, 0.003), ("inertia_x", 2.189e-3, 4e-4), ("inertia_y", 2.189e-3, 4e-4),
                              ("inertia_z", 2.189e-3, 4e-4), ("tilt_x", 4e-3, 4e-3), ("tilt_y", 0, 4e-3)):
        assert found[name]["value"] == pytest.approx(true, abs=error), name
        assert found[name]["low"] < found[name]["value"] < found[name]["high"], name
    for name in ("center_x", "center_y", "center_z", "tilt_x", "tilt_y"):
        reach, bias = found[name]["high"] - found[name]["value"], found[name]["time_step_bias"]
        assert reach > 1.25 * abs(bias), name
    assert any(found[name]["time_step_bias"] != 0 for name in found)
    assert found["mu"]["high"] - found["mu"]["low"] < 0.02
    assert metrics["flights"]["gravity"]["value"] == pytest.approx(9.81, abs=0.02)
    assert metrics["flights"]["center_z"]["value"] == pytest.approx(-0.004, abs=5e-4)
    assert metrics["unsolved"] == metrics["unsolved_training_windows"] == 0
    assert metrics["training_tosses"] == 40 and metrics["heldout_tosses"] == 20
    assert metrics["windows_80"]["position_error_percent"] < 8 and metrics["whole"]["rotation_error_deg"] < 15


def test_a_model_file_predicts_as_the_run_did(learn, library, tosses, tmp_path):
    import torch

    for model, kind in (("exact_cone", ()), ("polyhedral", ("--contact", "polyhedral", "--learn", "mu", "side")),
                        ("compliant", ("--contact", "compliant", "--learn", "mu", "side", "stiffness")),
                        ("network", ("--model", "network"))):
        flags = ("--tosses", tosses, "--heldout-tosses", tosses, *SAMPLED, "--window", 20, "--iterations", 4)
        metrics = learn("train_tosses", *kind, "--side", 0.1, *flags, out=model)
        file = tmp_path / model / "model.pt"
        judged = learn("evaluate_tosses", "--tosses", tosses, "--model", file, "--measured-side", 0.1, *SAMPLED[:4],
                       out=f"{model}_judged")
        for protocol in ("whole", "from_first_contact", "windows_80"):
            for name, value in metrics[protocol].items():
                assert judged[protocol][name] == pytest.approx(value, rel=1e-6, abs=1e-9), (model, protocol, name)
        script = torch.jit.load(file)
        toss = read_csv(tmp_path / model / "toss.csv")
        first = read_csv(sorted(tosses.iterdir(), key=lambda path: int(path.stem))[0])
        start = [torch.tensor([first[name][0] for name in names]) for names in (
            ("x", "y", "z"), ("q_w", "q_x", "q_y", "q_z"), ("v_x", "v_y", "v_z"), ("omega_x", "omega_y", "omega_z"))]
        position, orientation, _, _, status = script(*start, len(toss["predicted_x"]))
        assert not status.any()
        for path, names in ((position, "xyz"), (orientation, ("q_w", "q_x", "q_y", "q_z"))):
            for k, name in enumerate(names):
                np.testing.assert_allclose(path[:, k].detach(), toss[f"predicted_{name}"], rtol=1e-9, atol=1e-9)


def test_training_does_not_depend_on_threads(learn, tmp_path):
    for model in ("cube", "network"):
        for threads in (1, 2, 3):
            learn("train_tosses", *SHORT, "--model", model, "--iterations", 6, "--threads", threads, out=f"{model}{threads}")
        for threads in (2, 3):
            for file in ("history.csv", "errors.csv"):
                one, other = (tmp_path / f"{model}{k}" / file for k in (1, threads))
                assert one.read_bytes() == other.read_bytes(), (model, threads, file)


def test_a_killed_run_resumes_bit_for_bit(run, build, tmp_path):
    flags = (*SHORT, "--iterations", 60, "--checkpoint-every", 5)
    check_a_killed_run_resumes(run, build, tmp_path, "train_tosses", flags)


def test_figures_of_a_judgement(run, tosses, tmp_path):
    result = run("evaluate_tosses", "--tosses", tosses, *CUBE, "--measured-side", 0.1, *SAMPLED, "--out", "out", env=None)
    assert result.returncode == 0, result.stderr
    for name in ("errors", "errors_in_time"):
        assert (tmp_path / "out" / "figures" / f"{name}.png").stat().st_size > 5000, name


def test_figures(run, tmp_path):
    result = run("train_tosses", *SHORT, "--iterations", 4, "--out", "out", env=None)
    assert result.returncode == 0, result.stderr
    for name in ("toss", "errors", "errors_in_time", "parameters", "training"):
        assert (tmp_path / "out" / "figures" / f"{name}.png").stat().st_size > 5000, name


@pytest.mark.parametrize("flags, message", [
    (("--heldout-tosses", "."), "--heldout-tosses needs --tosses"),
    (("--train", 96), "--train must be at most 95, the number of tosses but one to judge by; got 96"),
    (("--length-unit", 1), "--length-unit has no meaning with tosses that are simulated"),
    (("--model", "network", "--learn", "mu"), "--learn has no meaning with --model network"),
    (("--stiffness", 2000), "--stiffness has no meaning with --contact exact_cone"),
    (("--dtype", "float32"), "--dtype must be float64, the only precision of this program; got \"float32\""),
    (("--learn", "weight"), "--learn must be names of parameters, not weight"),
    (("--learn", "center", "corners"), "--learn: either center or corners, not both"),
    (("--learn", "stiffness"), "--learn: stiffness is of --contact compliant"),
    (("--contact", "compliant"), "--learn: compliant contact has no restitution")])
def test_mistakes_in_training_are_named(run, tmp_path, flags, message):
    result = run("train_tosses", *flags, "--out", "out")
    assert result.returncode == 2 and message in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_no_model_is_named(run, tosses, tmp_path):
    (tmp_path / "model.pt").write_bytes(b"no")
    result = run("evaluate_tosses", "--tosses", tosses, "--model", "model.pt", "--out", "out")
    assert result.returncode == 2 and "model.pt: it is no TorchScript file" in result.stderr


@pytest.fixture
def thrown_boxes(build, package, monkeypatch, tmp_path):
    """Files of 12 throws of a box of .1, .14 and .06 m, 90 samples of 1/150 s each, and its body file with another inertia."""
    import torch

    monkeypatch.syspath_prepend(package)
    from torchlcp.physics import Plane, RigidBody, RigidScene, RigidState

    random = torch.Generator().manual_seed(0)
    normal = lambda size: torch.randn(12, 1, size, generator=random, dtype=torch.float64)
    box = RigidBody.box(1.0, (0.1, 0.14, 0.06))
    inertia = torch.diag(torch.tensor([2.6e-3, 1.3e-3, 3.2e-3]).double())
    scene = RigidScene([RigidBody(1.0, inertia, box.centers, box.radii)], [Plane.inclined()], 1 / 300, 0.25, 0.2)
    first = RigidState.at_rest(torch.tensor([0.0, 0.0, 0.2]).double().expand(12, 1, 3))._replace(
        orientation=normal(4), velocity=normal(3), angular_velocity=3 * normal(3))
    first = first._replace(orientation=first.orientation / first.orientation.norm(dim=-1, keepdim=True))
    next = scene.simulate(first, torch.zeros(90, 1, 6).double(), substeps=2).next
    names = "x,y,z,q_w,q_x,q_y,q_z,v_x,v_y,v_z,omega_x,omega_y,omega_z"
    folder = tmp_path / "throws"
    folder.mkdir()
    for k in range(12):
        rows = torch.cat([torch.cat([a[k], b[:, k, 0]]) for a, b in zip(first, next)], -1)
        np.savetxt(folder / f"{k}.csv", rows, delimiter=",", header=names, comments="")
    (tmp_path / "box.json").write_text('{"box": [0.1, 0.14, 0.06], "mu": 0.4, "restitution": 0.1}')
    return folder


def test_a_body_of_a_file_is_learned(learn, run, thrown_boxes, tmp_path):
    flags = ("--tosses", thrown_boxes, "--rate", 150)
    learned = ("--learn", "mu", "restitution", "moments", "--train", 9, "--window", 40, "--iterations", 80)
    metrics = learn("train_tosses", *flags, *learned, "--body", "box.json")
    found = metrics["parameters"]
    assert list(found) == ["moments[0]", "moments[1]", "moments[2]", "mu[0]", "restitution[0]"]
    for name, true, error in (("mu[0]", 0.25, 0.02), ("moments[0]", 2.6e-3, 2e-4), ("moments[1]", 1.3e-3, 2e-4),
                              ("moments[2]", 3.2e-3, 2e-4)):
        assert found[name]["value"] == pytest.approx(true, abs=error), name
        assert found[name]["low"] < found[name]["value"] < found[name]["high"], name
    assert metrics["size_m"] == pytest.approx(2 / 3**0.5 * (0.05**2 + 0.07**2 + 0.03**2) ** 0.5)
    assert metrics["unsolved"] == 0 and metrics["whole"]["penetration_percent"] < 1
    assert metrics["windows_80"]["position_error_percent"] < 10
    judged = learn("evaluate_tosses", *flags, "--body", "box.json", "--model", "out/model.pt", out="judged")
    assert judged["size_m"] == metrics["size_m"] and judged["windows_80"]["position_error_percent"] < 10
    other = learn("train_tosses", *flags, "--train", 9, "--window", 10, "--body", "box.json", "--iterations", 2, out="more")
    assert {"size", "point[2]", "tilt[1]", "restitution[0]"} < set(other["parameters"])


def test_figures_of_a_body(run, thrown_boxes, tmp_path):
    balls = [[x, y, z, 0.001] for x in (-0.05, 0.05) for y in (-0.07, 0.07) for z in (-0.03, 0.03)]
    body = {"balls": balls, "inertia": [2e-3, 1e-3, 3e-3]}
    (tmp_path / "balls.json").write_text(str(body).replace("'", '"'))
    for name in ("box.json", "balls.json"):
        result = run("train_tosses", "--tosses", thrown_boxes, "--rate", 150, "--body", name, "--learn", "mu", "--window", 10,
                     "--iterations", 2, "--out", name[:-5], env=None)
        assert result.returncode == 0, result.stderr
        for figure in ("toss", "errors", "errors_in_time", "parameters", "training"):
            assert (tmp_path / name[:-5] / "figures" / f"{figure}.png").stat().st_size > 5000, figure


@pytest.mark.parametrize("text, message", [
    ("[1]", "must hold one JSON object"), ('{"size": 1}', "has the entry size; the entries are"),
    ('{"mu": 1}', "must have either box or balls"), ('{"box": [1, 2]}', "box must be three edges > 0, m"),
    ('{"box": "big"}', "box must be a list of numbers"), ('{"box": [1, 2, "3"]}', 'box must be of finite numbers; got "3"'),
    ('{"balls": [[0, 0, 0, 1]]}', "inertia is missing"), ('{"balls": [[0, 0, 1]]}', "balls must be a list of [x, y, z, radius]"),
    ('{"box": [1, 1, 1], "inertia": [1, -1, 1]}', "inertia must be three moments > 0"),
    ('{"box": [1, 1, 1], "restitution": 2}', "restitution is out of its range; got 2")])
def test_mistakes_in_body_files_are_named(run, thrown_boxes, tmp_path, text, message):
    (tmp_path / "body.json").write_text(text)
    result = run("train_tosses", "--tosses", thrown_boxes, "--body", "body.json", "--out", "out")
    assert result.returncode == 2 and "body.json: " + message in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize("flags, message", [
    (("--body", "box.json"), "--body needs --tosses"),
    (("--tosses", "throws", "--body", "box.json", "--side", 0.1), "--side has no meaning with --body"),
    (("--tosses", "throws", "--body", "box.json", "--learn", "side"), "--learn: side is of a cube"),
    (("--tosses", "throws", "--learn", "moments"), "--learn: moments is of --body"),
    (("--tosses", "throws", "--rate", 150, "--body", "box.json", "--learn", "stiffness"), "are of --contact compliant"),
    (("--tosses", "throws", "--rate", 150, "--body", "box.json", "--learn", "inertia", "moments"), "not both")])
def test_mistakes_with_bodies_are_named(run, thrown_boxes, flags, message):
    result = run("train_tosses", *flags, "--out", "out")
    assert result.returncode == 2 and message in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded tosses are not here")
def test_recorded_tosses(learn):
    """What is measured and published of the cube predicts the tosses about as well as published simulators."""
    metrics = learn("evaluate_tosses", "--tosses", RECORDED, "--gravity", 9.58)
    assert metrics["tosses"] == 450 and metrics["unsolved"] == 0
    assert metrics["from_first_contact"]["position_error_percent"] < 15
    assert metrics["windows_80"]["rotation_error_rad"] < 0.32


@pytest.mark.long
@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded tosses are not here")
def test_a_real_cube_is_learned(learn):
    """Clearly better than the best published simulator with fitted parameters: 13.5 % and 16.5 degrees."""
    metrics = learn("train_tosses", "--tosses", RECORDED, "--train", 256, "--threads", 2)
    assert metrics["from_first_contact"]["position_error_percent"] < 12.5
    assert metrics["from_first_contact"]["rotation_error_deg"] < 15.5
    assert metrics["whole"]["position_error_percent"] < 13 and metrics["whole"]["rotation_error_deg"] < 15
    assert metrics["windows_80"]["position_error_m"] < 0.012 and metrics["windows_80"]["rotation_error_rad"] < 0.22
    assert metrics["parameters"]["mu"]["value"] == pytest.approx(0.18, abs=0.02)
    assert metrics["unsolved"] == 0


def test_a_run_is_repeated_by_its_config(learn, tosses, tmp_path):
    flags = ("--tosses", tosses, *SAMPLED, "--side", 0.1, "--window", 20, "--iterations", 4)
    first = learn("train_tosses", *flags)
    again = learn("train_tosses", "--config", tmp_path / "out" / "config.json", out="again")
    assert again["whole"] == first["whole"] and again["training_tosses"] == 4


def test_tosses_in_other_units_are_refused(run, tosses):
    result = run("train_tosses", "--tosses", tosses, "--length-unit", 1.3, "--rate", 150, "--out", "out")
    assert result.returncode == 2 and "--length-unit or --rate is wrong" in result.stderr


def test_a_model_that_fails_is_not_judged(run, tosses, tmp_path):
    import torch

    class Failing(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rate, self.gravity, self.center = 150.0, 9.81, torch.zeros(3)

        def forward(self, position: torch.Tensor, orientation: torch.Tensor, velocity: torch.Tensor,
                    angular_velocity: torch.Tensor, steps: int):
            nan = torch.full([steps, position.size(0), 1], float("nan")).double()
            return nan * position, nan * orientation, nan * velocity, nan * angular_velocity, torch.zeros_like(nan[..., 0])

    torch.jit.script(Failing()).save(tmp_path / "failing.pt")
    result = run("evaluate_tosses", "--tosses", tosses, *SAMPLED[:4], "--model", "failing.pt", "--out", "out")
    assert result.returncode == 0, result.stderr
    assert "none is solved" in result.stdout and "18 are not solved" in result.stdout
