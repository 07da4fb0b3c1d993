"""Every program, with every flag that changes what it learns, draws its figures."""
import json
import multiprocessing
import runpy
import sys

import matplotlib.pyplot  # noqa: F401  # which the forks need not import again
import pytest
from runs import files

ROLLOUT, LEARNED = {"rollout.png"}, {"rollout.png", "training.png"}
TRACK, TOSS = {"fit.png"}, {"toss.png", "errors.png", "errors_in_time.png", "training.png"}
FAST = ("--samples", 60, "--iterations", 4)
NETWORK = ("--samples", 40, "--starts", 4, "--finishing-iterations", 4, "--q", "affine", "--unknowns", 1,
           "--black-box-iterations", 10)
TOSSES = ("--simulated", 6, "--window", 8, "--iterations", 3)
# Programs that are built where Ipopt and Clp are installed.
OPTIONAL = {"identify_mpec", "train_mpec", "fit_linear_program"}

RUNS = [
    *[("train_direct", (*FAST, *flags), LEARNED) for flags in (
        ("--forces", "physical"), ("--forces", "none"), ("--start", "random"), ("--network", "hidden"),
        ("--head", "none"), ("--no-bias",), ("--more-mus", 0.5), ("--velocity-noise", 0.1, "--force-noise", 0.1))],
    ("train_direct", ("--study", "--samples", 100, "--iterations", 4), {"study.png"}),
    *[("train_slack", (*FAST, *flags), LEARNED) for flags in ((), ("--network", "hidden"), ("--no-bias",))],
    *[("train_penalty", (*FAST, *flags), LEARNED | {"rows.png"}) for flags in (
        (), ("--matrix", "free"), ("--matrix", "free", "--relu-pairs", 1), ("--squared",), ("--no-bias",),
        ("--exact-rest",), ("--split", "maximal"))],
    *[("train_structured", (*FAST, *flags), LEARNED | {"rows.png"}) for flags in (
        (), ("--basis", "none"), ("--basis", "diagonal"), ("--known-vector",))],
    *[("fit_linear_program", ("--samples", 60, *flags), ROLLOUT | {"rows.png"}) for flags in (
        (), ("--normalization", "none"), ("--matrix", "free"), ("--l1", 0.1), ("--solver", "interior_point"))],
    *[(program, (*FAST, "--starts", 2, "--start", "random", "--parameters", parameters), LEARNED)
      for program in ("train_in_the_loop", "train_bilevel") for parameters in ("mu", "rows", "structured", "networks")],
    ("train_in_the_loop", (*FAST, "--kappa", 0.01), LEARNED),
    ("train_bilevel", (*FAST, "--hard"), LEARNED),
    *[("train_network", (*NETWORK, *flags), {"rollout.png", "search.png"}) for flags in (
        ("--f", "affine"), ("--G", "network"), ("--loss", "bilevel", "--iterations", 4),
        ("--loss", "one_sided", "--iterations", 4, "--unknowns", 2), ("--system", "planar_block"),
        ("--velocity-noise", 0.1))],
    ("train_network", (*NETWORK[:-4], "--black-box-iterations", 10), {"rollout.png", "search.png"}),
    *[("train_mpec", ("--samples", 20, "--starts", 2, "--f", f), ROLLOUT) for f in ("absent", "constant", "affine")],
    *[("train_directions", ("--samples", 20, "--iterations", 4, "--starts", 2, *flags), {"directions.png"})
      for flags in ((), ("--true-directions", 4))],
    *[("train_markov_chain", (*FAST, *flags), {"branches.png", "training.png"}) for flags in (
        (), ("--states", 1), ("--factors", 1, 0.2))],
    ("train_compliant", ("--iterations", 2, "--trajectories", 5), {"training.png"}),
    *[("train_tosses", (*TOSSES, *flags), TOSS | figures) for flags, figures in (
        (("--contact", "polyhedral"), {"parameters.png"}), (("--contact", "compliant"), {"parameters.png"}),
        (("--learn", "mu"), {"parameters.png"}), (("--model", "network"), set()))],
    ("identify_shooting", ("--estimate", "mu", "--steps", 30), TRACK),
    ("identify_shooting", ("--particles", 2, "--steps", 30), TRACK),
    ("identify_shooting", ("--estimate", "mu,q0,v0", "--steps", 30, "--process-noise", 1), TRACK),
    ("identify_tripod", ("--estimate", "mu", "--steps", 10), TRACK),
    ("identify_mpec", ("--steps", 30), TRACK | {"motion.png"}),
    ("identify_mpec", ("--steps", 30, "--complementarity", "relaxation"), TRACK | {"motion.png"}),
    ("identify_mpec", ("--steps", 30, "--iterations", 3), {"motion.png"}),  # which does not suffice
    ("identify_mpec", ("--system", "tripod", "--steps", 5, "--directions", 4, "--estimate", "mu"), TRACK | {"motion.png"}),
    ("track_particle_filter", ("--steps", 20, "--roughening", 0.2), {"filter.png"}),
    ("track_particle_filter", ("--steps", 10, "--system", "tripod", "--particles", 50), {"filter.png"}),
    ("track_moving_horizon", ("--steps", 20, "--process-noise", 1), {"horizon.png"}),
]
# One run of each program draws them itself; those of the others are drawn here, where matplotlib is imported once.
WHOLE = {program: k for k, (program, _, _) in enumerate(RUNS)}.values()


def draw(build, program, out):
    """Runs the script of the program's figures in a fork of this process."""
    folder = build / "share" / "torchlcp" / "figures"

    def script():
        sys.path.insert(0, str(folder))
        sys.argv = [f"{program}.py", str(out), str(out / "figures")]
        runpy.run_path(str(folder / f"{program}.py"), run_name="__main__")

    process = multiprocessing.get_context("fork").Process(target=script)
    process.start()
    process.join()
    assert process.exitcode == 0


@pytest.mark.parametrize("k", range(len(RUNS)), ids=lambda k: " ".join(map(str, (RUNS[k][0], *RUNS[k][1]))))
def test_figures_are_drawn(run, build, tmp_path, k):
    program, flags, figures = RUNS[k]
    if program in OPTIONAL and not (build / "bin" / program).exists():
        pytest.skip(f"{program} is not built")
    result = run(program, *flags, "--out", "out", **({"env": None} if k in WHOLE else {}))
    assert result.returncode == 0 or json.loads((tmp_path / "out" / "metrics.json").read_text())["mu"] is None
    assert "no figures" not in result.stderr
    if k not in WHOLE:
        draw(build, program, tmp_path / "out")
    assert {path.name for path in files(tmp_path / "out") if path.suffix == ".png"} == figures, result.stderr
