"""What layers of contact say of the same gradient."""
import numpy as np
import pytest
from runs import read_csv

QUICK = ("--simulated", 12, "--window", 8, "--points", 0, "--starts", 2, "--batch", 2, "--kappa", 1e-3)
SHORT = (*QUICK, "--windows", 8, "--iterations", 2)
LAYERS = ["differences, wide", "differences, narrow", "exact cone", "exact cone, kappa 0.001", "polyhedral",
          "polyhedral, inactive ties", "polyhedral, midpoint ties", "polyhedral, kappa 0.001", "compliant",
          "bilevel, single steps", "ContactNets style, single steps"]


def test_layers_are_judged(learn, tmp_path):
    metrics = learn("judge_gradients", *SHORT)
    layers = {layer["name"]: layer for layer in metrics["layers"]}
    assert list(layers) == LAYERS and metrics["tosses"] == 12
    for name, layer in layers.items():
        for key, value in layer.items():
            assert key == "name" or np.isfinite(value), (name, key)
        assert layer["nan_fraction"] == 0 and layer["mu_low"] <= layer["mu"] <= layer["mu_high"], name
    assert layers["differences, wide"]["cosine"] == pytest.approx(1)
    assert layers["compliant"]["zero_fraction"] >= 0.25  # it has no restitution
    assert layers["compliant"]["blind_fraction"] < 0.1
    gradients = read_csv(tmp_path / "out" / "gradients.csv")
    assert len(gradients["layer"]) == len(LAYERS) * 2 * 2 * 4
    assert len(read_csv(tmp_path / "out" / "ends.csv")["mu"]) == 2 * len(LAYERS)
    assert len(read_csv(tmp_path / "out" / "layers.csv")["cosine"]) == len(LAYERS)

    # The misfit of short windows is smooth but for rare kinks, and so the derivative is that of narrow differences.
    def of(name):
        rows = (gradients["layer"] == LAYERS.index(name)) & (gradients["steps"] == 4)
        return gradients["gradient"][rows]

    error = np.abs(of("exact cone") - of("differences, narrow"))
    # Differences divide the error of the solver, 1e-9, by their width.
    assert np.median(error) < 1e-5 and np.abs(of("exact cone")).max() > 0.01


def test_answers_do_not_depend_on_threads(learn, tmp_path):
    for threads in (1, 2):
        learn("judge_gradients", *SHORT, "--threads", threads, out=f"{threads}")
    for file in ("gradients.csv", "ends.csv"):
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes(), file


def test_figures(run, tmp_path):
    result = run("judge_gradients", *QUICK, "--windows", 2, "--iterations", 1, "--out", "out", env=None)
    assert result.returncode == 0, result.stderr
    for name in ("agreement", "ends"):
        assert (tmp_path / "out" / "figures" / f"{name}.png").stat().st_size > 5000, name


@pytest.mark.parametrize("flags, message", [
    (("--short-window", 30), "--short-window must be at most --window"),
    (("--kappa", 0), "--kappa must be finite numbers > 0; got [0.0]"),
    (("--tosses", "none"), "cannot read the folder none")])
def test_mistakes_are_named(run, tmp_path, flags, message):
    result = run("judge_gradients", *flags, "--out", "out")
    assert result.returncode == 2 and message in result.stderr and result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
