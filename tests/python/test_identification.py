"""identify_shooting and identify_mpec: friction and starts of particles from noisy tracks."""
import json

import numpy as np
import pytest
from runs import WITHOUT_FIGURES, files, read_csv


@pytest.fixture
def identify(run, tmp_path, build):
    """The metrics of a run that says nothing."""

    def call(program, *arguments, out="out"):
        if not (build / "bin" / program).exists():
            pytest.skip("built without Ipopt")
        result = run(program, *arguments, "--out", out, "--quiet", env=WITHOUT_FIGURES)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
        return json.loads((tmp_path / out / "metrics.json").read_text())

    return call


STD = {"mu": 1.069e-3, "mu,q0": 1.560e-3, "mu,q0,v0": 5.90e-3}  # of mu, over the noise


@pytest.mark.parametrize("estimate", STD)
@pytest.mark.parametrize("noise", [5e-5, 5e-3, 5e-2])
def test_shooting_finds_friction_and_says_how_well(identify, estimate, noise):
    metrics = identify("identify_shooting", "--estimate", estimate, "--noise", noise)
    assert metrics["mu_std"][0] == pytest.approx(STD[estimate] * noise, rel=2e-3)
    assert abs(metrics["mu_error"][0]) < 4 * STD[estimate] * noise
    low, high = metrics["mu_interval"][0]
    assert high - low == pytest.approx(2 * 1.96 * metrics["mu_std"][0], rel=1e-4)
    assert 54 < metrics["objective_over_noise_squared"] < 80
    assert metrics["iterations"] < 15 and metrics["unconverged"] == 0 and metrics["unobservable"] == []


@pytest.mark.parametrize("seed", range(5))
def test_both_agree(identify, seed):
    shooting = identify("identify_shooting", "--seed", seed)
    mpec = identify("identify_mpec", "--seed", seed, out="mpec")
    assert abs(shooting["mu"][0] - mpec["mu"][0]) < 1e-8
    assert mpec["program_objective"] == pytest.approx(shooting["objective"], rel=1e-6)
    assert mpec["status"] == "solved" and mpec["max_complementarity"] < 1e-8 and mpec["lcp_residual"] < 1e-6
    assert mpec["program_unknowns"] == 1105 and mpec["mu_std"] == pytest.approx(shooting["mu_std"], rel=1e-6)


@pytest.mark.parametrize("noise", [5e-5, 0.5])
def test_both_agree_for_any_noise(identify, noise):
    shooting = identify("identify_shooting", "--noise", noise)
    mpec = identify("identify_mpec", "--noise", noise, out="mpec")
    assert abs(shooting["mu"][0] - mpec["mu"][0]) < 1e-5 * noise / 5e-3
    assert mpec["max_complementarity"] < 1e-8


def test_several_particles(identify):
    shooting = identify("identify_shooting", "--particles", 10)
    assert len(shooting["mu"]) == 10 and np.sqrt(np.mean(np.square(shooting["mu_error"]))) < 2e-5
    mpec = identify("identify_mpec", "--particles", 5, out="mpec")
    five = identify("identify_shooting", "--particles", 5, out="five")
    assert np.abs(np.subtract(mpec["mu"], five["mu"])).max() < 1e-7


@pytest.mark.parametrize("estimate", STD)
def test_estimates_scatter_as_their_uncertainty_says(identify, estimate):
    found = identify("identify_shooting", "--estimate", estimate, "--monte-carlo", 100)["monte_carlo"]
    assert found["mu_std"][0] == pytest.approx(found["predicted_mu_std"][0], rel=0.15)
    assert 0.88 <= found["covered_by_interval"] <= 1 and found["unconverged"] == 0


def test_friction_without_a_gradient_is_noticed_and_left(identify):
    away = ("--initial-mu", 0.7, "--estimate", "mu")
    stuck = identify("identify_shooting", *away, "--escape", "none")
    assert stuck["mu"] == [0.7] and stuck["mu_std"] == [None] and stuck["objective"] == pytest.approx(28036, rel=1e-3)
    assert stuck["unobservable"] == ["mu is not determined: it never slides; only mu >= 0.596"]
    for mu in (0.7, 1, 5):
        free = identify("identify_shooting", "--initial-mu", mu)
        assert abs(free["mu_error"][0]) < 4 * 1.56e-3 * 5e-3 and free["escaped"] == 1 and free["unobservable"] == []


def test_a_particle_that_never_slides_tells_a_bound(identify):
    rest = identify("identify_shooting", "--estimate", "mu", "--mu", 0.9, "--position", 0, 0)
    assert rest["unobservable"] == ["mu is not determined: it never slides; only mu >= 0.51"]  # 5 / 9.81
    flight = identify("identify_shooting", "--steps", 10)
    assert flight["unobservable"] == ["mu is not determined: it never touches the ground"]
    assert flight["mu_interval"] == [[None, None]]


def test_a_bound_on_the_noise_that_the_noise_exceeds_is_infeasible(run, build, tmp_path):
    """n'n <= eps^2, as in the talk, where each coordinate is off by up to eps."""
    if not (build / "bin" / "identify_mpec").exists():
        pytest.skip("built without Ipopt")
    result = run("identify_mpec", "--bound", 5e-3, "--iterations", 400, "--out", "out", env=WITHOUT_FIGURES)
    assert result.returncode == 1 and json.loads((tmp_path / "out" / "metrics.json").read_text())["status"] != "solved"
    result = run("identify_mpec", "--bound", 5e-3 * 2**0.5, "--out", "wide", env=WITHOUT_FIGURES)
    metrics = json.loads((tmp_path / "wide" / "metrics.json").read_text())
    assert result.returncode == 0 and metrics["status"] == "solved" and abs(metrics["mu_error"][0]) < 5e-5


def test_tracks_of_the_users_own(identify, tmp_path):
    """Two tracks of different length, with and without their names, and noise that is not known."""
    rng = np.random.default_rng(0)

    def track(mu, steps, x, v):
        y, w, rows = 1.0, 0.0, [(0.0, x, 1.0)]
        for k in range(steps):
            free = y + 0.05 * (w - 0.05 * 9.81)
            impulse = max(-free / 0.05, 0)
            w = w - 0.05 * 9.81 + impulse
            v = np.sign(v) * max(abs(v) - mu * impulse, 0)
            x, y = x + 0.05 * v, y + 0.05 * w
            rows.append((0.05 * (k + 1), x, y))
        return np.array(rows) + np.c_[np.zeros(steps + 1), rng.normal(0, 1e-3, (steps + 1, 2))]

    tracks = [track(0.2, 60, 0, 4), track(0.35, 40, 5, 3)]
    rows = [f"{t!r},{x!r},{y!r}\n" for one in tracks for t, x, y in one.tolist()]
    (tmp_path / "tracks.csv").write_text("time,x,y\n" + "".join(rows))
    flags = ("--force", 0, 0, "--estimate", "mu,q0,v0")
    metrics = identify("identify_shooting", "--data", "tracks.csv", *flags)
    assert metrics["mu"] == pytest.approx([0.2, 0.35], abs=0.01)
    assert metrics["noise_std"] == pytest.approx([1e-3, 1e-3], rel=0.25)
    for mu, (low, high) in zip((0.2, 0.35), metrics["mu_interval"]):
        assert low < mu < high
    assert len(read_csv(tmp_path / "out" / "fit.csv")["x_fit"]) == 61 + 41
    names = ["0,"] * 61 + ["7,"] * 41
    (tmp_path / "named.csv").write_text("track,time,x,y\n" + "".join(a + b for a, b in zip(names, rows)))
    assert identify("identify_shooting", "--data", "named.csv", *flags, out="named") == metrics


def test_a_run_writes_every_file_and_is_repeated_by_its_flags(run, tmp_path):
    result = run("identify_shooting", "--noise", 0.02, "--out", "out")
    assert result.returncode == 0 and result.stderr == "" and "mu                      0.1999" in result.stdout
    assert {str(path) for path in files(tmp_path / "out")} == {
        "config.json", "metrics.json", "fit.csv", "objective.csv", "figures/fit.png"}
    grid = read_csv(tmp_path / "out" / "objective.csv")
    assert grid["mu"][np.argmin(grid["objective_0"])] == pytest.approx(0.2, abs=1e-3)
    assert run("identify_shooting", "--config", "out/config.json", "--threads", 2, "--out", "again", "--quiet",
               env=WITHOUT_FIGURES).returncode == 0
    for name in ("metrics.json", "fit.csv", "objective.csv"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--estimate", "all"], '--estimate must be mu, mu,q0 or mu,q0,v0; got "all"'),
        (["--escape", "luck"], '--escape must be starts or none; got "luck"'),
        (["--force", "1"], "--force must be two finite numbers; got [1.0]"),
        (["--dtype", "float32"], "--dtype must be float64"),
        (["--steps", "1"], "--steps must be >= 2; got 1"),
        (["--particles", "2", "--mu", "0.3"], "--mu has no meaning with --particles 2"),
        (["--data", "none.csv"], "none.csv"),
        (["--data", "ok.csv", "--dt", "0.1"], "--dt has no meaning with --data"),
        (["--data", "ok.csv", "--monte-carlo", "9"], "--monte-carlo has no meaning with --data"),
        (["--data", "columns.csv"], 'columns.csv: has no column "x"; its header is "time,y"'),
        (["--data", "steps.csv"], 'steps.csv, line 5, column "time": a step of 0.2 s; all must be equal'),
        (["--data", "short.csv"], "short.csv, line 2: a track of 2 rows; it takes 3"),
    ],
)
def test_mistakes_are_named_in_one_line_and_write_nothing(run, tmp_path, arguments, message):
    (tmp_path / "ok.csv").write_text("time,x,y\n0,0,1\n0.1,0,0.9\n0.2,0,0.8\n")
    (tmp_path / "columns.csv").write_text("time,y\n0,1\n")
    (tmp_path / "steps.csv").write_text("time,x,y\n0,0,1\n0.1,0,1\n0.2,0,1\n0.4,0,1\n")
    (tmp_path / "short.csv").write_text("time,x,y\n0,0,1\n0.1,0,1\n0,0,1\n0.1,0,1\n0.2,0,1\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "metrics.json").write_text("precious")
    before = files(tmp_path)
    result = run("identify_shooting", *arguments, "--out", "out")
    assert result.returncode == 2 and result.stderr.startswith("identify_shooting: ") and message in result.stderr
    assert result.stderr.count("\n") == 1 and result.stdout == "" and files(tmp_path) == before
