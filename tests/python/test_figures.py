"""Every program, with every flag that changes what it learns, draws its figures.

Importing matplotlib takes longer than most of these runs. The programs therefore call, in place of a Python, a script that
asks a server to draw. The server is a fork of this process, which has imported matplotlib, and draws in a fork of itself.
"""
import io
import json
import multiprocessing
import os
import pathlib
import runpy
import socket
import sys

import matplotlib
import matplotlib.animation
import matplotlib.pyplot as plt
import mpl_toolkits.mplot3d  # noqa: F401
import pytest
from matplotlib.figure import Figure
from runs import files

# Sends its folder and its arguments to the server, and ends with the errors and the exit status that the server answers.
CLIENT = """#!{python} -IS
import os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    server.sendall("\\0".join((os.getcwd(), *sys.argv[1:])).encode())
    server.shutdown(socket.SHUT_WR)
    errors, _, status = server.makefile().read().rpartition("\\n")
sys.stderr.write(errors)
sys.exit(int(status))
"""

ROLLOUT, LEARNED = {"rollout.png"}, {"rollout.png", "training.png"}
TRACK, TOSS = {"fit.png"}, {"toss.png", "errors.png", "errors_in_time.png", "training.png"}
FAST = ("--samples", 40, "--iterations", 3)
SEARCH = ("--samples", 30, "--starts", 2, "--finishing-iterations", 3, "--q", "affine", "--black-box-iterations", 10)
NETWORK = (*SEARCH, "--unknowns", 1)
TOSSES = ("--simulated", 4, "--window", 8, "--iterations", 3)
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
        ("--system", "planar_block"),
        ("--velocity-noise", 0.1))],
    *[("train_network", (*SEARCH, *flags), {"rollout.png", "search.png"}) for flags in (
        (), ("--loss", "one_sided", "--iterations", 4))],
    *[("train_mpec", ("--samples", 10, "--starts", 1, "--f", f), ROLLOUT) for f in ("absent", "constant", "affine")],
    *[("train_directions", ("--samples", 20, "--iterations", 4, "--starts", 2, *flags), {"directions.png"})
      for flags in ((), ("--true-directions", 4))],
    *[("train_markov_chain", (*FAST, *flags), {"branches.png", "training.png"}) for flags in (
        (), ("--states", 1), ("--factors", 1, 0.2))],
    ("train_compliant", ("--iterations", 2, "--trajectories", 5), {"training.png"}),
    *[("train_tosses", (*TOSSES, *flags), TOSS | figures) for flags, figures in (
        (("--contact", "polyhedral"), {"parameters.png"}),
        (("--contact", "compliant", "--learn", "mu", "stiffness"), {"parameters.png"}),
        (("--learn", "mu"), {"parameters.png"}), (("--model", "network"), set()))],
    ("identify_shooting", ("--estimate", "mu", "--steps", 30), TRACK),
    ("identify_shooting", ("--particles", 2, "--steps", 30), TRACK),
    ("identify_shooting", ("--estimate", "mu,q0,v0", "--steps", 10, "--process-noise", 1), TRACK),
    ("identify_tripod", ("--estimate", "mu", "--steps", 10), TRACK),
    ("identify_mpec", ("--steps", 30), TRACK | {"motion.png"}),
    ("identify_mpec", ("--steps", 10, "--complementarity", "relaxation"), TRACK | {"motion.png"}),
    ("identify_mpec", ("--steps", 30, "--iterations", 3), {"motion.png"}),  # which does not suffice
    ("identify_mpec", ("--system", "tripod", "--steps", 5, "--directions", 4, "--estimate", "mu"), TRACK | {"motion.png"}),
    ("track_particle_filter", ("--steps", 20, "--roughening", 0.2), {"filter.png"}),
    ("track_particle_filter", ("--steps", 10, "--system", "tripod", "--particles", 50), {"filter.png"}),
    ("track_particle_filter", ("--steps", 20, "--filter", "extended"), {"filter.png"}),
    ("track_moving_horizon", ("--steps", 20, "--process-noise", 1), {"horizon.png"}),
]


def script(folder, arguments, errors):
    """Runs a script of figures as `python SCRIPT ...` would in that folder, with its stderr written to the socket `errors`."""
    os.chdir(folder)
    sys.argv, sys.stderr = arguments, errors.makefile("w")
    save = Figure.savefig
    Figure.savefig = lambda figure, path, **_: save(figure, path, dpi=30)  # coarse images take half the time
    sys.path.insert(0, str(pathlib.Path(arguments[0]).parent))
    runpy.run_path(arguments[0], run_name="__main__")


def serve(listener):
    """Draws for one client after another. Only figures: model.pt2 has tests of its own, and needs torch."""
    matplotlib.use("Agg")
    plt.loglog([1, 10], [1, 10], label="$v$")  # reads fonts, which the forks need not read again
    plt.savefig(io.BytesIO())
    plt.close()
    while True:
        connection, _ = listener.accept()
        with connection:
            folder, *arguments = connection.makefile().read().split("\0")
            status = 1
            if pathlib.Path(arguments[0]).parent.name == "figures":
                fork = multiprocessing.get_context("fork").Process(target=script, args=(folder, arguments, connection))
                fork.start()
                fork.join()
                status = fork.exitcode
            connection.sendall(f"\n{status}".encode())


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The path of the script that stands for a Python."""
    folder = tmp_path_factory.mktemp("python")
    address, client = str(folder / "server"), folder / "client"
    client.write_text(CLIENT.format(python=sys.executable, address=address))
    client.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        server = multiprocessing.get_context("fork").Process(target=serve, args=(listener,))
        server.start()
        yield str(client)
        server.terminate()
        server.join()


@pytest.mark.parametrize("program, flags, figures", RUNS, ids=[" ".join(map(str, (run[0], *run[1]))) for run in RUNS])
def test_figures_are_drawn(run, build, tmp_path, python, program, flags, figures):
    if program in OPTIONAL and not (build / "bin" / program).exists():
        pytest.skip(f"{program} is not built")
    result = run(program, *flags, "--out", "out", env={**os.environ, "TORCHLCP_PYTHON": python})
    if result.returncode != 0:  # also where Ipopt finds no estimate, which is drawn nevertheless
        metrics = tmp_path / "out" / "metrics.json"
        assert metrics.exists() and json.loads(metrics.read_text())["mu"] is None, result.stderr
    assert "no figures" not in result.stderr
    assert {path.name for path in files(tmp_path / "out") if path.suffix == ".png"} == figures, result.stderr
