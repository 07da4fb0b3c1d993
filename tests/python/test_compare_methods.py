"""compare_methods, as its user runs it."""
import json
import shutil
import signal
import subprocess

import numpy as np
import pytest
from runs import WITHOUT_FIGURES, files, iteration, read_csv, start, wait_until


METHODS = ("--methods", "affine", "direct", "in_the_loop_mu")
SMALL = ("--seeds", 1, "--samples", 200, *METHODS)


def metrics_of(out):
    rows = json.loads((out / "metrics.json").read_text())["methods"]
    return {(row["method"], row["start"]): row for row in rows}


@pytest.fixture(scope="module")
def compared(build, tmp_path_factory):
    out = tmp_path_factory.mktemp("small") / "out"
    command = [build / "bin" / "compare_methods", *map(str, SMALL), "--out", out]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return out, result


def test_a_small_run_writes_everything(compared):
    out, result = compared
    top = {str(path) for path in files(out) if path.parts[0] != "runs"}
    assert top == {"config.json", "metrics.json", "table.json", "table.md", "times.json", "figures/comparison.png",
                   "data/0_traditional.csv", "data/0_direct.csv", "data/0_physical.csv"}
    assert {path.name for path in (out / "runs").iterdir()} == {
        "direct_random_0", "in_the_loop_mu_near_0", "in_the_loop_mu_far_0", "in_the_loop_mu_random_0"}
    assert (out / "figures" / "comparison.png").stat().st_size > 10_000
    assert str(out / "table.md") in result.stdout and "exactly 0" in result.stdout
    assert "now direct, random start, seed 0" in result.stderr and " left" in result.stderr
    table = (out / "table.md").read_text()
    assert table.count("| in_the_loop_mu | ") == 6 and "Failed" not in table


def test_methods_that_know_the_law_beat_one_that_does_not(compared):
    rows = metrics_of(compared[0])
    assert set(rows) == {("affine", "none"), ("direct", "random"), ("in_the_loop_mu", "near"),
                         ("in_the_loop_mu", "far"), ("in_the_loop_mu", "random")}
    rmse = {key: row["heldout_rmse"]["median"] for key, row in rows.items()}
    assert rmse["in_the_loop_mu", "random"] < 1e-9
    assert rmse["direct", "random"] < 1e-3 and rmse["in_the_loop_mu", "near"] < 1e-9 and rmse["affine", "none"] > 0.1
    exact = {key: row["sticking_exact_zero_fraction"]["median"] for key, row in rows.items()}
    assert exact["direct", "random"] == exact["in_the_loop_mu", "near"] == 1 and exact["affine", "none"] == 0
    assert rows["in_the_loop_mu", "near"]["mu"]["median"] == pytest.approx(1, abs=1e-9)
    assert rows["affine", "none"]["parameters"]["median"] == rows["affine", "none"]["identifiable_parameters"]["least"] == 3


def test_all_methods_see_the_same_steps(compared):
    out = compared[0]
    traditional, direct, physical = (read_csv(out / "data" / f"0_{name}.csv")
                                     for name in ("traditional", "direct", "physical"))
    for name in ("v", "u", "v_next"):
        assert (traditional[name] == direct[name]).all() and (traditional[name] == physical[name]).all()
    assert len(traditional["v"]) == 250
    force = traditional["v_next"] - traditional["v"] - traditional["u"]
    for data in (traditional, physical):
        np.testing.assert_allclose(data["lambda_plus"] - data["lambda_minus"], force, atol=1e-12)
        assert min(data["lambda_plus"].min(), data["lambda_minus"].min()) == 0
    assert (np.minimum(physical["lambda_plus"], physical["lambda_minus"]) == 0).all()
    assert (np.minimum(traditional["lambda_plus"], traditional["lambda_minus"]) > 0.01).mean() > 0.3
    free = traditional["v"] + traditional["u"]
    np.testing.assert_allclose(direct["lambda_minus"], np.minimum(1, free), atol=1e-12)
    np.testing.assert_allclose(direct["lambda_plus"], np.minimum(1, -free), atol=1e-12)
    assert json.loads((out / "runs" / "direct_random_0" / "metrics.json").read_text())["heldout_samples"] == 50


def test_a_run_is_what_its_user_gets_with_any_number_of_threads(compared, run, tmp_path):
    out = compared[0]
    assert run("train_in_the_loop", "--initial-mu", 4, "--data", out / "data" / "0_traditional.csv", "--threads", 2,
               "--out", "alone", "--quiet").returncode == 0
    for name in ("metrics.json", "history.csv"):
        assert (tmp_path / "alone" / name).read_bytes() == (out / "runs" / "in_the_loop_mu_far_0" / name).read_bytes()


def test_held_out_steps_have_no_noise(run, tmp_path):
    result = run("compare_methods", "--seeds", 2, "--samples", 202, "--velocity-noise", 0.1, "--methods", "affine",
                 "--threads", 2, "--out", "out", "--quiet")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    data = [read_csv(tmp_path / "out" / "data" / f"{seed}_traditional.csv") for seed in (0, 1)]
    for one in data:
        free = one["v"] + one["u"]
        error = one["v_next"] - np.sign(free) * np.maximum(abs(free) - 1, 0)
        held_out = np.arange(len(free)) % 5 == 4
        assert held_out.sum() == 50 and len(free) == 252
        assert abs(error[held_out]).max() < 1e-12 and error[~held_out].std() == pytest.approx(0.1, rel=0.2)
    assert not np.isin(data[0]["v"], data[1]["v"]).any()
    row = metrics_of(tmp_path / "out")["affine", "none"]
    both = [one["heldout_rmse"] for one in row["runs"]]
    assert [one["seed"] for one in row["runs"]] == [0, 1]
    assert row["heldout_rmse"] == {"least": min(both), "most": max(both), "median": pytest.approx(sum(both) / 2)}


def test_the_black_box_is_trained_once(run, tmp_path):
    small = ("--seeds", 1, "--samples", 100, "--methods", "black_box", "direct_motion", "--black-box-iterations", 20)
    times = []
    for flags in ((), ("--resume",)):
        assert run("compare_methods", *small, *flags, "--threads", 2, "--out", "out", "--quiet").returncode == 0
        rows = metrics_of(tmp_path / "out")
        box, motion = rows["black_box", "random"]["runs"][0], rows["direct_motion", "random"]["runs"][0]
        assert 1e-3 < box["heldout_rmse"] < 1 and motion["heldout_rmse"] < 1e-6
        times.append(json.loads((tmp_path / "out" / "runs" / "black_box_random_0.json").read_text())["time"])
    assert times[0] == times[1]


def test_resume_repeats_nothing(compared, run, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(compared[0], out)
    (out / "runs" / "in_the_loop_mu_far_0" / "metrics.json").unlink()
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*") if path.is_file()}
    assert run("compare_methods", "--out", "out", "--resume", "--quiet").returncode == 0
    assert (out / "metrics.json").read_bytes() == (compared[0] / "metrics.json").read_bytes()
    changed = {path.parent.name for path, at in before.items() if path.stat().st_mtime_ns != at}
    assert changed == {"in_the_loop_mu_far_0"}
    times = [{(row["method"], row["start"]): row["runs"][0]["time"] for row in json.loads(text)}
             for text in ((folder / "table.json").read_text() for folder in (compared[0], out))]
    assert times[0]["direct", "random"] == times[1]["direct", "random"]
    assert times[0]["in_the_loop_mu", "far"] < times[1]["in_the_loop_mu", "far"]


def test_resume_refuses_another_comparison(compared, run, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(compared[0], out)
    before = files(out)
    for arguments, message in ((("--samples", 300), "--samples 300 differs from the 200"),
                               (("--methods", "affine"), '--methods ["affine"] differs')):
        result = run("compare_methods", *arguments, "--out", "out", "--resume")
        assert result.returncode == 2 and message in result.stderr and files(out) == before
    data = out / "data" / "0_direct.csv"
    data.write_text(data.read_text().replace(",0.", ",0.5", 1))
    result = run("compare_methods", "--out", "out", "--resume")
    assert result.returncode == 2 and "0_direct.csv: is not the data" in result.stderr


def test_resume_refuses_a_config_of_another_kind(run, tmp_path):
    (tmp_path / "out").mkdir()
    for content, message in (("[]", "must hold one JSON object"),
                             ('{"program": 1}', "is of another program, not of compare_methods")):
        (tmp_path / "out" / "config.json").write_text(content)
        result = run("compare_methods", "--out", "out", "--resume")
        assert (result.returncode, result.stderr) == (2, f"compare_methods: out/config.json: {message}\n")


def test_ctrl_c_is_passed_on_and_resumed_bit_for_bit(compared, build, run, tmp_path):
    process = start(build, tmp_path, "compare_methods", *SMALL, "--out", "out", stderr=subprocess.PIPE, text=True)
    direct = tmp_path / "out" / "runs" / "direct_random_0"
    wait_until(lambda: iteration(direct) > 0, process)
    process.send_signal(signal.SIGINT)
    errors = process.communicate()[1]
    assert process.returncode == 130
    assert f"stopped at direct, random start, seed 0; to continue: {build}/bin/compare_methods --out out --resume" in errors
    assert (direct / "checkpoint.pt").exists() and not (direct / "metrics.json").exists()
    assert run("compare_methods", "--out", "out", "--resume", "--quiet").returncode == 0
    assert (tmp_path / "out" / "metrics.json").read_bytes() == (compared[0] / "metrics.json").read_bytes()


def test_a_method_that_fails_is_named_and_the_others_go_on(run, tmp_path):
    (tmp_path / "out" / "runs").mkdir(parents=True)
    (tmp_path / "out" / "runs" / "slack_random_0").write_text("in the way")
    result = run("compare_methods", "--seeds", 1, "--samples", 200, "--methods", "slack", "affine", "--out", "out",
                 "--overwrite", env=None)
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("compare_methods: slack, random start, seed 0: train_slack: ") and "slack_random_0" in last
    rows = metrics_of(tmp_path / "out")
    assert rows["slack", "random"]["heldout_rmse"] is None and rows["affine", "none"]["heldout_rmse"]["median"] > 0.1
    table = (tmp_path / "out" / "table.md").read_text()
    assert "1 of 1 failed" in table and "## Failed" in table and "| slack | random | 0 | train_slack: " in table
    assert (tmp_path / "out" / "figures" / "comparison.png").exists()


def test_programs_that_are_not_there(build, tmp_path):
    shutil.copy(build / "bin" / "compare_methods", tmp_path)
    command = [tmp_path / "compare_methods", "--seeds", "1", "--samples", "200", "--out", "out", "--methods"]
    result = subprocess.run([*command, "affine", "linear_program"], cwd=tmp_path, capture_output=True, text=True,
                            env=WITHOUT_FIGURES)
    assert result.returncode == 0
    assert result.stderr.splitlines()[-1] == "linear_program is not built, since Clp is not installed"
    assert "| linear_program | contact forces | none | not built |" in (tmp_path / "out" / "table.md").read_text()
    result = subprocess.run([*command, "direct"], cwd=tmp_path, capture_output=True, text=True,
                            env=WITHOUT_FIGURES)
    assert result.returncode == 1 and f"cannot run {tmp_path / 'train_direct'}" in result.stderr


def test_data_of_the_users_own(run, tmp_path):
    block = ("--mass", 2, "--mu", 0.4)
    assert run("simulate", "--formulation", "traditional", *block, "--trajectories", 10, "--steps", 30, "--out", "data",
               "--quiet").returncode == 0
    arguments = ("--data", "data/data.csv", "--dt", 0.1, "--gravity", 9.81, "--seeds", 1, "--methods")
    result = run("compare_methods", *arguments, "in_the_loop_mu", *block, "--out", "out", "--quiet")
    assert (result.returncode, result.stderr) == (0, "")
    assert metrics_of(tmp_path / "out")["in_the_loop_mu", "near"]["mu"]["median"] == pytest.approx(0.4, abs=1e-6)
    single = json.loads((tmp_path / "out" / "runs" / "in_the_loop_mu_near_0" / "metrics.json").read_text())
    assert (single["training_samples"], single["heldout_samples"]) == (240, 60)
    given, used = read_csv(tmp_path / "data" / "data.csv"), read_csv(tmp_path / "out" / "data" / "0_traditional.csv")
    assert all((used[name] == given[name]).all() for name in used) and "trajectory" in used
    result = run("compare_methods", *arguments, "affine", "--mass", 2, "--mu", 0.8, "--out", "other")
    assert "warning: " in result.stderr and "off the steps of a block of --mass, --dt, --mu and --gravity" in result.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--methods", "direct", "magic"], "--methods must be some of affine, black_box, network, direct_motion, direct"),
        (["--seeds", "0"], "--seeds must be >= 1; got 0"),
        (["--seed", "4294967295"], "--seed + --seeds - 1 must be a whole number from 0 to 4294967295; got 4294967299"),
        (["--samples", "3"], "--samples must be >= 4"),
        (["--mu", "0"], "--mu and --gravity must be > 0"),
        (["--near-mu", "-1"], "--near-mu must be finite and >= 0; got -1.0"),
        (["--data", "v.csv"], 'v.csv: has no column "u"; its header is "v"'),
        (["--data", "direct.csv"], "direct.csv: lambda_plus or lambda_minus is negative"),
        (["--data", "direct.csv", "--samples", "9"], "--samples has no meaning with --data"),
        (["--resume"], "config.json: is of train_direct, not of compare_methods"),
    ],
)
def test_mistakes_are_named_in_one_line_and_write_nothing(run, tmp_path, arguments, message):
    (tmp_path / "v.csv").write_text("v\n1\n")
    (tmp_path / "direct.csv").write_text("v,u,v_next,lambda_plus,lambda_minus,gamma\n" + "2,0,1,-2,1,1\n" * 10)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "metrics.json").write_text("precious")
    (tmp_path / "out" / "config.json").write_text('{"program": "train_direct"}')
    before = files(tmp_path)
    result = run("compare_methods", *arguments, "--out", "out")
    assert result.returncode == 2
    assert result.stderr.startswith("compare_methods: ") and message in result.stderr
    assert result.stderr.count("\n") == 1 and result.stdout == ""
    assert files(tmp_path) == before
