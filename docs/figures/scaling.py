"""scaling.png: what limits training on many processes: measured here on 1 to 8, and extrapolated.

    .venv/bin/python docs/figures/scaling.py [--run BUILD]

--run measures into scaling.json, in some minutes on a machine that does nothing else: the time of a solve with its
gradient for piles of bodies, that of a step of train_bilevel for numbers of processes, and that of an all-reduce for
numbers of processes and of bytes. BUILD is the build folder. Without it the figure is drawn, and the numbers of
docs/scaling.md are printed.
"""
import argparse
import heapq
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
MEASURED = HERE / "scaling.json"
CONTACTS = (1, 2, 4, 8, 16, 32)
PILES = 200  # of each number of contacts
COPIES = 64  # of a pile in one call, so that the call itself takes little of its time
PROCESSES = (1, 2, 3, 4, 6, 8)
BYTES = (800, 8_000, 80_000, 800_000, 8_000_000)
STEP = ("--samples", "80000", "--batch-size", "65536", "--finishing-iterations", "0", "--starts", "1")  # of 16 chunks

# The extrapolation: 1000 nodes of 8 processes.
NODES, PER_NODE = 1000, 8
LATENCY, BANDWIDTH = 5e-6, 12.5e9  # s of a message, bytes/s of a node: 100 Gbit/s Ethernet
PARAMETERS = 1e5  # of a network that is trained with an all-reduce, in float32
PARAMETERS_OF_PROGRAM, CHUNK = 1e3, 4096  # of a network of train_bilevel, in float64, and its samples of a chunk
BLOCKS_PER_STEP, PILES_PER_STEP = 10_000_000, 100_000
SECONDS_OF_A_BLOCK = 15.4e-9  # docs/performance.md, 3x3 sliding blocks, forward and backward


def pile(contacts, seed):
    """A, v_free, J, b and mu of contacts between random bodies, or between them and the ground."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    uniform = lambda *size: torch.rand(*size, generator=generator, dtype=torch.float64)
    bodies = max(1, contacts // 3)
    mass = 10 ** (uniform(bodies) - 0.5)
    A = torch.diag(torch.cat([mass.repeat_interleave(3).view(-1, 3), 0.01 * mass.repeat_interleave(3).view(-1, 3)], 1).flatten())
    J = torch.zeros(3 * contacts, 6 * bodies, dtype=torch.float64)
    for k in range(contacts):
        frame = torch.linalg.qr(uniform(3, 3) - 0.5).Q
        for sign, body in zip((1, -1), torch.randperm(bodies + 1, generator=generator)[:2].tolist()):
            if body < bodies:  # else the ground
                turning = torch.linalg.cross((0.2 * (uniform(3) - 0.5)).expand(3, 3), frame)
                J[3 * k : 3 * k + 3, 6 * body : 6 * body + 6] = sign * torch.cat([frame, turning], 1)
    return A, 0.1 * (uniform(6 * bodies) - 0.5), J, torch.zeros(3 * contacts, dtype=torch.float64), 0.1 + 0.7 * uniform(contacts)


def times_of_piles(library):
    import torch

    torch.set_num_threads(1)
    torch.ops.load_library(library)
    times = {}
    for contacts in CONTACTS:
        of_size = times[contacts] = []
        for seed in range(PILES):
            arguments = [argument.expand(COPIES, *argument.shape).contiguous() for argument in pile(contacts, seed)]
            arguments[1].requires_grad_()
            each = []
            for _ in range(3):
                start = time.perf_counter()
                v = torch.ops.lcp.solve_friction(*arguments)[0]
                torch.autograd.grad(v.sum(), arguments[1])
                each.append((time.perf_counter() - start) / COPIES)
            of_size.append(min(each))
        print(f"{contacts} contacts: mean {statistics.mean(of_size):.1e} s, most {max(of_size):.1e} s", file=sys.stderr)
    return times


def reduce():
    """What each process of torchrun does: rank 0 prints the times of an all-reduce, by bytes."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    medians = []
    for count in BYTES:
        numbers = torch.ones(count // 8, dtype=torch.float64)
        each = []
        for _ in range(30):
            dist.barrier()
            start = time.perf_counter()
            dist.all_reduce(numbers)
            each.append(time.perf_counter() - start)
        medians.append(statistics.median(each))
    if dist.get_rank() == 0:
        print(json.dumps(medians))
    dist.destroy_process_group()


def torchrun(processes, *command):
    start = time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), *command],
        env={**os.environ, "OMP_NUM_THREADS": "1", "TORCHLCP_PYTHON": ""}, capture_output=True, text=True, check=True)
    return time.perf_counter() - start, result.stdout


def times_of_reductions():
    times = {}
    for count in PROCESSES:
        times[count] = json.loads(torchrun(count, __file__, "--reduce")[1])
        print(f"{count} processes: {times[count]} s", file=sys.stderr)
    return times


def times_of_steps(program):
    """Of runs with many and with few steps the difference, which has nothing of their beginnings and ends."""
    times = {}
    few, many = 200, 500
    for count in PROCESSES:
        took = {}
        for steps in (few, many):
            with tempfile.TemporaryDirectory() as folder:
                flags = (*STEP, "--iterations", str(steps), "--out", folder + "/out", "--quiet")
                took[steps] = min(torchrun(count, "--no-python", "--", program, *flags, "--overwrite")[0] for _ in range(2))
        times[count] = (took[many] - took[few]) / (many - few)
        print(f"{count} processes: {1e3 * times[count]:.2f} ms a step", file=sys.stderr)
    return times


def fitted(times, cores):
    """b and c of the time b / min(processes, cores) + c (processes - 1), by least squares."""
    counts = np.array([int(count) for count in times])
    columns = np.stack([1 / np.minimum(counts, cores), counts - 1.0], 1)
    return np.linalg.lstsq(columns, np.array(list(times.values())), rcond=None)[0]


def dealt(times, contacts, processes, by_size):
    """The time of the process that has most to do, over the mean: problems dealt at random, or the largest first, each
    to the process that has least by the mean times of the sizes."""
    if not by_size:
        sums = np.zeros(processes)
        np.add.at(sums, np.arange(len(times)) % processes, times)
        return sums.max() / sums.mean()
    expected = {size: times[contacts == size].mean() for size in np.unique(contacts)}
    loads = [(0.0, rank) for rank in range(processes)]
    sums = np.zeros(processes)
    for k in sorted(range(len(times)), key=lambda k: -expected[contacts[k]]):
        load, rank = loads[0]
        heapq.heapreplace(loads, (load + expected[contacts[k]], rank))
        sums[rank] += times[k]
    return sums.max() / sums.mean()


def all_reduce_seconds(processes):
    """A ring among the nodes, whose processes first add up what they have; no ring for one node."""
    nodes = max(1, processes // PER_NODE)
    return 2 * (nodes - 1) * (LATENCY + 4 * PARAMETERS / nodes / BANDWIDTH)


def gather_seconds(processes):
    """What the programs do: each process receives the rows of all chunks, in a ring that knows nothing of nodes."""
    if processes <= PER_NODE:
        return 0.0
    return (processes - 1) * LATENCY + PER_NODE * 8 * PARAMETERS_OF_PROGRAM * BLOCKS_PER_STEP / CHUNK / BANDWIDTH


def draw(measured):
    sys.path.insert(0, str(HERE.parents[1] / "training/figures"))
    from style import BLUE, ORANGE, plt

    figure, ((spread, steps), (reductions, extrapolated)) = plt.subplots(2, 2, figsize=(10, 7.5), constrained_layout=True)
    by_size = {int(size): np.array(x) for size, x in measured["piles"].items()}
    for size, x in by_size.items():
        microseconds = [f"{1e6 * y:.3g}" for y in (np.median(x), x.mean(), np.quantile(x, 0.99), x.max())]
        print(f"| {size} |", " | ".join(microseconds), "|")
    for share, label, color in ((0.5, "median", BLUE), (0.99, "one in a hundred takes longer", ORANGE)):
        spread.plot(list(by_size), [1e6 * np.quantile(x, share) for x in by_size.values()], marker=".", color=color, label=label)
    spread.plot(list(by_size), [1e6 * x.mean() for x in by_size.values()], ls="--", color="gray", label="mean")
    spread.set(xscale="log", yscale="log", xlabel="contacts of a pile", ylabel="solve and gradient [µs]")
    spread.legend()

    times = measured["steps"]
    b, c = fitted(times, measured["cores"])
    print("step:", ", ".join(f"{count}: {1e3 * t:.1f}" for count, t in times.items()), "ms;",
          f"{1e3 * b:.1f} / min(p, {measured['cores']}) + {1e3 * c:.1f} (p - 1) ms")
    counts = np.arange(1, max(map(int, times)) + 1)
    steps.plot(list(map(int, times)), [1e3 * t for t in times.values()], "o", color=BLUE, label="measured")
    steps.plot(counts, 1e3 * (b / np.minimum(counts, measured["cores"]) + c * (counts - 1)), color="gray", label="fitted")
    steps.set(ylim=(0, None), xlabel=f"processes, on {measured['cores']} cores", ylabel="step of train_bilevel [ms]")
    steps.legend()

    for count, times in measured["reductions"].items():
        if int(count) > 1:
            reductions.plot(BYTES, [1e6 * t for t in times], marker=".", label=f"{count} processes")
    reductions.set(xscale="log", yscale="log", xlabel="bytes of gradients", ylabel="all-reduce by Gloo, one machine [µs]")
    reductions.legend()

    random = np.random.default_rng(0)
    contacts = random.choice(list(by_size), PILES_PER_STEP)
    times = np.array([by_size[size][random.integers(len(by_size[size]))] for size in contacts])
    counts = [2**k for k in range(13)] + [NODES * PER_NODE]
    uneven = [[dealt(times, contacts, count, by_size) for count in counts] for by_size in (False, True)]
    even = [1] * len(counts)
    cases = {
        "10 million sliding blocks, all-reduce": (BLOCKS_PER_STEP * SECONDS_OF_A_BLOCK, even, all_reduce_seconds),
        "10 million sliding blocks, gathered": (BLOCKS_PER_STEP * SECONDS_OF_A_BLOCK, even, gather_seconds),
        "100 000 piles at random, all-reduce": (times.sum(), uneven[0], all_reduce_seconds),
        "100 000 piles by size, all-reduce": (times.sum(), uneven[1], all_reduce_seconds),
    }
    for label, (work, uneven, exchange) in cases.items():
        efficiency = [work / (work * u + count * exchange(count)) for u, count in zip(uneven, counts)]
        extrapolated.plot(counts, efficiency, marker=".", label=label)
        print(f"{label}: {work:.3g} s on one process; efficiency",
              ", ".join(f"{count}: {e:.2f}" for count, e in zip(counts, efficiency)))
    extrapolated.set(xscale="log", ylim=(0, 1.05), xlabel="processes, 8 of a node", ylabel="efficiency, extrapolated")
    extrapolated.legend()
    figure.savefig(HERE / "scaling.png", dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", metavar="BUILD", type=pathlib.Path, help="measure first")
    parser.add_argument("--reduce", action="store_true", help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.reduce:
        return reduce()
    if flags.run:
        MEASURED.write_text(json.dumps({
            "cores": os.cpu_count(),
            "piles": times_of_piles(flags.run / "lib/libtorchlcp.so"),
            "steps": times_of_steps(flags.run / "bin/train_bilevel"),
            "reductions": times_of_reductions(),
        }) + "\n")
    draw(json.loads(MEASURED.read_text()))


if __name__ == "__main__":
    main()
