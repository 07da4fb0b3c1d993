"""What a GPU makes of many small problems, beside a copy of the same bytes, the CPU and torch by hand.

    python bench/cuda.py --library build/lib/libtorchlcp.so [--most 10000000] [--out FILE.json]

Times are wall times with the GPU idle before and after, the median of several. The bytes of `copy` are those that the
work must read and write at least once.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "python"))
import cuda_problems

KINDS = [cuda_problems.positive, cuda_problems.anything, cuda_problems.degenerate]


def seconds(work, repeats=7):
    work()
    found = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def copy_of(bytes_moved):
    source = torch.randint(0, 255, (bytes_moved // 2,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def least_bytes(count, n, size, backward):
    """Forward: M, q; z, w, status. With backward: the basis is written and read, M, z and g_z are read again, and the
    gradients of M and q are written."""
    forward = (n * n + 3 * n) * size + 1
    return count * (forward + (2 * n + (2 * n * n + 3 * n) * size if backward else 0))


def bases_by_hand(M, q):
    """All complementary bases of n = 3, one torch.linalg.solve for all."""
    bits = torch.arange(8, device=M.device)
    basic = (bits.unsqueeze(-1) >> torch.arange(3, device=M.device) & 1).bool()
    eye = torch.eye(3, dtype=M.dtype, device=M.device)
    systems = torch.where(basic.unsqueeze(1), -M.unsqueeze(1), eye)
    x = torch.linalg.solve_ex(systems, q.unsqueeze(1).expand(-1, 8, -1))[0]
    right = (x >= 0).all(-1)
    first = right.to(torch.int8).argmax(-1)
    chosen = x.gather(1, first.view(-1, 1, 1).expand(-1, 1, 3)).squeeze(1)
    return torch.where(basic[first], chosen, 0), torch.where(basic[first], 0, chosen)


def measure(name, M, q, cpu_count, rows):
    lcp = torch.ops.lcp
    count, n = q.shape
    M_gpu, q_gpu = M.cuda(), q.cuda()
    g = torch.randn_like(q_gpu)
    cpu_M, cpu_q = M[:cpu_count], q[:cpu_count]

    def forward(M, q):
        return lcp.solve(M, q)

    def backward(M, q, g):
        M, q = M.detach().requires_grad_(), q.detach().requires_grad_()
        z, _, _ = lcp.solve(M, q)
        return torch.autograd.grad(z, (M, q), g[: len(q)])

    g_cpu = g[:cpu_count].cpu()
    for what, on_gpu, on_cpu in (
        ("forward", lambda: forward(M_gpu, q_gpu), lambda: forward(cpu_M, cpu_q)),
        ("forward and backward", lambda: backward(M_gpu, q_gpu, g), lambda: backward(cpu_M, cpu_q, g_cpu)),
    ):
        copied = least_bytes(count, n, q.element_size(), what != "forward")
        gpu, copy, cpu = seconds(on_gpu), seconds(copy_of(copied)), seconds(on_cpu, 3) / len(cpu_q) * count
        row = {
            "problems": name,
            "dtype": str(q.dtype),
            "count": count,
            "what": what,
            "seconds": gpu,
            "of_copy": copy / gpu,
            "times_cpu": cpu / gpu,
            "unsolved": int((lcp.solve(M_gpu, q_gpu)[2] != 0).sum()),
            "terabytes_per_second_of_copy": copied / copy / 1e12,
        }
        rows.append(row)
        print(
            f"{name:10} {row['dtype']:14} {count:9} {what:21} {1e3 * gpu:9.3f} ms  {gpu / count * 1e9:8.3f} ns each  "
            f"{row['of_copy']:6.1%} of the copy ({row['terabytes_per_second_of_copy']:.2f} TB/s)  "
            f"{row['times_cpu']:7.1f} x CPU  {row['unsolved']} unsolved",
            flush=True,
        )


def bytes_of_contacts(inputs, results, backward):
    """Forward: the problem, v, gamma, u, a status and a number of iterations. With backward: A, J, mu, v, gamma and u are
    read again with the gradients of the last three, and those of the problem are written."""
    size = lambda *x: sum(one.numel() * one.element_size() for one in x)
    A, v_free, J, b, mu = (inputs[k] for k in (0, 1, 2, 3, -1))
    points = size(results[0], results[1], results[1])
    forward = size(*inputs) + points + 9 * len(A)
    return forward + (size(A, J, mu) + 2 * points + size(*inputs) if backward else 0)


def measure_contacts(name, solve, inputs, cpu_count, rows):
    """`inputs` on the CPU; the CPU solves the first `cpu_count`."""
    count, gpu, cpu = len(inputs[0]), [x.cuda() for x in inputs], [x[:cpu_count] for x in inputs]
    results = solve(*gpu)

    def backward(inputs, g):
        inputs = [x.detach().requires_grad_() for x in inputs]
        return torch.autograd.grad(solve(*inputs)[0], inputs, g)

    g = torch.randn_like(results[0])
    g_cpu = g[:cpu_count].cpu()
    for what, on_gpu, on_cpu in (
        ("forward", lambda: solve(*gpu), lambda: solve(*cpu)),
        ("forward and backward", lambda: backward(gpu, g), lambda: backward(cpu, g_cpu)),
    ):
        copied = bytes_of_contacts(gpu, results, what != "forward")
        taken, copy, by_cpu = seconds(on_gpu), seconds(copy_of(copied)), seconds(on_cpu, 3) / len(cpu[0]) * count
        row = {
            "problems": name,
            "dtype": str(gpu[0].dtype),
            "count": count,
            "what": what,
            "seconds": taken,
            "of_copy": copy / taken,
            "times_cpu": by_cpu / taken,
            "unsolved": int((results[2] != 0).sum()),
        }
        rows.append(row)
        print(
            f"{name:24} {row['dtype']:14} {count:8} {what:21} {1e3 * taken:9.3f} ms  {row['of_copy']:6.1%} of the copy  "
            f"{row['times_cpu']:7.1f} x CPU  {row['unsolved']} unsolved",
            flush=True,
        )


def compare_contacts(name, solve, batches, rows):
    """Statuses of the GPU and the CPU, and how many velocities differ by more than 1e-6."""
    compared = differ = other = 0
    for inputs in batches:
        v, _, status, _ = solve(*inputs)
        v_gpu, _, status_gpu, _ = solve(*(x.cuda() for x in inputs))
        differ += int((status_gpu.cpu() != status).sum())
        other += int(((v_gpu.cpu() - v).abs().amax(-1) > 1e-6).logical_and(status == 0).sum())
        compared += len(v)
    rows.append({"problems": name, "compared": compared, "statuses_that_differ": differ, "other_velocities": other})
    print(f"{name}: {compared} statuses compared, {differ} differ; {other} other velocities", flush=True)


def contacts(rows, count):
    friction, compliant = torch.ops.lcp.solve_friction, torch.ops.lcp.solve_contact
    bodies, soft = cuda_problems.bodies, cuda_problems.compliant
    for size in (1000, 100_000):
        for c, number in ((1, 1), (4, 1), (8, 2)):
            measure_contacts(f"friction, c = {c}, n = {6 * number}", friction, bodies(size, c, number), 2000, rows)
        measure_contacts("friction, 4 redundant", friction, bodies(size, 4, gaps=False), 2000, rows)
        measure_contacts("compliant, c = 4, n = 6", compliant, soft(size, 4), 2000, rows)
    if not count:
        return
    torch.set_num_threads(os.cpu_count())
    shapes = [(c, number) for c in range(1, 11) for number in (1, 2, 5)]
    size = count // (len(shapes) * 4)
    types = (torch.double, torch.float)
    cast = lambda inputs, dtype: [x.to(dtype) for x in inputs]
    compare_contacts(
        "friction",
        friction,
        (cast(bodies(size, c, k, gaps), t) for c, k in shapes for gaps in {True, k > 1} for t in types),
        rows,
    )
    compare_contacts("compliant", compliant, (cast(soft(size, c, k), t) for c, k in shapes for t in types), rows)


def by_hand(M, q, rows):
    M, q = M.cuda(), q.cuda()
    ours, hand = seconds(lambda: torch.ops.lcp.solve(M, q)), seconds(lambda: bases_by_hand(M, q))
    system = seconds(lambda: torch.linalg.solve_ex(M, q))
    rows.append({"problems": "by hand", "count": len(q), "seconds": hand, "ours": ours, "linalg_solve": system})
    print(f"{len(q)} problems by hand {hand / ours:.1f} x, torch.linalg.solve of M alone {system / ours:.1f} x our time")


def compare_statuses(name, problems, rows):
    """Statuses and bits of the GPU and the CPU for batches (M, q): no status is expected to differ."""
    compared = differ = bits = 0
    for M, q in problems:
        z, _, status = torch.ops.lcp.solve(M, q)
        z_gpu, _, status_gpu = torch.ops.lcp.solve(M.cuda(), q.cuda())
        differ += int((status_gpu.cpu() != status).sum())
        bits += int((z_gpu.cpu() != z).any(-1).logical_and(status == 0).sum())
        compared += len(q)
    rows.append({"problems": name, "compared": compared, "statuses_that_differ": differ, "solutions_with_other_bits": bits})
    print(f"{name}: {compared} statuses compared, {differ} differ; {bits} solutions have other bits", flush=True)


def small_problems(count):
    while count > 0:
        seed = count
        for kind in KINDS:
            for n in (1, 2, 3, 4):
                size = min(count, 200_000)
                if size == 0:
                    return
                yield kind(size, n, seed)
                count -= size


def larger_problems(n, count):
    for kind in KINDS:
        for dtype in (torch.double, torch.float):
            yield tuple(x.to(dtype) for x in kind(count, n))


def complementarity(rows, most, statuses):
    for dtype in (torch.double, torch.float):
        count = 1000
        while count <= most:
            M, q = (x.to(dtype) for x in cuda_problems.block(count))
            measure("block", M, q, min(count, 1_000_000), rows)
            count *= 10 if count < 100_000 else 100
    for count in (1000, 100_000):
        M, q = cuda_problems.friction(count)
        measure("friction", M, q, min(count, 4000), rows)
    by_hand(*cuda_problems.positive(100_000, 3), rows)
    if statuses:
        torch.set_num_threads(os.cpu_count())
        compare_statuses("n = 1 to 4", small_problems(statuses), rows)
        for n, count in ((5, 200_000), (6, 200_000), (8, 50_000), (10, 20_000), (16, 1000), (24, 400), (32, 200)):
            compare_statuses(f"n = {n}", larger_problems(n, count), rows)
        compare_statuses("friction", [cuda_problems.friction(200_000)], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--most", type=int, default=10_000_000, help="the largest batch of 3 x 3 problems")
    parser.add_argument("--statuses", type=int, default=10_000_000, help="how many of n <= 4 are compared")
    parser.add_argument("--contacts", type=int, default=2_000_000, help="how many statuses of contact are compared")
    parser.add_argument("--only-contacts", action="store_true", help="contact and friction alone")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU")
    parser.add_argument("--out", help="a file for the rows as JSON")
    arguments = parser.parse_args()
    torch.ops.load_library(arguments.library)
    torch.set_num_threads(arguments.threads)
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    rows = []
    if not arguments.only_contacts:
        complementarity(rows, arguments.most, arguments.statuses)
        torch.set_num_threads(arguments.threads)
    contacts(rows, arguments.contacts)
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
