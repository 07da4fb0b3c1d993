"""Makes one Markdown table, and figures, of what the benchmarks measured.

    python bench/report.py build/bench [--update-docs docs]

The folder has the JSON files of lcp_benchmark and of python_benchmark.py. The table goes to stdout and to results.md
there; roofline.md, contact.md, friction.md and figures/ lie beside it. --update-docs also copies all of it into
docs/performance.md and docs/figures. What was not measured is left out, and stays as it is there.
"""

import argparse
import dataclasses
import datetime
import json
import pathlib
import platform
import re
import shutil
import subprocess
import sys

PEERS = ["By hand", "Siconos", "Bullet", "qpth", "lcp-physics", "ProxSuite", "Drake"]
NONE = "–"


class Measured:
    """Everything that was measured: (group, work, who) -> {"ns": best time per problem, and counters}."""

    def __init__(self, folder):
        self.rows, self.context, self.python = {}, {}, {}  # python: the versions and what was missing
        for path in sorted(folder.glob("*.json")):
            content = json.loads(path.read_text())
            if "benchmarks" in content:
                self.context.update(content["context"])
                for run in content["benchmarks"]:
                    self._add(run)
            else:
                for key in ("versions", "missing"):
                    self.python[key] = self.python.get(key, {}) | content[key]
                for row in content["rows"]:
                    self.rows["python", row["work"], row["who"]] = row

    def _add(self, run):
        if run.get("run_type") != "iteration" or "error_occurred" in run:
            return
        name = re.sub(r"/(real_time|manual_time|iterations:\d+|repeats:\d+)", "", run["name"])
        group, work, who = name.split("/", 2)
        assert run["time_unit"] == "ns"
        row = dict(run, ns=run["real_time"] / run["problems"])
        old = self.rows.get((group, work, who))
        if old is None or row["ns"] < old["ns"]:
            self.rows[group, work, who] = row

    def ns(self, group, work, who):
        return self.rows.get((group, work, who), {}).get("ns")

    def row(self, group, work, who):
        return self.rows.get((group, work, who), {})

    def works(self, group):
        return {work for one, work, _ in self.rows if one == group}

    def missing(self, peer):
        """Why a peer measured nothing, or None where it is there."""
        if peer in ("Siconos", "Bullet"):
            return "not installed" if self.context.get(peer, "not installed") == "not installed" else None
        if peer == "By hand":
            return None
        if not self.python:
            return "not measured"
        return "not installed" if peer in self.python["missing"] else None


def time_text(ns):
    if ns is None:
        return NONE
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= scale:
            return f"{ns / scale:.3g} {unit}"
    return f"{ns:.3g} ns"


@dataclasses.dataclass
class Row:
    work: str
    reference: str = NONE  # what ours is held against
    ours: str = NONE
    ratio: float | None = None
    ratio_of: str = ""
    target: str = ""  # "<= 2.5" or ">= 3"
    extra: str = ""  # a condition beside the target
    extra_met: bool = True
    counts: dict = dataclasses.field(default_factory=dict)
    peers: dict = dataclasses.field(default_factory=dict)

    def met(self):
        if not self.target or self.ratio is None:
            return ""
        sign, bound = self.target.split()
        within = self.ratio <= float(bound) if sign == "<=" else self.ratio >= float(bound)
        return "yes" if within and self.extra_met else "no"

    def cells(self):
        ratio = NONE if self.ratio is None else f"{self.ratio_of} = **{self.ratio:.3g}**"
        target = self.target.replace("<=", "≤").replace(">=", "≥") + self.extra if self.target else NONE
        tried = self.counts.get("tried")
        solved = f"{self.counts['solved']:.0f} of {tried:.0f}" if tried else NONE
        false = f"{self.counts['false_claims']:.0f}" if tried else NONE
        return [self.work, self.reference, self.ours, ratio, target, self.met() or NONE, solved, false] + [
            self.peers.get(peer, NONE) for peer in PEERS
        ]


HEADER = ["Work", "Floor or reference", "Ours", "Ratio", "Target", "Met", "Solved", "False claims"] + PEERS


def ratio(a, b):
    return a / b if a is not None and b else None


def peer_cell(name, row):
    """A peer's time, with what it failed at."""
    text = f"{name} {time_text(row['ns'])}" if name else time_text(row["ns"])
    if "tried" in row and row["solved"] < row["tried"]:
        text += f", solved {row['solved']:.0f} of {row['tried']:.0f}"
    if row.get("false_claims"):
        text += f", **{row['false_claims']:.0f} false**"
    if "gradients_alike" in row and row["gradients_alike"] < row["tried"]:
        text += f", gradient right in {row['gradients_alike']} of {row['tried']}"
    return text


def peers_of(measured, sources, candidates):
    """{peer: cell}. sources: (group, work) pairs; candidates: the peers that can do this work at all."""
    cells = {}
    for peer in candidates:
        found = []
        for (group, work, who), row in measured.rows.items():
            if (group, work) in sources and who.split(":")[0].lower() == peer.lower():
                found.append((row["ns"], peer_cell(who.partition(": ")[2], row)))
        cells[peer] = "<br>".join(text for _, text in sorted(found)) or measured.missing(peer) or "not measured"
    return cells


def batch_rows(measured, name, title, kinds):
    group = "batch"
    copy, forward = measured.ns(group, name, "copy"), measured.ns(group, name, "forward")
    counts = measured.row(group, name, "forward")
    rows = []
    if "forward" in kinds:
        rows.append(Row(f"{title}: forward", f"copy {time_text(copy)}", time_text(forward), ratio(forward, copy),
                        "ours / copy", kinds["forward"], counts=counts))
    if "float32" in kinds:
        single = measured.ns(group, name, "forward float32")
        rows.append(Row(f"{title}: forward in float32", f"ours in float64 {time_text(forward)}", time_text(single),
                        ratio(forward, single), "float64 / float32", kinds["float32"]))
    if "shared" in kinds:
        shared = measured.ns(group, name, "forward shared")
        repeated = measured.ns(group, name, "forward repeated")
        rows.append(Row(f"{title}: forward, one shared M", f"ours, M repeated {time_text(repeated)}",
                        time_text(shared), ratio(shared, repeated), "shared / repeated", kinds["shared"]))
    if "backward" in kinds:
        both = measured.ns(group, name, "forward and backward")
        rows.append(Row(f"{title}: forward and backward", f"copy {time_text(copy)}", time_text(both),
                        ratio(both, copy), "ours / copy", kinds["backward"]))
    return rows


def best_complete(measured, work):
    """The fastest of Siconos' and Bullet's methods that solve all of it."""
    times = [
        row["ns"]
        for (group, of, who), row in measured.rows.items()
        if (group, of) == ("family", work)
        and who.split(":")[0] in ("Siconos", "Bullet")
        and row["solved"] == row["tried"]
        and not row["false_claims"]
    ]
    return min(times, default=None)


def family_row(measured, name, title, reference, target):
    ours = measured.ns("family", name, "ours")
    if ours is None:
        return []
    counts = measured.row("family", name, "ours")
    if reference == "best":
        other = best_complete(measured, name)
        text, quotient, of = f"best of Siconos, Bullet {time_text(other)}", ratio(other, ours), "best / ours"
    else:
        other = measured.ns("family", name, reference)
        text, quotient, of = f"{reference} {time_text(other)}", ratio(ours, other), f"ours / {reference}"
    candidates = ["Siconos", "Bullet"]
    if name not in ("definite_512", "banded_1000", "p_2", "p_4"):
        candidates += ["ProxSuite", "Drake"] if name.startswith("definite") else ["Drake"]
    all_solved = counts["solved"] == counts["tried"]
    return [Row(title, text, time_text(ours), quotient, of, target, ", all solved" if target else "", all_solved,
                counts, peers_of(measured, [("family", name), ("python", name)], candidates))]


def gradient_rows(measured):
    rows = []
    for name, title, candidates in (
        ("definite_3", "3x3 definite", ["By hand", "qpth", "lcp-physics", "ProxSuite"]),
        ("sliding_3", "3x3 sliding blocks", ["By hand", "lcp-physics"]),
    ):
        work = f"forward and backward, {name}"
        ours = measured.ns("python", work, "ours")
        if ours is None:
            continue
        cells = peers_of(measured, [("python", work)], candidates)
        for who, target in (("by hand", ">= 20"), ("qpth", ">= 150"), ("lcp-physics", ">= 150")):
            if who not in [peer.lower() for peer in candidates]:
                continue
            other = measured.ns("python", work, who)
            text = f"{who} {time_text(other)}" if other else f"{who}: {measured.missing(who)}"
            rows.append(Row(f"{title}, B = 8192, from Python: forward and backward", text, time_text(ours),
                            ratio(other, ours), f"{who} / ours", target, counts=measured.row("python", work, "ours"),
                            peers=cells))
            cells = {}  # said once
    return rows


def other_rows(measured):
    rows = []
    for work, title in (("single call", "one 3x3 call from Python, no autograd"),
                        ("single call, overload named", "the same, overloads named")):
        add, ours = measured.ns("python", work, "aten.add"), measured.ns("python", work, "ours")
        rows.append(Row(title, f"aten.add of two 3-vectors {time_text(add)}", time_text(ours), ratio(ours, add),
                        "ours / add", "<= 2.5"))
    for name, title in (("sliding_3", "3x3 sliding blocks, B = 65536"), ("friction_24", "friction n = 24, B = 2000")):
        one, two = measured.ns("thread", name, "1 thread"), measured.ns("thread", name, "2 threads")
        text = time_text(two) if two else "one core only"
        rows.append(Row(f"{title}: 2 threads", f"1 thread {time_text(one)}", text, ratio(two, one),
                        "2 threads / 1 thread", "<= 0.6"))
    whole, inside = measured.ns("training", "step", "whole"), measured.ns("training", "step", "inside lcp")
    rows.append(Row("training step, B = 4096: networks, M and q, solve, loss, backward, Adam",
                    f"whole step {time_text(whole)}", f"inside lcp:: {time_text(inside)}", ratio(inside, whole),
                    "lcp:: / whole", "<= 0.3", counts=measured.row("training", "step", "whole")))
    for name, title, steps, solver, targets in (
            ("sliding_block direct", "sliding blocks, direct", 1000, "lcp::solve", ("<= 3", "<= 6")),
            ("sliding_block traditional", "sliding blocks, traditional", 1000, "lcp::solve", ("<= 3", "<= 6")),
            ("sliding_block mixed", "sliding blocks, mixed", 1000, "lcp::solve", ("", "")),
            ("planar_block exact_direction", "planar blocks, exact direction", 100, "lcp::solve", ("", "")),
            ("planar_block fixed_point", "planar blocks, fixed point", 100, "lcp::solve", ("", "")),
            ("planar_block fixed_point relaxed", "planar blocks, relaxed fixed point", 100, "lcp::solve", ("", "")),
            ("point_mass stewart_trinkle", "point masses, Stewart-Trinkle", 1000, "lcp::solve", ("", "")),
            ("point_mass belbute_peres", "point masses, Belbute-Peres", 1000, "lcp::solve", ("", "")),
            ("point_mass velocity level", "point masses, velocity level", 1000, "lcp::solve", ("", "")),
            ("point_mass own step", "point masses, by lcp/step.h", 1000, "lcp::solve", ("", "")),
            ("tripod", "tripods", 50, "lcp::solve", ("", "")),
            ("compliant_particle", "particles on compliant ground", 100, "lcp::solve_contact", ("", "")),
            ("compliant_block", "blocks on compliant ground", 100, "lcp::solve_contact", ("", "")),
            ("cube", "cubes, exact cone", 200, "lcp::solve_friction", ("<= 1.5", "<= 3")),
            ("cube compliant", "cubes, compliant contact", 200, "lcp::solve_contact", ("", "")),
            ("cube polyhedral", "cubes, 4 directions of friction", 50, "lcp::solve", ("", ""))):
        for work, what, target in (("forward", "rollout", targets[0]), ("gradient", "rollout and gradient", targets[1])):
            whole, solves, batch, copy, inside = (
                measured.ns("rollout", f"{name} {work}", who)
                for who in ("whole", "step by step", "one batch", "copy", "inside lcp"))
            share = ratio(inside, whole)
            reference = NONE if share is None else (
                f"its problems by one {solver} a step {time_text(solves)}, by one for all {time_text(batch)}; a copy of "
                f"its bytes {time_text(copy)}; {100 * share:.0f} % is inside lcp::")
            rows.append(Row(f"1000 {title}, {steps} steps, 2 threads: {what}, per step and trajectory", reference,
                            time_text(whole), ratio(whole, solves), "rollout / solves", target,
                            counts=measured.row("rollout", f"{name} {work}", "whole")))
        gradient, tangent = (measured.ns("rollout", f"{name} {work}", "whole") for work in ("gradient", "tangent"))
        rows.append(Row(f"1000 {title}, {steps} steps, 2 threads: rollout and tangent, per step and trajectory",
                        f"rollout and gradient {time_text(gradient)}", time_text(tangent), ratio(tangent, gradient),
                        "tangent / gradient"))
    for n in (4, 8, 16):
        for kind, what in (("mixed", "forward"), ("sorted", "sorted, forward"),
                           ("mixed, forward and backward", "forward and backward")):
            reference = measured.ns("sizes", f"p_{n}", "all" + kind[len("mixed"):] if "backward" in kind else "all")
            ns = measured.ns("sizes", f"p_{n}", kind)
            rows.append(Row(f"P-matrices of `sizes` 1 to {n}, B = 65536: {what}", f"all of size {n} {time_text(reference)}",
                            time_text(ns), ratio(ns, reference), "sizes / all"))
    for name, title in (("sliding_3", "3x3 sliding blocks, B = 65536"), ("friction_24", "friction n = 24, B = 2000")):
        none = measured.ns("guess", name, "none")
        for kind, what in (("right", "the right guess"), ("wrong", "a wrong guess, the neighbour's")):
            guessed = measured.ns("guess", name, kind)
            rows.append(Row(f"{title}: {what}", f"no guess {time_text(none)}", time_text(guessed), ratio(guessed, none),
                            "guess / none"))
    batched = measured.row("memory", "3", "batched")
    if "resident_peak" in batched:
        rows.append(Row("3x3: resident memory of forward and backward, per LCP", f"tensors {batched['peak']:.0f} B",
                        f"{batched['resident_peak']:.0f} B", batched["resident_peak"] / batched["peak"],
                        "resident / tensors"))
    shared = measured.row("memory", "3", "shared")
    if shared:
        extra = shared["peak"] - shared["held"]
        rows.append(Row("3x3, one shared M: memory of the backward pass, per LCP", "a [B, 3, 3] temporary 72 B",
                        f"{extra:.0f} B", extra / 72, "ours / temporary", "<= 0.99"))
    return rows


def table_rows(measured):
    like = {"forward": "<= 2.5", "float32": ">= 1.5", "shared": "<= 0.7", "backward": "<= 10"}
    few = {"forward": "<= 2.5", "backward": "<= 10"}
    rows = []
    for name, title, kinds in (
        ("sliding_3", "3x3 sliding blocks", like),
        ("p_3", "3x3 P-matrices", like),
        ("p_2", "2x2 P-matrices", like),
        ("p_4", "4x4 P-matrices", like),
        ("p_6", "6x6 P-matrices", like),
        ("friction_4", "4x4 friction, 1 contact", few),
        ("friction_6", "6x6 friction, 1 contact", few),
    ):
        rows += batch_rows(measured, name, f"{title}, B = 65536", kinds)
    for name, title, reference, target in (
        ("friction_24", "friction n = 24", "LU", "<= 0.6"),
        ("definite_128", "PD n = 128", "LU", "<= 0.6"),
        ("definite_32", "PD n = 32", "best", ">= 3"),
        ("definite_512", "PD n = 512", "best", ">= 3"),
        ("banded_1000", "banded obstacle problem, n = 1000", "best", ">= 3"),
        ("sliding_3", "3x3 sliding blocks", "best", ""),
        ("p_2", "2x2 P-matrices", "best", ""),
        ("p_4", "4x4 P-matrices", "best", ""),
        ("friction_6", "friction n = 6", "best", ""),
        ("definite_3", "PD n = 3", "best", ""),
        ("definite_8", "PD n = 8", "best", ""),
    ):
        rows += family_row(measured, name, title, reference, target)
    return rows + gradient_rows(measured) + other_rows(measured)


def markdown(header, lines):
    return "\n".join(["| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *lines]]) + "\n"


def rates(measured):
    """Of one core: bytes/ns copied in memory and in cache, flops/ns of a matrix product."""

    def rate(work, who, counter):
        row = measured.row("machine", work, who)
        return row[counter] / row["ns"] if row else None

    return {
        "memory": rate("copy", "memory", "bytes_moved"),
        "cache": rate("copy", "cache", "bytes_moved"),
        "float64": rate("product", "float64", "flops"),
        "float32": rate("product", "float32", "flops"),
    }


def roofline(measured):
    """What reading, writing and one LU factorisation take at best, beside what we take."""
    rate = rates(measured)
    lines = []
    for n in orders(measured, "auto"):
        read, written = 8 * (n * n + n), 16 * n + 1
        flops = 2 / 3 * n**3
        moving, working = (read + written) / rate["memory"], flops / rate["float64"]
        ours, factors = measured.ns("order", str(n), "auto"), measured.ns("order", str(n), "LU")
        lines.append([str(n), f"{read + written}", time_text(moving), f"{flops:.3g}", time_text(working),
                      time_text(measured.ns("order", str(n), "copy")), time_text(factors), time_text(ours),
                      f"{ours / max(moving, working):.3g}"])
    return markdown(["n", "bytes", "at memory speed", "flops of LU", "at product speed", "copy, measured",
                     "LU, measured", "ours", "ours / higher floor"], lines)


def contact(measured):
    """Compliant contact: what a problem takes, beside one dense factorisation of A."""
    lines = []
    titles = {"c": "contacts: {}, n = 12", "chain": "chain of {0} bodies, n = {1}", "batch": "batch of {}, 4 contacts, n = 6"}
    works = sorted(measured.works("contact"),
                   key=lambda work: (list(titles).index(work.split("_")[0]), int(work.split("_")[1])))
    for work in works:
        kind, size = work.split("_")
        row = measured.row("contact", work, "forward")
        both, floor = (measured.ns("contact", work, who) for who in ("forward and backward", "Cholesky"))
        lines.append([titles[kind].format(size, 3 * int(size)), f"{row['iterations_mean']:.1f}",
                      f"{row['iterations_max']:.0f}", time_text(row["ns"]), time_text(both), time_text(floor),
                      f"{row['ns'] / floor:.3g}", f"{row['ns'] / floor / max(row['iterations_mean'], 1):.2g}"])
    table = markdown(["problem", "Newton steps, mean", "most", "forward", "forward and backward", "one dense Cholesky of A",
                      "forward / Cholesky", "for each step"], lines)
    return table + steps(measured, "compliant")


def steps(measured, kind):
    """A body's time step on compliant or rigid ground by ours, and by Drake."""
    lines = []
    for work in sorted({work for work in measured.works("python") if work.startswith(f"{kind} step")},
                       key=lambda work: int(work.split()[-1])):
        ours, batch, drake, air = (measured.ns("python", work, who)
                                   for who in ("ours", "ours, batch of 1000", "Drake", "Drake in the air"))
        off = measured.row("python", work, "Drake").get("off")
        lines.append([work.split()[-1], time_text(ours), time_text(batch), time_text(drake), time_text(air),
                      NONE if drake is None else f"{(drake - air) / ours:.3g}", NONE if off is None else f"{off:.1g}"])
    if not lines:
        return ""
    return "\n" + markdown(["points", "ours", "ours, one of a batch of 1000", "Drake, whole step", "Drake, in the air",
                            "(step - in the air) / ours", "distance of both velocities / velocity"], lines)


# Whose velocities are compared with those of the exact cone; the first have another law of friction.
LAWS = {"polyhedral 4": "4 directions", "polyhedral 8": "8 directions", "polyhedral 16": "16 directions",
        "compliant": "convex, almost rigid"}
EXACT = ["Siconos: NSGS", "Siconos: NSN_AC"]


def friction(measured):
    """Rigid contact: what a problem takes, beside the peers and other laws of friction."""
    kinds = {"c": "one body, {0} contacts", "bodies": "{0} bodies, 8 contacts", "stack": "{1} boxes, {0} contacts"}
    titles = {}
    for work in measured.works("friction"):
        kind, _, number = work.partition("_")
        if kind in kinds:
            titles[work] = kinds[kind].format(number, int(number) // 4).replace(" 1 contacts", " 1 contact")
    order = sorted(titles, key=lambda work: (list(kinds).index(work.split("_")[0]), int(work.split("_")[1])))
    tables = [friction_costs(measured, order, titles), friction_peers(measured, order, titles),
              friction_laws(measured, order, titles), friction_batches(measured), friction_sizes(measured)]
    where = "\n".join(machine(measured).splitlines()[:2]) + "\n"
    return "\n".join([where, *filter(None, tables)]) + steps(measured, "rigid")


def friction_costs(measured, order, titles):
    lines = []
    for work in order:
        row = measured.row("friction", work, "ours")
        both, copy, factors = (measured.ns("friction", work, who) for who in ("forward and backward", "copy", "LU"))
        lines.append([titles[work], f"{row['velocities']:.0f}", f"{row['iterations_mean']:.1f}",
                      f"{row['iterations_max']:.0f}", time_text(row["ns"]), time_text(both), time_text(copy),
                      time_text(factors), f"{row['ns'] / factors:.3g}", f"{row['slowest_ns'] / row['median_ns']:.3g}"])
    return markdown(["problem", "n", "Newton steps, mean", "most", "forward", "forward and backward",
                     "copy of the inputs", "one LU of W", "forward / LU", "slowest / median, one by one"], lines)


def friction_peers(measured, order, titles):
    peers = sorted({who for group, _, who in measured.rows if group == "friction" and who.startswith("Siconos")})

    def cell(work, who):
        row = measured.row("friction", work, who)
        if not row:
            return NONE
        false = f", **{row['false_claims']:.0f} false**" if row["false_claims"] else ""
        return (f"{time_text(row['ns'])}, median {time_text(row['median_ns'])}, "
                f"solved {row['solved']:.0f} of {row['tried']:.0f}{false}")

    lines = [[titles[work], cell(work, "ours"), time_text(measured.ns("friction", work, "W and q")),
              *(cell(work, peer) for peer in peers)] for work in order]
    return markdown(["problem", "ours", "of which W and q", *peers], lines)


def friction_laws(measured, order, titles):
    lines = []
    for work in order:
        line = [titles[work], f"{measured.row('friction', work, 'ours')['unique']:.0f}"]
        for who in (*LAWS, *EXACT):
            row = measured.row("friction", work, who)
            if not row.get("compared"):
                line.append(NONE)
                continue
            cell = " / ".join(f"{row[f'error_{share}']:.2g}" for share in ("median", "ninety", "largest"))
            if who in LAWS:
                failed = row["tried"] - row["claimed"]
                cell = f"{time_text(row['ns'])}; {cell}" + (f"; {failed:.0f} not solved" if failed else "")
            line.append(cell)
        lines.append(line)
    return ("Time, and the errors of velocities: median / 90 % are below / largest.\n\n" +
            markdown(["problem", "compared", *LAWS.values(), *EXACT], lines))


def friction_batches(measured):
    """Large batches of one body with 1 and with 4 contacts, and what they may cost."""
    lines = []
    for contacts, most in ((1, 1000), (4, 10_000)):
        works = {work for work in measured.works("friction") if work.startswith(f"batch{contacts}_")}
        for work in sorted(works, key=lambda work: int(work.split("_")[1])):
            forward, both, copy = (measured.ns("friction", work, who)
                                   for who in ("forward", "forward and backward", "copy"))
            count = int(work.split("_")[1])
            target = [f"≤ {time_text(most)}", "yes" if forward <= most else "no"] if count > 1 else [NONE, NONE]
            lines.append([f"batch of {count}, {contacts} contact{'s' if contacts > 1 else ''}", time_text(copy),
                          time_text(forward), *target, time_text(both)])
    header = ["problem", "copy of the inputs", "forward", "target", "met", "forward and backward"]
    return markdown(header, lines) if lines else ""


def friction_sizes(measured):
    """Batches of unequal sizes, beside the same problems apart and beside full batches."""
    lines = []
    for work in sorted(work for work in measured.works("friction") if work.startswith("sizes_")):
        mixed = measured.ns("friction", work, "mixed")
        for who, title in (("mixed", "`sizes`, in mixed order"), ("sorted", "`sizes`, sorted"),
                           ("apart", "a batch for each number of contacts"),
                           ("padded", "all padded to 8 contacts, without `sizes`"),
                           ("full", "as many bodies with 8 contacts")):
            ns = measured.ns("friction", work, who)
            both = measured.ns("friction", work, f"{who}, forward and backward")
            lines.append([title, time_text(ns), NONE if ns is None else f"{ns / mixed:.3g}", time_text(both)])
    header = ["bodies with 1 to 8 contacts", "forward", "/ mixed", "forward and backward"]
    return markdown(header, lines) if lines else ""


def orders(measured, who):
    return sorted(int(work) for group, work, one in measured.rows if group == "order" and one == who)


def command(*words):
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def machine(measured):
    cpu = dict(re.findall(r"^\s*([^:\n]+):\s+(.+)$", command("lscpu"), re.MULTILINE))
    release = pathlib.Path("/etc/os-release").read_text()
    system = re.search(r'^PRETTY_NAME="?([^"\n]*)', release, re.MULTILINE)
    memory = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    caches = ", ".join(f"{name} {cpu[key]}" for name, key in (("L1d", "L1d cache"), ("L2", "L2 cache"),
                                                             ("L3", "L3 cache")) if key in cpu)
    rate = rates(measured)
    context, versions = measured.context, measured.python.get("versions", {})
    commit = command("git", "describe", "--always", "--dirty")
    linux = ".".join(platform.release().split(".")[:2])
    lines = [
        f"- {datetime.date.today().isoformat()}, TorchLCP {context.get('torchlcp', '')} at {commit}",
        f"- {cpu.get('Model name', platform.processor())} (family {cpu.get('CPU family', '?')}, model "
        f"{cpu.get('Model', '?')}), {cpu.get('CPU(s)', '?')} cores, {caches}, "
        f"{int(memory.group(1)) / 2**20:.0f} GiB of memory",
        f"- {system.group(1) if system else 'unknown'}, Linux {linux}, {context.get('compiler', '')}, "
        f"LibTorch {context.get('libtorch', '')} ({context.get('vectors', '')})",
        "- peers: Siconos " + context.get("Siconos", NONE) + "; Bullet " + context.get("Bullet", NONE) + "; "
        + "; ".join(f"{name} {versions.get(key, 'not installed')}"
                    for name, key in (("qpth", "qpth"), ("ProxSuite", "proxsuite"), ("Drake", "drake")))
        + "; lcp-physics " + (measured.missing("lcp-physics") or "a checkout"),
    ]
    if all(rate.values()):
        lines.append(f"- one core copies {rate['memory']:.1f} GB/s in memory and {rate['cache']:.0f} GB/s in cache "
                     f"(read and written), and multiplies matrices at {rate['float64']:.0f} GFlop/s in float64, "
                     f"{rate['float32']:.0f} in float32")
    return "\n".join(lines) + "\n"


def put(text, mark, content):
    """Replaces what stands between the marks of that name."""
    begin, end = f"<!-- {mark} -->", f"<!-- end of {mark} -->"
    if begin not in text or end not in text:
        sys.exit(f"docs/performance.md lacks {begin} or {end}")
    return text[: text.index(begin) + len(begin)] + "\n\n" + content + "\n" + text[text.index(end) :]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--update-docs", type=pathlib.Path, metavar="DOCS")
    arguments = parser.parse_args()
    measured = Measured(arguments.folder)
    sections = {}  # by their marks in docs/performance.md
    if measured.works("batch"):
        rows = table_rows(measured)
        sections["results"] = machine(measured) + "\n" + markdown(HEADER, [row.cells() for row in rows])
        met = [row.met() for row in rows]
        print(sections["results"])
        print(f"{met.count('yes')} targets met, {met.count('no')} missed")
    if measured.works("order") and measured.works("machine"):
        sections["roofline"] = roofline(measured)
    if measured.works("contact"):
        sections["contact"] = contact(measured)
    if measured.works("friction"):
        sections["friction"] = friction(measured)
    made = []
    for mark, content in sections.items():
        made.append(arguments.folder / f"{mark}.md")
        made[-1].write_text(content)
    for peer, reason in measured.python.get("missing", {}).items():
        print(f"{peer}: not installed ({reason})")
    drawn = []
    try:
        import figures

        drawn = figures.draw(measured, arguments.folder / "figures")
    except (ImportError, SystemExit) as error:  # style.py exits where matplotlib is missing
        print(f"no figures: {error}", file=sys.stderr)
    print("made: " + " ".join(map(str, made + drawn)))
    if arguments.update_docs:
        page = arguments.update_docs / "performance.md"
        text = page.read_text()
        for mark, content in sections.items():
            text = put(text, mark, content)
        page.write_text(text)
        for path in drawn:
            shutil.copy(path, arguments.update_docs / "figures" / path.name)


if __name__ == "__main__":
    main()
