"""What can only be measured from Python: a single call, LCPs by hand in torch, and the Python peers.

    python bench/python_benchmark.py --library build/lib/libtorchlcp.so --problems DIR --out FILE.json
    python bench/python_benchmark.py --library build/lib/libtorchlcp.so --friction --out FILE.json

DIR is what `lcp_benchmark --problems=DIR` writes. --friction measures contact with friction, and nothing else.
Alternatives take turns, and the best of all rounds counts, so that noise hits them alike. A peer that is missing is
reported with the reason.
"""

import argparse
import contextlib
import csv
import importlib.metadata
import io
import json
import os
import pathlib
import sys
import time

import torch

TOLERANCE = 1e-9  # r(z) <= TOLERANCE max|q|: the check of the C++ benchmarks


def read_problems(folder):
    sets = {}
    with open(folder / "index.csv", newline="") as stream:
        for row in csv.DictReader(stream):
            count, n = int(row["count"]), int(row["n"])
            path = str(folder / (row["name"] + ".bin"))
            numbers = torch.from_file(path, size=count * n * (n + 1), dtype=torch.double).clone()
            sets[row["name"]] = (numbers[: count * n * n].view(count, n, n), numbers[count * n * n :].view(count, n))
    return sets


def check(M, q, z, claims=None):
    """Counts solved problems and false claims; a solver that says nothing claims every answer."""
    w = (M @ z.unsqueeze(-1)).squeeze(-1) + q
    right = torch.minimum(z, w).abs().amax(-1) <= TOLERANCE * q.abs().amax(-1)
    if claims is None:
        claims = torch.ones_like(right)
    solved = int((claims & right).sum())
    return {"tried": len(q), "solved": solved, "false_claims": int(claims.sum()) - solved}


class Results:
    def __init__(self, rounds):
        self.rounds = rounds
        self.rows = []
        self.missing = {}

    def compare(self, work, problems, alternatives, seconds=0.1):
        """Times {who: callable} in turns and adds a row for each."""
        repeats = {}
        for who, call in alternatives.items():
            call()
            start = time.perf_counter()
            call()
            repeats[who] = max(1, int(seconds / (time.perf_counter() - start + 1e-9)))
        best = dict.fromkeys(alternatives, float("inf"))
        for _ in range(self.rounds):
            for who, call in alternatives.items():
                start = time.perf_counter()
                for _ in range(repeats[who]):
                    call()
                best[who] = min(best[who], (time.perf_counter() - start) / repeats[who])
        for who, elapsed in best.items():
            self.rows.append({"work": work, "who": who, "ns": elapsed / problems * 1e9})

    def add_counts(self, work, who, counts):
        for row in self.rows:
            if (row["work"], row["who"]) == (work, who):
                row.update(counts)


def single_call(results, sets):
    """One 3x3 LCP without autograd, beside the sum of two vectors of length 3."""
    M, q = (x[0] for x in sets["sliding_3"])
    a, b = torch.rand(3, dtype=torch.double), torch.rand(3, dtype=torch.double)
    solve, add = torch.ops.lcp.solve, torch.ops.aten.add
    with torch.no_grad():
        results.compare("single call", 1, {"ours": lambda: solve(M, q), "aten.add": lambda: add(a, b)})
        solve, add = torch.ops.lcp.solve.default, torch.ops.aten.add.Tensor
        results.compare("single call, overload named", 1, {"ours": lambda: solve(M, q), "aten.add": lambda: add(a, b)})


def by_hand(M, q):
    """What one writes without a solver: choose the basis by enumeration without gradients, then one linear solve."""
    n = q.shape[-1]
    identity = torch.eye(n, dtype=q.dtype)
    with torch.no_grad():
        active = (torch.arange(2**n).unsqueeze(-1) >> torch.arange(n)) % 2 == 1  # [2^n, n]
        bases = torch.where(active[:, None, None, :], -M, identity)  # [2^n, B, n, n]: w - M z = q
        values, _ = torch.linalg.solve_ex(bases, q.expand(2**n, *q.shape))
        # The basis whose smallest value is the largest; a singular one has none.
        chosen = values.amin(-1).nan_to_num(nan=-float("inf"), neginf=-float("inf")).argmax(0)
        active = active[chosen]
    matrix = torch.where(active.unsqueeze(-1) & active.unsqueeze(-2), M, identity)
    return -torch.linalg.solve(matrix, torch.where(active, q, 0.0))


def qpth_solver():
    from qpth.qp import QPFunction

    def solve(M, q):
        n = q.shape[-1]
        G, h, empty = -torch.eye(n, dtype=q.dtype), q.new_zeros(n), torch.tensor([])
        return QPFunction(verbose=-1, check_Q_spd=False)(M, q, G, h, empty, empty)

    return solve


def proxsuite_solver():
    from proxsuite.torch.qplayer import QPFunction

    def solve(M, q):
        n = q.shape[-1]
        empty = torch.tensor([], dtype=q.dtype)
        low, high = torch.zeros(n, dtype=q.dtype), torch.full((n,), 1e20, dtype=q.dtype)
        return QPFunction(eps=1e-10)(M, q, empty, empty, torch.eye(n, dtype=q.dtype), low, high)[0]

    return solve


def lcp_physics_solver():
    """The interior-point engine of lcp-physics from a checkout, in today's torch.

    Its autograd.Function and its calls of torch are of torch 1.0. What torch has no more is put in their place:
    btrifact and btrisolve, masks of bytes, the Function. The unpacking of pivots, which it does in a Python loop and
    needs for equations only, is left out, in its favour.
    """
    checkout = os.environ.get("LCP_PHYSICS")
    if not checkout:
        raise ImportError("LCP_PHYSICS names no checkout of locuslab/lcp-physics")
    sys.path.insert(0, checkout)
    torch.Tensor.btrifact = lambda A, pivot=True: torch.linalg.lu_factor(A)
    torch.Tensor.btrisolve = lambda b, LU, pivots: (
        torch.linalg.lu_solve(LU, pivots, b)
        if b.dim() == LU.dim()
        else torch.linalg.lu_solve(LU, pivots, b.unsqueeze(-1)).squeeze(-1)
    )
    from lcp_physics.lcp.solvers import pdipm

    def factor_kkt(S_LU, R, d):
        S_LU[0], S_LU[1] = torch.linalg.lu_factor(R + torch.diag_embed(1 / d))

    pdipm.factor_kkt = factor_kkt

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, M, q):
            count, n = q.shape
            # x + G'z = 0 with G = -I makes x = z; s = h - G x + F z is w for h = q and F = M - I.
            identity = torch.eye(n, dtype=q.dtype).expand(count, n, n)
            Q, p, G, F = identity.contiguous(), torch.zeros_like(q), -identity, M - identity
            A, b = q.new_zeros(0), q.new_zeros(0)
            Q_LU, S_LU, R = pdipm.pre_factor_kkt(Q, G, F, A)
            x, _, z, s = pdipm.forward(Q, p, G, q, A, b, F, Q_LU, S_LU, R, max_iter=20)
            ctx.save_for_backward(z, s, G)
            ctx.factors = Q_LU, S_LU, R, A
            return x

        @staticmethod
        def backward(ctx, gradient):
            z, s, G = ctx.saved_tensors
            Q_LU, S_LU, R, A = ctx.factors
            d = z / s
            pdipm.factor_kkt(S_LU, R, d)
            zero = torch.zeros_like(z)
            _, _, dz, _ = pdipm.solve_kkt(Q_LU, d, G, A, S_LU, gradient, zero, zero, None)
            return -dz.unsqueeze(-1) * z.unsqueeze(-2), -dz

    return Function.apply


def ours(M, q):
    return torch.ops.lcp.solve(M, q)[0]


def gradients(solve, M, q):
    M, q = M.clone().requires_grad_(), q.clone().requires_grad_()
    ones = torch.ones_like(q)

    def call():
        return torch.autograd.grad(solve(M, q), (M, q), ones)

    return call


def forward_and_backward(results, sets, quick):
    """Batches of 3x3, gradients of M and q: whoever solves LCPs, or quadratic programs, differentiably."""
    solvers = {"ours": ours, "by hand": by_hand}
    for name, make in {"qpth": qpth_solver, "ProxSuite": proxsuite_solver, "lcp-physics": lcp_physics_solver}.items():
        try:
            solvers[name] = make()
        except ImportError as error:
            results.missing[name] = str(error).splitlines()[0]
    for kind in ("definite_3",) if quick else ("definite_3", "sliding_3"):
        M, q = sets[kind]
        work = f"forward and backward, {kind}"
        calls, checked, reference = {}, {}, gradients(ours, M, q)()
        for who, solve in solvers.items():
            if kind != "definite_3" and who in ("qpth", "ProxSuite"):
                continue  # quadratic programs: M symmetric positive definite
            call = gradients(solve, M, q)
            with contextlib.redirect_stdout(io.StringIO()):
                gradient = call()
                z = solve(M, q).detach()
            checked[who] = check(M, q, z.double(), ours_claims(M, q) if who == "ours" else None)
            checked[who]["gradients_alike"] = alike(gradient, reference, symmetric=who in ("qpth", "ProxSuite"))
            calls[who] = call
        with contextlib.redirect_stdout(io.StringIO()):
            results.compare(work, len(q), calls)
        for who, counts in checked.items():
            results.add_counts(work, who, counts)


def alike(gradients, reference, symmetric):
    """Of how many problems both gradients are near ours; a quadratic program has that of the symmetric part."""
    if symmetric:
        reference = ((reference[0] + reference[0].mT) / 2, reference[1])
    near = [
        (a - b).flatten(1).abs().amax(-1) <= 1e-3 * (1 + b.flatten(1).abs().amax(-1))
        for a, b in zip(gradients, reference)
    ]
    return int((near[0] & near[1]).sum())


def ours_claims(M, q):
    return torch.ops.lcp.solve(M, q)[2] == 0


def one_by_one(results, sets, quick):
    """Solvers that take one problem at a time, its set-up not timed."""
    kinds = ["friction_24", "definite_32"]
    if not quick:
        kinds += ["sliding_3", "friction_6", "definite_3", "definite_8", "definite_128"]
    for kind in kinds:
        M, q = (x[:200] for x in sets[kind])
        calls, answers = {"ours": lambda: ours(M, q)}, {"ours": lambda: (ours(M, q), ours_claims(M, q))}
        for peer, make in {"Drake": drake_calls, "ProxSuite": proxsuite_calls}.items():
            try:
                for who, (call, answer) in make(M, q, symmetric=kind.startswith("definite")).items():
                    calls[who], answers[who] = call, answer
            except ImportError as error:
                results.missing[peer] = str(error).splitlines()[0]
        results.compare(kind, len(q), calls, seconds=0.05)
        for who, answer in answers.items():
            results.add_counts(kind, who, check(M, q, *answer()))


def drake_calls(M, q, symmetric):
    from pydrake.solvers import MathematicalProgram, MobyLcpSolver, UnrevisedLemkeSolver

    programs = []
    for matrix, vector in zip(M.numpy(), q.numpy()):
        program = MathematicalProgram()
        unknowns = program.NewContinuousVariables(len(vector))
        program.AddLinearComplementarityConstraint(matrix, vector, unknowns)
        programs.append(program)

    def of(solver):
        def call():
            return [solver.Solve(program) for program in programs]

        def answer():
            found = call()
            z = torch.tensor([result.get_x_val().tolist() for result in found], dtype=torch.double)
            return z, torch.tensor([result.is_success() for result in found])

        return call, answer

    return {"Drake: Lemke": of(UnrevisedLemkeSolver()), "Drake: Moby": of(MobyLcpSolver())}


def proxsuite_calls(M, q, symmetric):
    import numpy
    from proxsuite import proxqp

    if not symmetric:
        return {}
    n = q.shape[-1]

    def programs():
        made = []
        for matrix, vector in zip(M.numpy(), q.numpy()):
            qp = proxqp.dense.QP(n, 0, n)
            qp.settings.eps_abs = 1e-10
            qp.settings.initial_guess = proxqp.InitialGuess.NO_INITIAL_GUESS
            qp.init(matrix, vector, None, None, numpy.eye(n), numpy.zeros(n), numpy.full(n, 1e20))
            made.append(qp)
        return made

    made = programs()

    def call():
        for qp in made:
            qp.solve()

    def answer():
        call()
        claims = [qp.results.info.status == proxqp.PROXQP_SOLVED for qp in made]
        return torch.tensor([qp.results.x.tolist() for qp in made], dtype=torch.double), torch.tensor(claims)

    return {"ProxSuite": (call, answer)}


# Of the steps of a cube on points, in SI units.
STEP, MASS, SIDE, RADIUS, DEPTH, STIFFNESS, DISSIPATION, MU = 0.01, 1.0, 0.2, 1e-3, 1e-4, 1e4, 0.02, 0.5
RIGID = 1e12  # a stiffness that Drake lowers to what it considers as almost rigid


def compliant_step(results):
    """A time step of a cube on 1, 4 and 12 points of compliant ground: lcp::solve_contact, and Drake's, which is SAP.

    Drake's step also finds the contacts and makes the problem; what a step without contact takes is measured, too. Both
    begin at the velocity before the step.
    """
    for contacts in (1, 4, 12):
        work = f"compliant step, {contacts}"
        position, velocity, arguments = body_on_points(contacts)
        batch = [x.expand(1000, *x.shape).contiguous() for x in (*arguments, velocity)]
        solve = torch.ops.lcp.solve_contact

        def one():
            return solve(*arguments, guess=velocity)[0]

        drakes = drake_steps(results, contacts, position, velocity, STIFFNESS, DISSIPATION)
        with torch.no_grad():
            results.compare(work, 1000, {"ours, batch of 1000": lambda: solve(*batch[:-1], guess=batch[-1])})
            compare_steps(results, work, one, drakes)


def rigid_step(results):
    """The same step on rigid ground: lcp::solve_friction, and Drake's SAP with almost rigid contact."""
    for contacts in (1, 4, 12, 30, 60):
        work = f"rigid step, {contacts}"
        position, velocity, (A, v_free, J, _, _, mu) = body_on_points(contacts)
        b = torch.tensor([0, 0, -DEPTH / STEP], dtype=torch.double).repeat(contacts)
        batch = [x.expand(1000, *x.shape).contiguous() for x in (A, v_free, J, b, mu)]
        solve = torch.ops.lcp.solve_friction

        def one():
            return solve(A, v_free, J, b, mu)[0]

        drakes = drake_steps(results, contacts, position, velocity, RIGID, 0.0)
        with torch.no_grad():
            results.compare(work, 1000, {"ours, batch of 1000": lambda: solve(*batch)})
            compare_steps(results, work, one, drakes)


def drake_steps(results, contacts, position, velocity, stiffness, dissipation):
    """Drake's step, and the same in the air; nothing where Drake is missing."""
    above = position + position.new_tensor([0, 0, 1.0])
    try:
        return {
            "Drake": drake_step(contacts, position, velocity, stiffness, dissipation),
            "Drake in the air": drake_step(contacts, above, velocity, stiffness, dissipation),
        }
    except ImportError as error:
        results.missing["Drake"] = str(error).splitlines()[0]
        return {}


def compare_steps(results, work, one, drakes):
    """Times all steps, and measures how far the velocity after Drake's is from ours."""
    results.compare(work, 1, {"ours": one, **drakes})
    if drakes:
        off = torch.tensor(drakes["Drake"]()) - one()
        results.add_counts(work, "Drake", {"off": (off.norm() / one().norm()).item()})


def points_below(contacts):
    angles = 2 * torch.pi * (torch.arange(contacts, dtype=torch.double) + 0.1) / contacts
    return SIDE / 2 * torch.stack([angles.cos(), angles.sin(), -torch.ones_like(angles)], -1)  # [c, 3]


def body_on_points(contacts):
    """Its position, its velocity (omega, v) before the step, and the arguments of solve_contact for the step."""
    lcp, double = torch.ops.lcp, torch.double
    position = torch.tensor([0, 0, SIDE / 2 + RADIUS - DEPTH], dtype=double)
    velocity = torch.tensor([0.5, -0.3, 1.0, 0.4, 0.2, -0.3], dtype=double)
    A = torch.diag(torch.tensor(3 * [MASS * SIDE**2 / 6] + 3 * [MASS], dtype=double))
    v_free = velocity - STEP * 9.81 * torch.eye(6, dtype=double)[5]
    arms = points_below(contacts) + position
    arms[:, 2] = -DEPTH / 2  # between both surfaces, which are equally stiff
    arms -= position
    across = torch.linalg.cross(arms.unsqueeze(1), torch.eye(3, dtype=double).unsqueeze(0))  # rows: arm x (x, y, z)
    J = torch.cat([across, torch.eye(3, dtype=double).expand(contacts, 3, 3)], -1).flatten(0, 1)
    blocks = torch.stack([rows @ torch.linalg.inv(A) @ rows.mT for rows in J.unflatten(0, (contacts, 3))])
    gap, stiffness, dissipation, mu = (torch.full((contacts,), x, dtype=double)
                                       for x in (-DEPTH, STIFFNESS, DISSIPATION, MU))
    w = blocks.flatten(1).norm(dim=-1) / 3  # as Drake measures it
    v_hat, R = lcp.contact_parameters(gap, stiffness, dissipation, w, STEP)
    return position, velocity, (A, v_free, J, v_hat, R, mu)


def drake_step(contacts, position, velocity, stiffness, dissipation):
    from pydrake.geometry import AddContactMaterial, HalfSpace, ProximityProperties, Sphere
    from pydrake.math import RigidTransform
    from pydrake.multibody.plant import AddMultibodyPlantSceneGraph, CoulombFriction, DiscreteContactApproximation
    from pydrake.multibody.tree import SpatialInertia, UnitInertia
    from pydrake.systems.framework import DiagramBuilder

    def material(relaxation):
        properties = ProximityProperties()
        AddContactMaterial(point_stiffness=2 * stiffness, friction=CoulombFriction(MU, MU), properties=properties)
        properties.AddProperty("material", "relaxation_time", relaxation)
        return properties

    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, STEP)
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
    plant.SetUseSampledOutputPorts(False)  # which would cost it more
    body = plant.AddRigidBody("cube", SpatialInertia(MASS, [0, 0, 0], UnitInertia.SolidCube(SIDE)))
    for k, point in enumerate(points_below(contacts).numpy()):
        plant.RegisterCollisionGeometry(body, RigidTransform(point), Sphere(RADIUS), f"point {k}", material(dissipation))
    plant.RegisterCollisionGeometry(plant.world_body(), RigidTransform(), HalfSpace(), "ground", material(0.0))
    plant.Finalize()
    diagram = builder.Build()
    root = diagram.CreateDefaultContext()
    context = plant.GetMyMutableContextFromRoot(root)
    plant.SetFreeBodyPose(context, body, RigidTransform(position.numpy()))
    plant.SetVelocities(context, velocity.numpy())
    state = plant.GetPositionsAndVelocities(context)

    def step():
        plant.SetPositionsAndVelocities(context, state)  # so that nothing is remembered
        return diagram.EvalUniquePeriodicDiscreteUpdate(root).get_vector().get_value()[-6:]

    return step


def versions():
    found = {"torch": torch.__version__}
    for name in ("qpth", "proxsuite", "drake", "numpy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    work = parser.add_mutually_exclusive_group(required=True)
    work.add_argument("--problems", type=pathlib.Path)
    work.add_argument("--friction", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and problems")
    arguments = parser.parse_args()
    torch.ops.load_library(str(arguments.library))
    torch.set_num_threads(1)
    results = Results(rounds=2 if arguments.quick else 7)
    if arguments.friction:
        rigid_step(results)
    else:
        sets = read_problems(arguments.problems)
        single_call(results, sets)
        forward_and_backward(results, sets, arguments.quick)
        one_by_one(results, sets, arguments.quick)
        compliant_step(results)
    report = {"versions": versions(), "rows": results.rows, "missing": results.missing}
    arguments.out.write_text(json.dumps(report, indent=1) + "\n")


main()
