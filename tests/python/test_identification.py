"""Programs that identify friction and starts of bodies from noisy tracks."""
import json

import numpy as np
import pytest
from runs import files, read_csv, variants


@pytest.fixture
def identify(run, tmp_path, build):
    """The metrics of a run that prints nothing but these warnings."""

    def call(program, *arguments, out="out", warnings=""):
        if not (build / "bin" / program).exists():
            pytest.skip("built without Ipopt")
        result = run(program, *arguments, "--out", out, "--quiet")
        assert (result.returncode, result.stdout, result.stderr) == (0, "", warnings)
        return json.loads((tmp_path / out / "metrics.json").read_text())

    return call


KINK = (
    "warning: track 0: the fit ends where no step improves it, though its gradient is not 0, as at a kink of the "
    "simulation; its uncertainty may be wrong\n"
)
STD = {"mu": 1.069e-3, "mu,q0": 1.560e-3, "mu,q0,v0": 5.90e-3}  # of mu, over the noise


@pytest.mark.parametrize("estimate", STD)
@pytest.mark.parametrize("noise", [5e-5, 5e-3, 5e-2])
def test_shooting_finds_friction_and_says_how_well(identify, estimate, noise):
    metrics = identify("identify_shooting", "--estimate", estimate, "--noise", noise)
    assert metrics["mu_std"][0] == pytest.approx(STD[estimate] * noise, rel=2e-3)
    assert abs(metrics["mu_error"][0]) < 4 * STD[estimate] * noise
    low, high = metrics["mu_interval"][0]
    assert high - low == pytest.approx(2 * 1.96 * metrics["mu_std"][0], rel=0.05)
    assert 54 < metrics["objective_over_noise_squared"] < 80
    assert metrics["iterations"] < 15 and metrics["unconverged"] == 0 and metrics["unobservable"] == []


@pytest.mark.parametrize("seed", variants(*range(5)))
def test_both_agree(identify, seed):
    shooting = identify("identify_shooting", "--seed", seed)
    mpec = identify("identify_mpec", "--seed", seed, out="mpec")
    assert abs(shooting["mu"][0] - mpec["mu"][0]) < 1e-8
    assert mpec["program_objective"] == pytest.approx(shooting["objective"], rel=1e-6)
    assert mpec["status"] == "solved" and mpec["max_complementarity"] < 1e-8 and mpec["lcp_residual"] < 1e-6
    assert mpec["program_unknowns"] == 1105 and mpec["mu_std"] == pytest.approx(shooting["mu_std"], rel=1e-6)


@pytest.mark.parametrize("noise, warnings", [(5e-5, ""), (0.5, KINK)])
def test_both_agree_for_any_noise(identify, noise, warnings):
    shooting = identify("identify_shooting", "--noise", noise, warnings=warnings)
    assert shooting["unconverged"] == (warnings != "")
    mpec = identify("identify_mpec", "--noise", noise, out="mpec")
    assert abs(shooting["mu"][0] - mpec["mu"][0]) < 1e-5 * noise / 5e-3
    assert mpec["max_complementarity"] < 1e-8


@pytest.mark.long
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


@pytest.mark.long
def test_friction_without_a_gradient_is_noticed_and_left(identify):
    away = ("--initial-mu", 0.7, "--estimate", "mu")
    stuck = identify("identify_shooting", *away, "--escape", "none")
    assert stuck["mu"] == [0.7] and stuck["mu_std"] == [None] and stuck["objective"] == pytest.approx(28036, rel=1e-3)
    for mu in (0.7, 1, 5):
        free = identify("identify_shooting", "--initial-mu", mu)
        assert abs(free["mu_error"][0]) < 4 * 1.56e-3 * 5e-3 and free["escaped"] == 1 and free["unobservable"] == []


NO_EFFECT = "mu is not determined: it has no effect on this fit, which does not explain the track"


def test_friction_that_a_fit_needs_is_not_told_of_data_that_it_does_not_explain(identify, tmp_path):
    """A fit that sticks, of tracks that slide: with noise that is known, and with noise that is not."""
    away = ("--initial-mu", 0.7, "--escape", "none", "--estimate", "mu")
    stuck = identify("identify_shooting", *away)
    assert stuck["unobservable"] == [NO_EFFECT + "; its objective is 2.8e+04 m^2, and 0.0745 m^2 for mu = 0.199"]
    assert stuck["status"] == "the fit does not explain the data"
    residual = "the fit does not explain the track: residuals of 11.8 m"
    assert stuck["unexplained"] == [residual + ", noise of 0.00289 m; its uncertainty is not known"]
    observed = read_csv(tmp_path / "out" / "fit.csv")
    rows = [f"{t!r},{x!r},{y!r}\n" for t, x, y in zip(*(observed[c].tolist() for c in ("time", "x", "y")))]
    (tmp_path / "tracks.csv").write_text("time,x,y\n" + "".join(rows))
    own = identify("identify_shooting", "--data", "tracks.csv", *away, out="own")
    (line,) = own["unobservable"]
    assert line.startswith(NO_EFFECT) and line.endswith(" m^2 for mu = 0.199")
    assert own["unexplained"] == [residual + ", correlated in time; its uncertainty is not known"]
    # No friction explains a body that slows down in flight, here by a force that the model does not know.
    wrong = identify("identify_shooting", "--data", "tracks.csv", "--force", 4, 0, out="wrong")
    assert len(wrong["unexplained"]) == 1 and wrong["mu_std"] == [None] and wrong["mu_interval"] == [[None, None]]
    right = identify("identify_shooting", "--data", "tracks.csv", out="right")
    assert right["unexplained"] == [] and right["mu_std"][0] > 0
    low, high = right["mu_interval"][0]
    reach = 1.25 * abs(right["mu_bias"][0])
    assert reach > right["mu_std"][0] and low + reach < right["mu"][0] < high - reach


def exact_tracks(count, noise, dt, steps=100):
    """Particles of 1 kg that fall, land without a rebound, and slide under 5 N, by closed formulas: CSV and mu."""
    random, gravity = np.random.default_rng(3), 9.81
    lines, mus = ["track,time,x,y"], random.uniform(0.05, 0.4, count)
    for track, (mu, height) in enumerate(zip(mus, random.uniform(0.5, 4, count))):
        t, landing = dt * np.arange(steps + 1), np.sqrt(2 * height / gravity)
        since = np.maximum(t - landing, 0)
        speed = (5 - mu * gravity) * landing  # the impulse mu gravity landing stops it from 5 landing
        x = 2.5 * np.minimum(t, landing) ** 2 + speed * since + (5 - mu * gravity) * since**2 / 2
        y = np.maximum(height - gravity * t**2 / 2, 0)
        for row in zip(t, x + noise * random.uniform(-1, 1, t.size), y + noise * random.uniform(-1, 1, t.size)):
            lines.append(f"{track}," + ",".join(map(repr, map(float, row))))
    return "\n".join(lines) + "\n", mus


@pytest.mark.parametrize("dt", [0.05, 0.01])
def test_intervals_of_measured_tracks_hold_the_truth(identify, tmp_path, dt):
    """The error of the time steps is many standard deviations of the noise."""
    text, mu = exact_tracks(12, 1e-3, dt)
    (tmp_path / "tracks.csv").write_text(text)
    found = identify("identify_shooting", "--data", "tracks.csv", "--noise", 1e-3)
    low, high = np.array(found["mu_interval"], dtype=float).T
    explained = np.isfinite(low)
    assert explained.sum() >= 8 and ((low <= mu) & (mu <= high))[explained].all()
    error, std = np.abs(found["mu"] - mu), np.array(found["mu_std"], dtype=float)
    assert (error > 5 * std)[explained].all()  # the noise alone would not have held it


def test_an_online_estimate_knows_the_error_of_its_time_steps(identify, tmp_path):
    text, mu = exact_tracks(12, 1e-3, 0.05)
    (tmp_path / "tracks.csv").write_text(text)
    found = identify("track_moving_horizon", "--data", "tracks.csv", "--noise", 1e-3)
    error, std, bias = (np.array(x) for x in (found["mu"] - mu, found["mu_std"], found["mu_bias"]))
    assert (np.abs(error) > 5 * std).all()  # the noise alone would not have told it
    np.testing.assert_allclose(bias, error, rtol=0.05)
    history = read_csv(tmp_path / "out" / "history.csv")
    last = [np.flatnonzero(history["track"] == track)[-1] for track in range(12)]
    assert ((history["mu_low"][last] <= mu) & (mu <= history["mu_high"][last])).all()
    simulated = identify("track_moving_horizon", "--noise", 1e-3, out="simulated")
    assert simulated["mu_bias"] == [0]


def test_a_track_that_cannot_be_fitted_fails(run, identify, tmp_path):
    identify("identify_shooting", out="good")
    rows = (tmp_path / "good" / "fit.csv").read_text().splitlines()
    names = rows[0].split(",")
    cells = rows[20].split(",")
    cells[names.index("x")] = "1e308"
    rows[20] = ",".join(cells)
    (tmp_path / "far.csv").write_text("\n".join(rows) + "\n")
    result = run("identify_shooting", "--data", "far.csv", "--out", "far")
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == ("identify_shooting: no fit for 1 of 1 tracks: their first simulation has no "
                                              "finite distance from the data")


def test_the_fits_of_a_true_model_explain_their_tracks(identify):
    assert identify("identify_shooting", "--particles", 40)["unexplained"] == []
    assert identify("identify_tripod", "--particles", 10, out="tripod")["unexplained"] == []


def test_a_wrong_model_has_no_uncertainty(identify):
    """Tracks of 128 directions without noise, by a model of 8: mu is off by more than rounding."""
    wrong = identify("identify_tripod", "--noise", 0, "--true-directions", 128)
    assert abs(wrong["mu_error"][0]) > 1e-3 and wrong["mu_std"] == [None] and wrong["mu_interval"] == [[None, None]]
    assert wrong["unexplained"][0].endswith(", noise of 0 m; its uncertainty is not known")
    exact = identify("identify_tripod", "--noise", 0, out="exact")
    assert abs(exact["mu_error"][0]) < 1e-9 and exact["unexplained"] == [] and exact["mu_std"] == [0]


def test_a_particle_that_never_slides_tells_a_bound(identify):
    rest = identify("identify_shooting", "--estimate", "mu", "--mu", 0.9, "--position", 0, 0)
    assert rest["unobservable"] == ["mu is not determined: it never slides; only mu >= 0.51"]  # 5 / 9.81
    flight = identify("identify_shooting", "--steps", 10)
    assert flight["unobservable"] == ["mu is not determined: it never touches the ground"]
    assert rest["mu_interval"][0][0] == pytest.approx(5 / 9.81, rel=1e-3) and rest["mu_interval"][0][1] is None
    assert flight["mu_interval"] == [[0, None]]


def test_a_particle_that_hardly_slides_has_no_upper_bound(identify):
    """With an unknown start a fit that slides a little is as good as one that rests, whatever its friction."""
    metrics = identify("identify_shooting", "--mu", 0.9, "--position", 0, 0, "--monte-carlo", 20, warnings=KINK)
    low, high = metrics["mu_interval"][0]
    assert low == pytest.approx(5 / 9.81, rel=1e-3) and high is None and metrics["mu_std"] == [None]
    assert metrics["unobservable"] == ["mu is not determined: it may never slide; only mu >= 0.51"]
    assert metrics["monte_carlo"]["covered_by_interval"] >= 0.8


@pytest.mark.long
def test_noise_within_a_box_is_not_within_a_disk_of_its_width(run, build, tmp_path):
    """The talk's n'n <= eps^2 is infeasible where each coordinate is off by up to eps; |n| <= eps of each is not."""
    if not (build / "bin" / "identify_mpec").exists():
        pytest.skip("built without Ipopt")

    def bounded(out, *flags):
        result = run("identify_mpec", *flags, "--out", out)
        return result, json.loads((tmp_path / out / "metrics.json").read_text())

    result, metrics = bounded("disk", "--bound", 5e-3, "--bound-norm", "euclidean", "--iterations", 400)
    assert result.returncode == 1 and metrics["status"] != "solved"
    assert "no motion may be as near to the tracks as --bound" in result.stderr
    assert metrics["mu"] is None and "mu_std" not in metrics and "mu " not in result.stdout  # nothing was estimated
    assert len(read_csv(tmp_path / "disk" / "motion.csv")["normal"]) == 101 and len(metrics["last_iterate"][0]) == 3
    for out, flags in {"box": ("--bound", 5e-3),
                       "wide": ("--bound", 5e-3 * 2**0.5, "--bound-norm", "euclidean")}.items():
        result, metrics = bounded(out, *flags)
        assert (result.returncode, metrics["status"]) == (0, "solved") and abs(metrics["mu_error"][0]) < 5e-5
    free = bounded("free")[1]
    box, least = (read_csv(tmp_path / out / "fit.csv") for out in ("box", "free"))
    errors = [max(np.abs(fit[c] - fit[c + "_fit"]).max() for c in "xy") for fit in (box, least)]
    assert errors[0] < 5e-3 * (1 + 1e-4) < errors[1] and metrics["objective"] >= free["objective"] * (1 - 1e-9)
    result = run("identify_mpec", "--bound", 1e-4, "--out", "none", "--quiet")
    assert result.returncode == 1 and "no motion is within 0.0001 m of track 0" in result.stderr


@pytest.mark.long
def test_position_and_velocity_are_found_too(identify):
    """The initial state is unknown, and the search starts from several mu."""
    errors = []
    for seed in variants(*range(4)):
        for mu in (0.05, 0.3, 1):
            found = identify("identify_shooting", "--position", 0.3, 2.5, "--velocity", 1.5, -0.7, "--estimate",
                             "mu,q0,v0", "--initial-mu", mu, "--seed", seed)
            errors.append(np.subtract(found["theta"][0], (0.2, 0.3, 2.5, 1.5, -0.7)) / 5e-3)
            assert np.all(np.abs(errors[-1] * 5e-3) < 4 * np.array(found["theta_std"][0]))
            assert 54 < found["objective_over_noise_squared"] < 80
    mu, x, y, v_x, v_y = np.sqrt(np.mean(np.square(errors), axis=0))
    assert mu < 2 * 6.86e-3 and max(x, y) < 2 * 0.235 and max(v_x, v_y) < 2 * 0.67


def test_a_prior_draws_the_start_to_what_it_says(identify):
    free = identify("identify_shooting", "--estimate", "mu,q0,v0")
    held = identify("identify_shooting", "--estimate", "mu,q0,v0", "--prior", 1e6)
    assert np.abs(held["theta"][0][3:]).max() < 1e-5 < np.abs(free["theta"][0][3:]).max()
    assert held["theta_std"][0][4] < free["theta_std"][0][4]


@pytest.mark.parametrize("first", variants(1e-8, 0.1, 10))
def test_relaxed_products_end_where_shooting_does(identify, first):
    shooting = identify("identify_shooting")
    mpec = identify("identify_mpec", "--complementarity", "relaxation", "--first", first, out="mpec")
    assert abs(mpec["mu"][0] - shooting["mu"][0]) < 1e-9 and mpec["max_complementarity"] < 1e-8


@pytest.mark.parametrize("noise, fewest, most", [(5e-3, 1, 10), (0.05, 8, 50), (0.5, 20, 120)])
def test_a_bootstrap_filter_collapses_on_friction(identify, tmp_path, noise, fewest, most):
    metrics = identify("track_particle_filter", "--noise", noise)
    distinct = metrics["distinct_particles"]
    assert len(distinct) == 101 and distinct[0] == 500 and distinct[-1] == 1
    assert fewest <= distinct[16] <= most and all(b <= a for a, b in zip(distinct, distinct[1:]))
    assert abs(metrics["mu_error"][0]) < 0.05 and metrics["mu_std"][0] < 1e-9  # a small uncertainty, and a wrong value
    history = read_csv(tmp_path / "out" / "history.csv")
    assert list(history["distinct_particles"]) == distinct and history["mu"][-1] == metrics["mu"][0]
    rough = identify("track_particle_filter", "--noise", noise, "--roughening", 0.2, out="rough")
    assert rough["distinct_particles"][-1] > 100 and rough["mu_std"][0] > 1e-4


KALMAN = ("extended", "unscented")


def test_kalman_filters_of_free_fall_are_the_exact_one(identify, tmp_path):
    """Which is that of a moving horizon, since free fall is linear."""
    flags = ("--position", 0, 100, "--steps", 30, "--process-noise", 1, "--velocity-std", 0.5)
    identify("track_moving_horizon", *flags, out="horizon")
    horizon = read_csv(tmp_path / "horizon" / "fit.csv")
    for kind in KALMAN:
        found = identify("track_particle_filter", "--filter", kind, *flags, out=kind)
        fit = read_csv(tmp_path / kind / "fit.csv")
        for name in ("x_fit", "y_fit", "v_x_fit", "v_y_fit"):
            np.testing.assert_allclose(fit[name], horizon[name], rtol=1e-9, atol=1e-9)
        assert found["mu"][0] == pytest.approx(0.5) and found["mu_std"][0] == pytest.approx(12**-0.5)  # nothing is learned


@pytest.mark.parametrize("kind", KALMAN)
def test_kalman_filters_find_friction_that_slides(identify, kind):
    for flags in ((), PROCESS["particle"], PROCESS["tripod"]):
        found = identify("track_particle_filter", "--filter", kind, *flags)
        assert abs(found["mu_error"][0]) < 4 * found["mu_std"][0] < 0.1 and found["unexplained"] == []
        assert found["velocity_rmse"] < 0.6 * found["observed_velocity_rmse"]


def test_kalman_filters_know_no_bounds_and_no_distribution_but_the_normal_one(identify):
    low = identify("track_particle_filter", "--filter", "unscented", "--mu", 0.02, "--noise", 0.5)
    assert low["negative_mu_steps"] > 40 and low["mu"][0] < 0
    sticks = identify("track_particle_filter", "--filter", "extended", "--mu", 0.9)
    assert sticks["mu"][0] < 0.61 and sticks["mu_std"][0] < 0.01  # though every mu above .5963 is as likely


PROCESS = {"particle": ("--steps", 60, "--process-noise", 1), "tripod": ("--system", "tripod", "--process-noise", 0.3)}


def test_random_forces_are_estimated_with_the_rest(identify, tmp_path):
    """By shooting and by the MPEC, which agree within their uncertainty, since either may end in a local minimum; a model
    without them does not explain the track."""
    flags = PROCESS["particle"]
    shooting, mpec = identify("identify_shooting", *flags), identify("identify_mpec", *flags, out="mpec")
    assert mpec["program_unknowns"] == 5 + 60 * 13 and mpec["status"] == "solved"
    assert abs(mpec["mu"][0] - shooting["mu"][0]) < shooting["mu_std"][0]
    assert mpec["mu_std"] == pytest.approx(shooting["mu_std"], rel=1e-2)
    for found in (shooting, mpec):
        assert found["unexplained"] == [] and abs(found["mu_error"][0]) < 4 * found["mu_std"][0]
        assert found["mu_std"][0] > 20 * STD["mu,q0"] * 5e-3  # forces that are not known hide friction
        assert found["velocity_rmse"] < 0.5 * found["observed_velocity_rmse"] and len(found["theta"][0]) == 3
    track = read_csv(tmp_path / "out" / "fit.csv")
    rows = [f"{t!r},{x!r},{y!r}\n" for t, x, y in zip(*(track[c].tolist() for c in ("time", "x", "y")))]
    (tmp_path / "noisy.csv").write_text("time,x,y\n" + "".join(rows))
    own = ("--data", "noisy.csv", "--noise", 5e-3)
    assert len(identify("identify_shooting", *own, out="without")["unexplained"]) == 1
    known = identify("identify_shooting", *own, "--process-noise", 1, out="with")
    assert known["unexplained"] == [] and known["mu"][0] == pytest.approx(shooting["mu"][0], abs=1e-3)


def test_the_program_of_a_block_on_three_supports_ends_near_shooting(identify, tmp_path):
    """Both end in a local minimum, of which there are several where directions of friction change."""
    flags = ("--steps", 20, "--directions", 4)
    shooting = identify("identify_tripod", *flags)
    mpec = identify("identify_mpec", "--system", "tripod", *flags, out="mpec")
    assert mpec["status"] == "solved" and mpec["program_unknowns"] == 7 + 20 * 41 and mpec["unexplained"] == []
    assert abs(mpec["mu"][0] - shooting["mu"][0]) < shooting["mu_std"][0]
    assert mpec["objective"] == pytest.approx(shooting["objective"], rel=0.1)
    assert mpec["program_objective"] == pytest.approx(mpec["objective"], rel=1e-5)  # its motion is that of the model
    assert mpec["lcp_residual"] < 1e-5 and mpec["max_complementarity"] < 1e-8
    motion = read_csv(tmp_path / "mpec" / "motion.csv")
    assert motion["normal"][1:] == pytest.approx(9.81) and np.isnan(motion["normal"][0])
    friction = np.hypot(motion["friction_x"], motion["friction_y"])[1:]
    assert (friction < mpec["mu"][0] * 9.81 * (1 + 1e-6)).all() and (friction > 0).all()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_the_program_of_a_block_finds_friction_at_its_defaults(identify, seed):
    metrics = identify("identify_mpec", "--system", "tripod", "--seed", seed)
    assert metrics["status"] == "solved" and metrics["unexplained"] == [] and metrics["starts"][-1]["status"] == "solved"
    assert abs(metrics["mu_error"][0]) < 4 * metrics["mu_std"][0] < 0.004


@pytest.mark.parametrize("system", PROCESS)
def test_friction_is_identified_online_by_a_moving_horizon(identify, tmp_path, system):
    """Each estimate from the observations until then; the last one is near that of the whole track."""
    found = identify("track_moving_horizon", *PROCESS[system])
    assert abs(found["mu_error"][0]) < 4 * found["mu_std"][0]
    history = read_csv(tmp_path / "out" / "history.csv")
    assert history["mu"][0] == 0.5 and history["mu_std"][0] == pytest.approx(12**-0.5)
    assert history["mu_std"][-1] == found["mu_std"][0] < 0.1 * history["mu_std"][0]
    assert found["velocity_rmse"] < 0.5 * found["observed_velocity_rmse"]
    assert found["position_rmse"] < found["observed_position_rmse"]
    flags = PROCESS[system][2:] if system == "tripod" else PROCESS[system]
    program = "identify_tripod" if system == "tripod" else "identify_shooting"
    batch = identify(program, "--estimate", "mu,q0", *flags, out="whole")
    assert abs(found["mu"][0] - batch["mu"][0]) < 2 * batch["mu_std"][0]
    assert found["mu_std"][0] == pytest.approx(batch["mu_std"][0], rel=0.5)


def test_progress_goes_forwards_in_one_line_each_tenth(run):
    result = run("track_moving_horizon", "--system", "tripod", "--out", "out")
    steps = [int(line.split()[1]) for line in result.stderr.splitlines() if line.startswith("step ")]
    assert steps == sorted(set(steps)) and len(steps) <= 11 and len(steps) == len(result.stderr.splitlines())


def test_a_filter_that_loses_its_track_says_so(run, tmp_path):
    result = run("track_particle_filter", "--out", "out")
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert result.returncode == 0 and metrics["status"] == "the fit does not explain the data"
    lost, collapsed = metrics["unexplained"]
    assert lost.startswith("the fit does not explain the data: positions are off by") and "collapsed" in collapsed
    assert result.stderr == f"warning: {lost}\nwarning: {collapsed}\n"
    history = read_csv(tmp_path / "out" / "history.csv")
    assert (history["effective_particles"][1:] <= history["distinct_particles"][:-1] * (1 + 1e-9)).all()


def test_a_filter_follows_a_block_on_three_supports(identify, tmp_path):
    found = identify("track_particle_filter", *PROCESS["tripod"], "--roughening", 0.2)
    assert abs(found["mu_error"][0]) < 0.05 and found["unexplained_steps"] == 0
    assert found["position_rmse"] < found["observed_position_rmse"]
    assert found["velocity_rmse"] < 0.5 * found["observed_velocity_rmse"]
    fit = read_csv(tmp_path / "out" / "fit.csv")
    assert np.abs(fit["omega_fit"] - fit["omega_true"])[-10:].max() < 0.5 < np.abs(fit["omega_true"]).max()


TRIPOD_STD = {"mu": 0.194, "mu,q0,v0": 1.64}  # of mu, over the noise in metres


@pytest.mark.parametrize("estimate", TRIPOD_STD)
@pytest.mark.parametrize("noise", [1e-4, 2e-3])
def test_friction_of_a_block_on_three_supports(identify, estimate, noise):
    metrics = identify("identify_tripod", "--estimate", estimate, "--noise", noise)
    assert metrics["mu_std"][0] == pytest.approx(TRIPOD_STD[estimate] * noise, rel=0.05)
    truth = np.array([0.33, 0, 0, 0, 1, 0.3, 8])[: len(metrics["theta"][0])]
    assert np.all(np.abs(metrics["theta"][0] - truth) < 4 * np.array(metrics["theta_std"][0]))
    assert 40 < metrics["objective_over_noise_squared"] < 62  # 153 coordinates less what is fitted, over 3
    assert metrics["unconverged"] == 0 and metrics["unobservable"] == []


@pytest.mark.long
def test_estimates_of_blocks_scatter_as_their_uncertainty_says(identify):
    found = identify("identify_tripod", "--estimate", "mu", "--monte-carlo", 100)["monte_carlo"]
    assert found["mu_std"][0] == pytest.approx(found["predicted_mu_std"][0], rel=0.15)
    assert 0.88 <= found["covered_by_interval"] <= 1 and found["unconverged"] == 0


def test_blocks_each_have_their_friction(identify):
    metrics = identify("identify_tripod", "--particles", 3)
    assert len(set(metrics["mu"])) == 3
    assert np.all(np.abs(metrics["mu_error"]) < 4 * np.array(metrics["mu_std"]))


@pytest.mark.long
def test_friction_depends_on_the_model_that_it_is_identified_by(identify, tmp_path):
    """Tracks simulated with 128 directions or a raised centre of mass, by models of other directions and heights."""
    flags = ("--estimate", "mu", "--noise", 0, "--study")
    identify("identify_tripod", "--true-directions", 128, *flags)
    table = read_csv(tmp_path / "out" / "study.csv")
    assert list(table["directions"][:4]) == [4, 8, 16, 32]
    assert table["mu"][:4] == pytest.approx([0.3733, 0.3306, 0.3318, 0.3316], abs=3e-4)
    identify("identify_tripod", "--true-com-height", 0.02, *flags, out="tall")
    tall = read_csv(tmp_path / "tall" / "study.csv")
    by_height = dict(zip(tall["com_height"][4:], tall["mu"][4:]))
    assert by_height[0] == pytest.approx(0.3275, abs=1e-4) and by_height[0.02] == pytest.approx(0.33, abs=1e-9)


def test_a_block_that_rests_tells_nothing_or_a_bound(identify):
    flags = ("--velocity", 0, 0, 0, "--estimate", "mu,q0")
    rest = identify("identify_tripod", *flags, "--steps", 20)
    assert rest["unobservable"] == ["mu is not determined: it never slides; only mu >= 0"]
    held = identify("identify_tripod", *flags, "--force", 1.962, 0, 0)
    assert held["unobservable"] == ["mu is not determined: it never slides; only mu >= 0.2"]


def test_an_angle_of_the_users_own_may_jump_by_full_turns(identify, tmp_path):
    """A fast spin, with the angle in the file continuous or wrapped; mu and the velocity are unknown."""
    identify("identify_tripod", "--velocity", 0.5, 0.2, 20, "--position", 0, 0, 2)
    simulated = read_csv(tmp_path / "out" / "fit.csv")
    for name, theta in (("smooth", simulated["theta"]), ("wrapped", np.angle(np.exp(1j * simulated["theta"])))):
        rows = zip(simulated["time"], simulated["x"], simulated["y"], theta)
        lines = [",".join(repr(float(x)) for x in row) for row in rows]
        (tmp_path / f"{name}.csv").write_text("time,x,y,theta\n" + "\n".join(lines) + "\n")
    assert np.abs(np.diff(theta)).max() > 3
    smooth, wrapped = (identify("identify_tripod", "--data", f"{name}.csv", out=name) for name in ("smooth", "wrapped"))
    assert smooth["mu"][0] == pytest.approx(0.33, abs=0.01)
    assert wrapped["theta"][0] == pytest.approx(smooth["theta"][0], abs=1e-6)


@pytest.mark.long
def test_the_talks_tables_are_reproduced_beside_ours(run, build, tmp_path):
    result = run("reproduce_table", "--out", "out", env=None, timeout=1500)
    assert result.returncode == 0 and (tmp_path / "out" / "figures" / "table.png").exists()
    table = (tmp_path / "out" / "table.md").read_text()
    assert table in result.stdout and "| 0.0005 | 0.2 | 1.61e-05 | 443 | 0.1999997" in table
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert [row["particles"] for row in metrics["by_particles"]] == [2, 3, 5, 10]
    for row in metrics["by_noise"]:
        assert abs(row["mu"] - 0.2) < 4 * row["mu_std"] and row["distinct_particles"][1] == 1
        if (build / "bin" / "identify_mpec").exists():
            assert row["mpec_difference"] < 2e-6
    assert all(row["mu_rmse"] < 2e-5 for row in metrics["by_particles"])
    assert (tmp_path / "out" / "figures" / "estimators.png").exists()
    for row in metrics["estimators"]:
        if row["estimator"] != "filter":  # which has collapsed
            assert row["position_rmse"] < row["observed_position_rmse"], row
            assert row["velocity_rmse"] < row["observed_velocity_rmse"], row
        if row["estimator"] in ("shooting", "MPEC", "moving horizon"):
            assert abs(row["mu_error"]) < 5 * row["mu_std"], row


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
    result = run("identify_shooting", "--noise", 0.02, "--out", "out", env=None)
    assert result.returncode == 0 and result.stderr == "" and "mu                      0.1999" in result.stdout
    assert {str(path) for path in files(tmp_path / "out")} == {
        "config.json", "metrics.json", "history.csv", "fit.csv", "objective.csv", "figures/fit.png"}
    grid = read_csv(tmp_path / "out" / "objective.csv")
    assert grid["mu"][np.argmin(grid["objective_0"])] == pytest.approx(0.2, abs=1e-3)
    assert run("identify_shooting", "--config", "out/config.json", "--threads", 2, "--out", "again", "--quiet").returncode == 0
    for name in ("metrics.json", "history.csv", "fit.csv", "objective.csv"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--estimate", "all"], '--estimate must be mu, mu,q0 or mu,q0,v0; got "all"'),
        (["--escape", "luck"], '--escape must be starts or none; got "luck"'),
        (["--force", "1"], "--force must be two finite numbers; got [1.0]"),
        (["--dtype", "float32"], "--dtype must be float64"),
        (["--steps", "1"], "--steps must be >= 2; got 1"),
        (["--process-noise", "1", "--noise", "0"], "--process-noise needs --noise > 0"),
        (["--data", "ok.csv", "--process-noise", "1"], "--process-noise needs --noise > 0"),
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


@pytest.mark.parametrize(
    "program, arguments, message",
    [
        ("identify_tripod", ["--directions", "5"], "--directions must be even and >= 4; got 5"),
        ("identify_tripod", ["--velocity", "1", "2"], "--velocity must be three finite numbers; got [1.0,2.0]"),
        ("identify_tripod", ["--supports", *"123456"], "--supports must have the centre of mass, (0, 0), within their"),
        ("identify_tripod", ["--supports", "-.4", "-1", ".4", "1", ".6", "1.5"],  # on a line but for rounding
         "--supports must have the centre of mass, (0, 0), within their"),
        ("identify_tripod", ["--data", "xy.csv", "--true-directions", "4"], "--true-directions has no meaning with --da"),
        ("identify_tripod", ["--data", "xy.csv"], 'xy.csv: has no column "theta"; its header is "time,x,y"'),
        ("track_particle_filter", ["--noise", "0"], "--noise must be > 0: the filter weighs its particles by it"),
        ("track_particle_filter", ["--data", "xy.csv"], "--noise must be > 0: the filter weighs its particles by it"),
        ("track_particle_filter", ["--particles", "0"], "--particles must be >= 1; got 0"),
        ("track_particle_filter", ["--system", "ball"], '--system must be particle or tripod; got "ball"'),
        ("track_moving_horizon", ["--window", "0"], "--window must be >= 1; got 0"),
        ("track_moving_horizon", ["--noise", "0"], "--noise must be > 0: the arrival cost depends on it"),
        ("reproduce_table", ["--seed", "-1"], "--seed must be"),
        ("reproduce_table", ["--dtype", "float32"], "--dtype must be float64"),
    ],
)
def test_mistakes_of_the_other_programs_are_named_too(run, tmp_path, program, arguments, message):
    (tmp_path / "xy.csv").write_text("time,x,y\n0,0,1\n0.1,0,0.9\n0.2,0,0.8\n")
    before = files(tmp_path)
    result = run(program, *arguments, "--out", "out")
    assert result.returncode == 2 and result.stderr.startswith(f"{program}: ") and message in result.stderr
    assert result.stderr.count("\n") == 1 and result.stdout == "" and files(tmp_path) == before


def test_every_program_draws_and_repeats_itself(run, tmp_path):
    """Its files, and the same from its config.json."""
    expected = {"identify_tripod": {"fit.csv", "objective.csv", "study.csv", "figures/fit.png", "figures/study.png"},
                "track_particle_filter": {"fit.csv", "figures/filter.png"},
                "track_moving_horizon": {"fit.csv", "figures/horizon.png"}}
    flags = {"identify_tripod": ["--study", "--estimate", "mu", "--steps", 20], "track_particle_filter": ["--steps", 30],
             "track_moving_horizon": ["--system", "tripod", "--steps", 10]}
    for program, names in expected.items():
        assert run(program, *flags[program], "--out", program, env=None).returncode == 0
        written = {str(path) for path in files(tmp_path / program)}
        assert written == names | {"config.json", "metrics.json", "history.csv"}
        again = run(program, "--config", f"{program}/config.json", "--out", "again", "--quiet")
        assert (again.returncode, again.stderr) == (0, "")
        for name in {name for name in written if not name.startswith("figures/")} - {"config.json"}:
            assert (tmp_path / program / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
        configs = [json.loads((tmp_path / folder / "config.json").read_text()) for folder in (program, "again")]
        for config in configs:
            del config["files"]  # one run drew no figures
        assert configs[0] == configs[1]
