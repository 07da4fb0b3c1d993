"""fit_linear_program, as its user runs it."""
import json
import re
import signal
import subprocess

import pytest
import torch
from runs import files, start


SI = ("--mu", 0.3, "--gravity", 9.81, "--dt", 0.1)


@pytest.fixture(scope="module", autouse=True)
def program(build):
    if not (build / "bin" / "fit_linear_program").exists():
        pytest.skip("built without Clp")


@pytest.fixture
def fit(run, tmp_path):
    """The metrics of a run without figures, and what it printed on stderr."""

    def call(*arguments, out="out"):
        result = run("fit_linear_program", *arguments, "--out", out)
        assert result.returncode == 0, result.stderr
        return json.loads((tmp_path / out / "metrics.json").read_text()), result.stderr

    return call


def warnings(stderr):
    return [line for line in stderr.splitlines() if line.startswith("warning: ")]


def test_the_default_run_fits_the_block_and_writes_every_file(run, tmp_path):
    result = run("fit_linear_program", "--out", "out", env=None)
    assert result.returncode == 0 and result.stderr == ""
    assert {str(path) for path in files(tmp_path / "out")} == {
        "config.json", "metrics.json", "model.pt", "model.pt2", "rollouts.csv", "figures/rows.png", "figures/rollout.png",
    }
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert abs(metrics["objective"]) < 1e-9 and metrics["lower_bound"] == 0 and metrics["degenerate"] is False
    assert metrics["parameters"] == metrics["identifiable_parameters"] == 13  # all but those that the others determine
    assert [family["dimension"] for family in metrics["families"]] == [0, 0, 0]
    assert "held-out rmse" in result.stdout and "out/model.pt" in result.stdout


@pytest.mark.parametrize("solver", ["simplex", "interior_point"])
def test_a_long_fit_shows_progress_and_time_left(fit, solver):
    lines = fit("--samples", 20_000, "--solver", solver)[1].splitlines()
    shown = r"linear program 3 of 4  iteration \d+, objective [\d.e+-]+, error [\d.e+-]+  \d+ (s|min \d+ s) left"
    assert re.fullmatch(shown, lines[-1]), lines


def test_ctrl_c_ends_a_long_fit_without_a_trace(build, tmp_path):
    process = start(build, tmp_path, "fit_linear_program", "--samples", 100_000, "--out", "out", stderr=subprocess.PIPE)
    with process:
        assert process.stderr.readline().startswith(b"linear program 0 of 4  iteration ")
        process.send_signal(signal.SIGINT)
    assert process.returncode == -signal.SIGINT and files(tmp_path) == {}


def test_help_says_what_loading_a_model_means(run):
    text = run("fit_linear_program", "--help").stdout
    assert "load only what you trust" in text and "checkpoint.pt" not in text


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_seed_fits_it(fit, seed):
    metrics, stderr = fit("--seed", seed)
    assert metrics["max_row_error"] <= 1e-8 and metrics["heldout_rmse"] <= 1e-6 and warnings(stderr) == []


@pytest.mark.parametrize(
    "arguments, error",
    [(("--split", "maximal", "--no-bias"), 1e-8), (("--solver", "interior_point"), 1e-6), (("--l1", 1), 1e-8),
     (("--matrix", "free"), 1e-8), (("--samples", 30), 1e-8), (("--dtype", "float32"), 1e-8), ((*SI, "--mass", 2.5), 1e-8)],
)
def test_other_fits_of_the_same_rows(fit, arguments, error):
    metrics, _ = fit(*arguments)
    assert metrics["max_row_error"] <= error and metrics["heldout_rmse"] <= 1e-6 and not metrics["degenerate"]


def test_what_else_fits_is_reported(fit):
    metrics, stderr = fit("--split", "minimal", "--matrix", "free")
    assert metrics["degenerate"] and metrics["unidentifiable_directions"] == ["M12", "M21"]
    assert metrics["heldout_rmse"] <= 1e-6
    first = metrics["families"][0]
    assert first["words"] == "M12 in [-1, inf)" and first["upper"][1] is None
    assert warnings(stderr)[0] == "warning: row 1 is one of many that fit as well: M12 in [-1, inf)"

    metrics, _ = fit("--split", "maximal", "--matrix", "free")
    first = metrics["families"][0]
    assert first["words"] == "M12 = M11 - 2, W13 = -M11 + 1, M11 in (-inf, inf)" and first["dimension"] == 1


def test_a_monotone_matrix_narrows_what_else_fits(fit):
    metrics, _ = fit("--split", "minimal")
    first = metrics["families"][0]
    assert metrics["degenerate"] and first["dimension"] == 1 and first["lower"][1] == pytest.approx(-1, abs=1e-6)
    assert first["upper"][1] == pytest.approx(3, abs=1e-6)  # M21 >= -1 and M11 = M22 = 1 >= |M12 + M21| / 2
    assert metrics["heldout_rmse"] <= 1e-6


def test_small_errors_of_forces_leave_a_monotone_lcp_well_posed(fit):
    noise = ("--force-noise", 0.001)
    monotone, free = (fit(*noise, "--matrix", matrix)[0] for matrix in ("monotone", "free"))
    assert monotone["rows_in_units"][2][2] == 0 and monotone["heldout_rmse"] < 0.01
    assert free["rows_in_units"][2][2] < 0 and free["heldout_rmse"] > 0.3
    for metrics in (monotone, free):
        assert metrics["max_row_error"] < 0.03


def test_the_trivial_solution_is_reported(fit):
    metrics, stderr = fit("--matrix", "free","--normalization", "none", "--epsilon", 0.01)
    assert metrics["degenerate"] and all(family["trivial"] for family in metrics["families"])
    assert metrics["objective"] == pytest.approx(metrics["lower_bound"]) and metrics["lower_bound"] > 1
    assert sum(" is trivial" in line for line in warnings(stderr)) == 3 and "row 1 is trivial" in stderr
    assert metrics["unexplained"] and warnings(stderr)[-1].startswith("warning: the fit does not explain the data")


def test_forces_that_no_row_fits_are_reported(fit):
    metrics, stderr = fit("--split", "minimal", "--no-bias", "--epsilon", 0.01, "--matrix", "free")
    assert metrics["objective"] > 3 * metrics["lower_bound"]
    assert any(line.startswith("warning: no rows fit these forces: the objective") for line in warnings(stderr))


def test_data_of_the_users_own(run, fit, tmp_path):
    arguments = ("--formulation", "traditional", "--animation", "none", "--quiet")
    assert run("simulate", *arguments, "--trajectories", 10, "--out", "a").returncode == 0
    metrics, _ = fit("--data", "a/data.csv", *SI, "--matrix", "free")
    assert metrics["training_samples"] == 400 and metrics["heldout_samples"] == 100
    assert metrics["heldout_rmse"] <= 1e-6 and metrics["objective"] == pytest.approx(0, abs=1e-9)
    assert metrics["families"][0]["words"] == "M12 in [-1, inf)"
    rows = torch.tensor(metrics["rows"])  # w in m/s, m/s, N of lambda in N, gamma and v in m/s, u in N
    known = torch.tensor([[0.1, torch.nan, 1, 1, 0.1, 0], [torch.nan, 0.1, 1, -1, -0.1, 0], [-1, -1, 0, 0, 0, 2.943]])
    assert (rows - known)[~known.isnan()].abs().max() < 1e-6

    (tmp_path / "inputs.csv").write_text("v,u\n" + "".join(f"{k % 7 - 3},{k % 11 - 5}\n" for k in range(77)))
    assert run("simulate", *arguments, "--inputs", "inputs.csv", "--out", "b").returncode == 0
    metrics, _ = fit("--data", "b/data.csv", *SI, "--matrix", "free")
    assert metrics["heldout_rmse"] <= 1e-6 and metrics["families"][2]["dimension"] == 0


def test_the_model_steps(library, fit, tmp_path):
    fit(*SI)
    model = torch.jit.load(tmp_path / "out" / "model.pt")
    v, u = torch.tensor([1.0, 0.1]).double(), torch.tensor([0.0, 0.5]).double()
    v_next, force, status = model.step(v, u)
    assert torch.allclose(v_next, torch.tensor([0.7057, 0.0]).double(), atol=1e-9) and not status.any()
    assert torch.allclose(force, torch.tensor([-2.943, -1.5]).double(), atol=1e-8)


def test_flags_repeat_the_run(fit, tmp_path):
    fit("--seed", 4, "--split", "half", out="a")
    fit("--config", "a/config.json", "--threads", 2, out="b")
    assert (tmp_path / "a" / "metrics.json").read_bytes() == (tmp_path / "b" / "metrics.json").read_bytes()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--epsilon", "-1"], "--epsilon must be finite and >= 0; got -1.0"),
        (["--l1", "x"], "--l1"),
        (["--normalization", "all"], '--normalization must be one_per_row or none; got "all"'),
        (["--solver", "barrier"], '--solver must be simplex or interior_point; got "barrier"'),
        (["--iterations", "9"], "unknown argument --iterations"),
        (["--data", "rows.csv", "--split", "half"], "--split has no meaning with --data"),
        (["--data", "direct.csv"], "forces of the direct formulation"),
        (["--data", "gamma.csv"], "gamma.csv: gamma is negative"),
        (["--data", "rest.csv", "--no-bias", "--epsilon", "0.01"], "--epsilon 0.01 is too much: no rows have"),
        (["--matrix", "x"], '--matrix must be monotone or free; got "x"'),
    ],
)
def test_mistakes_are_named_in_one_line_and_write_nothing(run, tmp_path, arguments, message):
    header = "v,u,v_next,lambda_plus,lambda_minus,gamma\n"
    (tmp_path / "direct.csv").write_text(header + "1,0,0.7,-2,0.3,0.7\n" * 10)
    (tmp_path / "gamma.csv").write_text(header + "1,0,0.7,0,1,-0.7\n" * 10)
    (tmp_path / "rest.csv").write_text(header + "0,0,0,0,0,0\n" * 10)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "metrics.json").write_text("precious")
    before = files(tmp_path)
    result = run("fit_linear_program", *arguments, "--out", "out")
    assert result.returncode == 2 and message in result.stderr
    assert result.stderr.count("\n") == 1 and result.stdout == ""
    assert files(tmp_path) == before


@pytest.mark.parametrize("arguments, number", [(["--l1", "1e25"], "a cost of"), (["--epsilon", "1e100"], "a bound of")])
def test_numbers_that_the_solver_cannot_take_are_refused(run, tmp_path, arguments, number):
    result = run("fit_linear_program", *arguments, "--out", "out")
    assert result.returncode == 2 and "the linear program has " + number in result.stderr
    assert "check the units of the data and --mass, --l1 and --epsilon" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("fit_linear_program: ") and files(tmp_path) == {}


def test_data_in_other_units_are_refused(run, tmp_path):
    assert run("simulate", "--formulation", "traditional", "--mass", 1e22, "--out", "data", "--quiet").returncode == 0
    result = run("fit_linear_program", "--data", "data/data.csv", "--out", "out")  # without --mass
    assert result.returncode == 2 and "above mu m g = 1 N of --mu, --mass and --gravity" in result.stderr
    assert "check the units of the data and --mass" in result.stderr and not (tmp_path / "out" / "model.pt").exists()


def test_help_teaches(run):
    result = run("fit_linear_program", "--help")
    assert result.returncode == 0 and result.stderr == ""
    for word in ("--epsilon", "--normalization", "--no-bias", "--l1", "--solver", "--split", "--data", "Example:"):
        assert word in result.stdout
