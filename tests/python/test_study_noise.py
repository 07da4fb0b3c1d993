"""study_noise, as its user runs it."""
import json

import numpy as np
import pytest
from runs import files, read_csv, variants




def study(run, tmp_path, *arguments, out="out", **keywords):
    result = run("study_noise", *arguments, "--out", out, "--quiet", **keywords)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    return json.loads((tmp_path / out / "metrics.json").read_text())


def fractions(metrics, state, noise, method, sigmas=(1e-4, 1e-3, 1e-2, 1e-1, 3e-1)):
    found = [x[method] for x in metrics["sticking_fraction"]
             if (x["state"], x["noise"]) == (state, noise) and x["sigma"] in sigmas]
    assert len(found) == len(sigmas)
    return np.array(found)


def agree(measured, probability, draws):
    """Within four standard deviations of what as many independent draws give."""
    return np.all(abs(measured - probability) <= 4 * np.sqrt(probability * (1 - probability) / draws))


@pytest.mark.parametrize("seed", variants(1, 2, 3))
def test_noise_leaves_a_quarter_of_resting_blocks_and_none_that_friction_holds(run, tmp_path, seed):
    metrics = study(run, tmp_path, "--seed", seed)
    for noise in ("q", "M and q"):
        rest = fractions(metrics, "rest", noise, "lemke")
        assert agree(rest, 0.25, 3000) and agree(rest.mean(), 0.25, 15_000)
        assert (fractions(metrics, "held", noise, "lemke") == 0).all()
        assert (fractions(metrics, "held", noise, "any") == 0).all()
    assert (fractions(metrics, "rest", "q", "any") == fractions(metrics, "rest", "q", "lemke")).all()
    assert agree(fractions(metrics, "rest", "M and q", "any").mean(), 0.62, 15_000)
    for method in ("lemke", "auto", "any"):
        assert (fractions(metrics, "rest", "M", method) == 1).all()
        assert (fractions(metrics, "rest", "mu", method, (1e-4, 1e-3, 1e-2, 1e-1)) == 1).all()
        assert (fractions(metrics, "held", "mu", method, (1e-4, 1e-3, 1e-2)) == 1).all()
    assert agree(fractions(metrics, "random", "q", "exact"), 0.5205, 3000)  # |N(0, 2)| <= 1
    assert [x["sticking"] for x in metrics["single_entries"]] == [22, 18, 18]
    assert metrics["closed_form_error"] < 1e-12 and metrics["bias_error"] < 1e-15


def test_the_default_run_writes_tables_and_figures(run, tmp_path):
    result, out = run("study_noise", "--out", "out", env=None), tmp_path / "out"
    assert result.returncode == 0, result.stderr
    assert sorted(str(x) for x in files(out)) == sorted([
        "biases.csv", "checkpoint.pt", "config.json", "errors.csv", "metrics.json", "single_entries.csv", "table.csv", "table.md",
        "figures/errors.png", "figures/single_entries.png", "figures/sticking.png"])
    table = read_csv(out / "table.csv")
    assert len(table["state"]) == 3 * 4 * 6
    both = (table["sigma_M"] > 0) & (table["sigma_q"] > 0) & (table["sigma_q"] < 0.2) & (table["state"] == 1)
    # A block that should rest creeps with a velocity in proportion to the noise, and gamma does not show it.
    assert (abs(table["error_median_over_sigma"][both] - 0.65) < 0.06).all()
    assert (abs(table["gamma_zero_sticking"][both] - 0.55) < 0.05).all()
    # The active set does, with or without errors in M.
    some = (table["sigma_M"] + table["sigma_q"] > 0) & (table["sigma_M"] < 0.05) & (table["sigma_q"] < 0.05)
    held, random = (some & (table["state"] == k) for k in (1, 2))
    assert (table["active_set_sticking"][held] > 0.999).all()
    assert (table["active_set_sticking"][random] > 0.98).all() and (table["active_set_sliding"][random] < 0.02).all()
    errors = read_csv(out / "errors.csv")
    assert (np.diff(errors["error_over_sigma"].reshape(-1, 51)) >= 0).all()
    single = read_csv(out / "single_entries.csv")
    assert ((abs(single["v_next"]) < 1e-12) == (single["sticks"] == 1)).all()
    assert "at rest in 22 of 24" in result.stdout and "72 of 72" in result.stderr


def test_a_seed_repeats_the_run_for_any_number_of_threads(run, tmp_path):
    flags = ("--samples", 300)
    study(run, tmp_path, *flags, out="one")
    study(run, tmp_path, *flags, "--threads", 2, out="two")
    study(run, tmp_path, "--config", "one/config.json", out="again")
    study(run, tmp_path, *flags, "--seed", 1, out="other")
    for name in ("metrics.json", "table.csv", "errors.csv"):
        one, two, again, other = ((tmp_path / out / name).read_bytes() for out in ("one", "two", "again", "other"))
        assert one == two == again != other


def test_noise_is_relative_to_the_block(run, tmp_path):
    """The same noise does the same to every block, with velocities in its dt mu g."""
    flags = ("--samples", 200, "--sigma", 0.01)
    unit = study(run, tmp_path, *flags, out="unit")
    other = study(run, tmp_path, *flags, "--mass", 3, "--dt", 0.01, "--mu", 0.5, "--gravity", 9.81, out="other")
    assert unit["sticking_fraction"] == other["sticking_fraction"]
    medians = [read_csv(tmp_path / out / "table.csv")["error_median"] for out in ("unit", "other")]
    np.testing.assert_allclose(medians[1], 0.01 * 0.5 * 9.81 * medians[0], rtol=1e-12)


def test_steps_of_the_users_own(run, tmp_path):
    """Of four steps friction ends three; the same file in other units is the same study."""
    (tmp_path / "steps.csv").write_text("u,v\n0,0\n0.2,0.3\n-0.9,0.5\n0.7,0.9\n")
    metrics = study(run, tmp_path, "--data", "steps.csv", "--samples", 1001, "--sigma", 1e-3, out="a", env=None)
    assert {x["state"] for x in metrics["sticking_fraction"]} == {"data"}
    assert fractions(metrics, "data", "mu", "lemke", [1e-3]) == [0.75]
    assert agree(fractions(metrics, "data", "q", "lemke", [1e-3]), 0.25 / 4, 1004)
    assert "1004 a row" in (tmp_path / "a" / "table.md").read_text()
    assert (tmp_path / "a" / "figures" / "sticking.png").stat().st_size > 5000
    (tmp_path / "larger.csv").write_text("u,v\n0,0\n2,3\n-9,5\n7,9\n")
    other = study(run, tmp_path, "--data", "larger.csv", "--samples", 1001, "--sigma", 1e-3, "--gravity", 10, out="b")
    assert other["sticking_fraction"] == metrics["sticking_fraction"]


def test_float32(run, tmp_path):
    metrics = study(run, tmp_path, "--dtype", "float32", "--sigma", 0.1)
    assert agree(fractions(metrics, "rest", "M and q", "lemke", [0.1]), 0.25, 3000)
    assert fractions(metrics, "held", "M and q", "lemke", [0.1]) < 1e-3
    assert fractions(metrics, "rest", "mu", "lemke", [0.1]) == [1]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--sigma", "0"], "--sigma must be finite numbers > 0; got [0.0]"),
        (["--sigma", "0.1", "-1"], "--sigma must be finite numbers > 0; got [0.1,-1.0]"),
        (["--sigma"], "--sigma"),
        (["--samples", "0"], "--samples must be >= 1; got 0"),
        (["--mu", "0"], "--mu must be > 0: noise is relative to the friction that it allows"),
        (["--gravity", "0"], "--gravity must be > 0: noise is relative to the friction that it allows"),
        (["--iterations", "3"], "unknown argument --iterations"),
        (["--data", "none.csv"], "none.csv"),
        (["--data", "bad.csv"], 'bad.csv: has no column "v"; its header is "u,speed"'),
        (["--data", "text.csv"], 'text.csv, line 2, column "u": "fast" is no finite number'),
    ],
)
def test_mistakes_are_named_in_one_line_and_write_nothing(run, tmp_path, arguments, message):
    (tmp_path / "bad.csv").write_text("u,speed\n1,2\n")
    (tmp_path / "text.csv").write_text("v,u\n1,fast\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "metrics.json").write_text("precious")
    before = files(tmp_path)
    result = run("study_noise", *arguments, "--out", "out")
    assert result.returncode == 2
    assert result.stderr.startswith("study_noise: ") and message in result.stderr
    assert result.stderr.count("\n") == 1 and result.stdout == ""
    assert files(tmp_path) == before
