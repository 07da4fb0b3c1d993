"""The Python package, as it is installed."""

import copy
import importlib.metadata
import inspect
import pathlib
import pickle
import shutil
import subprocess
import sys

import pytest
import torch

import torchlcp
from torchlcp import (
    LCP, Certificate, ContactCertificate, ContactDual, ContactParameters, ContactSolution, DirectionalDerivative, Feedback,
    FreeMotion, FrictionCertificate, FrictionMotion, FrictionProblem, FrictionSolution, MixedSolution, PaddedBatch,
    Rollout, Solution, Status,
)

N = 4
OPERATORS = {
    "solve": Solution,
    "solve_mixed": MixedSolution,
    "certify": Certificate,
    "directional_derivative": DirectionalDerivative,
    "gradient_radius": None,
    "solve_contact": ContactSolution,
    "solve_friction": FrictionSolution,
    "certify_friction": FrictionCertificate,
    "friction_problem": FrictionProblem,
    "friction_motion": FrictionMotion,
    "certify_contact": ContactCertificate,
    "add_equality": FreeMotion,
    "equality_impulses": None,
    "contact_dual": ContactDual,
    "contact_parameters": ContactParameters,
    "delassus_diagonal": None,
    "simulate_lcs": Rollout,
    "pad": PaddedBatch,
    "unpad": None,
}


@pytest.fixture
def problem():
    """P-matrices, nonsymmetric, [3, N, N], and q, [3, N], away from ties."""
    generator = torch.Generator().manual_seed(0)
    normal = lambda *shape: torch.randn(*shape, dtype=torch.float64, generator=generator)
    while True:
        A, S, q = normal(3, N, N), normal(3, N, N), normal(3, N)
        M = A.mT @ A + torch.eye(N, dtype=torch.float64) + S - S.mT
        z, w, _ = torchlcp.solve(M, q)
        if torch.maximum(z, w).min() > 1e-2 and (z > 0).any() and (w > 0).any():
            return M.requires_grad_(), q.requires_grad_()


both = pytest.mark.parametrize("solve", [torchlcp.solve, LCP()], ids=["function", "layer"])


# What is solved


def test_status_name_is_a_word_for_each_status():
    q = torch.tensor([[-1.0], [1.0], [float("nan")]])
    status = torchlcp.solve(torch.tensor([[[-1.0]], [[1.0]], [[1.0]]]), q).status
    assert [torchlcp.status_name(x) for x in status] == ["infeasible", "solved", "bad input"]
    assert [torchlcp.status_name(x) for x in (1, Status.PIVOT_LIMIT)] == ["not found", "pivot limit"]


@both
@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-12), (torch.float32, 1e-4)])
def test_solves_the_problem(problem, solve, dtype, tolerance):
    M, q = (x.to(dtype) for x in problem)
    solution = solve(M, q)
    z, w, status = solution
    assert isinstance(solution, Solution)
    assert solution.z is z and solution.w is w and solution.status is status
    assert (z >= 0).all() and (w >= 0).all() and (z * w == 0).all()
    assert torch.allclose((M @ z.unsqueeze(-1)).squeeze(-1) + q, w, rtol=0, atol=tolerance * q.abs().max().item())
    assert (status == Status.SOLVED).all() and status.dtype == torch.int8
    assert z.dtype == w.dtype == dtype and z.shape == w.shape == (3, N) and status.shape == (3,)


def test_a_block_sticks_and_slides():
    """1 kg, dt = 0.1 s, F = 0.3 * 9.81 N; unknowns lambda+, lambda-, gamma."""
    M = torch.tensor([[0.1, -0.1, 1.0], [-0.1, 0.1, 1.0], [-1.0, -1.0, 0.0]], dtype=torch.float64)
    v = torch.tensor([0.2, 1.0], dtype=torch.float64)
    limit = torch.tensor(0.3 * 9.81, dtype=torch.float64, requires_grad=True)
    z = torchlcp.solve(M, torch.stack([v, -v, limit.expand_as(v)], -1)).z
    v_next = v + 0.1 * (z[:, 0] - z[:, 1])
    v_next.sum().backward()
    assert torch.allclose(v_next, torch.tensor([0, 1 - 0.03 * 9.81], dtype=torch.float64), atol=1e-14)
    assert limit.grad.item() == pytest.approx(-0.1)  # of the one that slides


def test_a_status_says_what_became_of_each_element():
    M = torch.eye(2).expand(2, 2, 2)
    q = torch.tensor([[-1.0, -1.0], [-1.0, float("nan")]])
    assert [Status(s) for s in torchlcp.solve(M, q).status.tolist()] == [Status.SOLVED, Status.BAD_INPUT]
    assert Status(torchlcp.solve(M[0], q[0], max_pivots=0).status.item()) is Status.PIVOT_LIMIT
    z, w, status = torchlcp.solve(-M[0], q[0])
    assert z.isnan().all() and w.isnan().all() and status in (Status.NOT_FOUND, Status.INFEASIBLE)


def test_statuses_have_the_values_of_the_operators():
    assert list(Status) == list(range(5))
    assert [status.name for status in Status] == ["SOLVED", "NOT_FOUND", "INFEASIBLE", "PIVOT_LIMIT", "BAD_INPUT"]


# How it composes with PyTorch


@both
def test_differentiates(problem, solve):
    assert torch.autograd.gradcheck(lambda M, q: solve(M, q)[:2], problem, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda M, q: solve(M, q)[:2], problem)


@both
def test_vmap_keeps_the_names(problem, solve):
    M, q = (x.detach() for x in problem)
    for got, expected in zip(torch.func.vmap(solve)(M, q), solve(M, q), strict=True):
        assert torch.equal(got, expected)
    shared = torch.func.vmap(solve, in_dims=(None, 0))(M[0], q)
    assert isinstance(shared, Solution) and torch.equal(shared.z, solve(M[0], q).z)


@both
def test_compiles_without_a_break(problem, solve):
    compiled = torch.compile(lambda M, q: solve(2 * M, q), fullgraph=True, backend="aot_eager")
    M, q = problem
    solution = compiled(M, q)
    assert isinstance(solution, Solution) and torch.equal(solution.z, solve(2 * M, q).z)
    got = torch.autograd.grad(solution.z.square().sum(), (M, q))
    expected = torch.autograd.grad(solve(2 * M, q).z.square().sum(), (M, q))
    assert all(torch.allclose(a, b) for a, b in zip(got, expected, strict=True))


def test_a_network_learns_through_the_layer(problem):
    """From z of many q to the M that made them."""
    M, _ = (x.detach() for x in problem)
    q = torch.randn(200, N, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    layer = LCP(max_pivots=100)
    target = layer(M[0], q).z
    diagonal = torch.nn.Parameter(M[0].diagonal() + 1)
    optimizer = torch.optim.Adam([diagonal], lr=0.1)
    losses = []
    for _ in range(100):
        optimizer.zero_grad()
        loss = (layer(M[0] - M[0].diagonal().diag() + diagonal.diag(), q).z - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 100


# The functions


@pytest.mark.parametrize("name", OPERATORS)
def test_a_function_is_one_call_with_every_argument(monkeypatch, name):
    result, calls = OPERATORS[name], []
    outputs = tuple(object() for _ in result._fields) if result else object()

    def record(*arguments, **keywords):
        calls.append((arguments, keywords))
        return outputs

    monkeypatch.setattr(torch.ops.lcp, name, record, raising=False)
    function = getattr(torchlcp, name)
    parameters = inspect.signature(function).parameters.values()
    positional = tuple(torch.ones(3, 3) for x in parameters if x.kind is x.POSITIONAL_OR_KEYWORD)
    keywords = {x.name: torch.ones(3) for x in parameters if x.kind is x.KEYWORD_ONLY and x.name != "feedback"}
    feedback = Feedback(torch.ones(1, 1), torch.ones(1)) if "feedback" in inspect.signature(function).parameters else None
    returned = function(*positional, **keywords, **({"feedback": feedback} if feedback else {}))
    ((arguments, options),) = calls
    assert list(map(id, arguments)) == list(map(id, positional))
    expected = keywords | (feedback._asdict() if feedback else {})
    assert {key: id(x) for key, x in options.items()} == {key: id(x) for key, x in expected.items()}
    assert returned == outputs and (result is None or type(returned) is result)


@pytest.mark.parametrize("name", OPERATORS)
def test_a_function_has_the_names_and_defaults_of_its_operator(name):
    schema = getattr(torch.ops.lcp, name).default._schema
    parameters = list(inspect.signature(getattr(torchlcp, name)).parameters.values())
    if parameters[-1].name == "feedback":  # it stands for its members
        parameters[-1:] = [parameters[-1].replace(name=member) for member in Feedback._fields]
    for parameter, argument in zip(parameters, schema.arguments, strict=True):
        assert parameter.name == argument.name
        assert (parameter.kind is parameter.KEYWORD_ONLY) == argument.kwarg_only
        assert parameter.default == (argument.default_value if argument.has_default_value() else parameter.empty)
    if OPERATORS[name]:
        assert list(OPERATORS[name]._fields) == [value.name for value in schema.returns]


def test_the_results_of_a_mixed_problem_are_named():
    """x = 2 - z / 2, w = 3 z / 2 - 3."""
    A, B, C, M = (torch.tensor([[x]]) for x in (2.0, 1.0, 1.0, 2.0))
    solution = torchlcp.solve_mixed(A, B, C, M, torch.tensor([-4.0]), torch.tensor([-5.0]))
    assert (solution.x, solution.z, solution.w, solution.status) == (1, 2, 0, Status.SOLVED)


def test_the_results_at_a_solution_are_named():
    """z = 1 / 2 and a tie."""
    M, q, z = torch.diag(torch.tensor([2.0, 4.0])), torch.tensor([-1.0, 0.0]), torch.tensor([0.5, 0.0])
    certificate = torchlcp.certify(M, q, z)
    assert (certificate.residual, certificate.margin, certificate.condition, certificate.rank) == (0, 0, 1, 1)
    assert certificate.ties.tolist() == [False, True]
    derivative = torchlcp.directional_derivative(M, q, z, torch.zeros_like(M), torch.tensor([1.0, -1.0]))
    assert derivative.dz.tolist() == [-0.5, 0.25] and derivative.dw.tolist() == [0, 0]
    assert derivative.status == Status.SOLVED
    assert torchlcp.gradient_radius(M, q, z, torch.tensor([0.25, 1.0])) == 4


def test_the_results_of_contact_are_named():
    """A unit mass that falls on the ground at 1 m/s, with a step of .1 s, k = 100 N/m, and no friction."""
    one, zero = torch.eye(3, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    w = torchlcp.delassus_diagonal(one, one)
    springs = torchlcp.contact_parameters(zero, zero + 100, zero, w, 0.1, beta=0.0)
    assert w.item() == 1 and springs.R.tolist() == pytest.approx([1e-3, 1e-3, 1])
    motion = torchlcp.add_equality(one, torch.tensor([3.0, 0, -1]).double(), one[:1], zero, zero + 1)
    solution = torchlcp.solve_contact(*motion, one, *springs, zero)
    assert solution.v.tolist() == pytest.approx([1.5, 0, -0.5]) and solution.gamma.tolist() == pytest.approx([0, 0, 0.5])
    assert solution.status == Status.SOLVED and solution.iterations > 0
    joint = torchlcp.equality_impulses(one[:1], zero, zero + 1, solution.v)
    assert joint.tolist() == pytest.approx([-1.5])  # 3 m/s before, 1.5 m/s after
    H, r = torchlcp.contact_dual(*motion, one, *springs)
    assert (H @ solution.gamma + r)[2].item() == pytest.approx(0)
    certificate = torchlcp.certify_contact(*motion, one, *springs, zero, solution.v)
    assert certificate.residual < 1e-10 and 0 < certificate.margin <= 1 and certificate.condition >= 1


def test_the_results_of_friction_are_named():
    """A unit mass that slides over the ground at 3 m/s while it falls at 1 m/s."""
    one = torch.eye(3, dtype=torch.float64)
    v_free, mu = torch.tensor([3.0, 0, -1]).double(), torch.tensor([0.5]).double()
    solution = torchlcp.solve_friction(one, v_free, one, 0 * v_free, mu)
    assert solution.v.tolist() == pytest.approx([2.5, 0, 0]) and solution.gamma.tolist() == pytest.approx([-0.5, 0, 1])
    assert solution.status == Status.SOLVED and solution.iterations == 0
    certificate = torchlcp.certify_friction(one, v_free, one, 0 * v_free, mu, solution.v, solution.gamma)
    assert certificate.residual < 1e-14 and certificate.rank == 3 and certificate.unique
    z = torchlcp.solve(*torchlcp.friction_problem(one, v_free, one, 0 * v_free, mu)).z
    assert torchlcp.friction_motion(one, v_free, one, z).v.tolist() == pytest.approx([2.5, 0, 0])


@pytest.mark.parametrize("name", torchlcp.__all__)
def test_what_is_public_is_documented(name):
    assert inspect.getdoc(getattr(torchlcp, name))


@both
def test_mistakes_are_named(solve):
    M, q = torch.eye(3), torch.ones(3)
    for arguments, message in [
        ((M[:2], q), r"M must be \[..., n, n\]; got \[2, 3\]"),
        ((M, q[:2]), r"q must be \[..., n\].*; got \[2\]"),
        ((M, q.double()), "q must have M's dtype, Float; got Double"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            solve(*arguments)


def test_options_go_by_name_alone():
    M, q = torch.eye(3), torch.ones(3)
    for call in (
        lambda: torchlcp.solve(M, q, None),
        lambda: torchlcp.solve(M, q, pivots=3),
        lambda: LCP("auto"),
        lambda: torchlcp.certify(M, q, q, 1e-6),
    ):
        with pytest.raises(TypeError):
            call()


# The layer


def test_the_layer_takes_the_options_of_the_function():
    ours, theirs = (inspect.signature(x).parameters for x in (LCP, torchlcp.solve))
    inputs = ("sizes", "guess")
    assert list(ours.values()) == [x for x in theirs.values() if x.kind is x.KEYWORD_ONLY and x.name not in inputs]


def test_the_layer_passes_its_options_on(monkeypatch):
    def record(*arguments, **keywords):
        calls.append((arguments, keywords))
        return "zws"

    calls = []
    monkeypatch.setattr(torch.ops.lcp, "solve", record)
    options = {"method": "lemke", "ties": "midpoint", "kappa": 1e-3, "tolerance": 1e-6, "max_pivots": 7}
    layer = LCP(**options)
    M, q, sizes, guess = (torch.tensor(float(k)) for k in range(4))
    given = [{"sizes": None, "guess": None}, {"sizes": sizes, "guess": guess}]
    assert layer(M, q) == layer(M, q, **given[1]) == Solution(*"zws")
    assert calls == [((M, q), {**inputs, **options}) for inputs in given]


@pytest.mark.parametrize("options", [{}, {"method": "lemke", "tolerance": 1e-6, "max_pivots": 7}])
def test_the_layer_prints_as_what_makes_it(options):
    layer = LCP(**options)
    defaults = {"method": "auto", "ties": "inactive", "kappa": 0.0, "tolerance": None, "max_pivots": None}
    assert {name: getattr(eval(repr(layer)), name) for name in defaults} == {**defaults, **options}
    assert repr(torch.nn.Sequential(LCP(max_pivots=3))).count("max_pivots=3") == 1


def test_the_layer_has_no_state_and_copies_with_its_options():
    layer = LCP(max_pivots=0)
    assert not layer.state_dict() and not list(layer.parameters())
    for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert repr(copied) == repr(layer)
        assert copied(torch.eye(1), -torch.ones(1)).status == Status.PIVOT_LIMIT


# The package


def python(code):
    """The last line that a new Python prints of the error in which the code ends."""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=900)
    assert result.returncode == 1, result.stderr
    return result.stderr.splitlines()[-1]


SOLVES = "print(torchlcp.solve(torch.tensor([[2.0]]), torch.tensor([-3.0])).z)"


def test_another_minor_version_of_torch_is_refused():
    message = python("import torch; torch.__version__ = '2.99.1+cu130'; import torchlcp")
    assert message.startswith("ImportError: torchlcp 0.") and f"built with torch {torch.__version__[:4]}" in message
    assert "this is torch 2.99.1+cu130" in message and "pip install 'torch==2." in message


def test_a_second_library_is_refused(tmp_path):
    library = pathlib.Path(torchlcp.__file__).with_name("libtorchlcp.so")
    copied = shutil.copy(library, tmp_path)
    message = python(f"import torch; torch.ops.load_library({copied!r}); import torchlcp")
    assert message.startswith("ImportError: the operators torch.ops.lcp are there already")


def test_the_library_may_be_loaded_before_the_package_is():
    """As by an extension that links to it."""
    library = str(pathlib.Path(torchlcp.__file__).with_name("libtorchlcp.so"))
    code = f"import ctypes, torch; ctypes.CDLL({library!r}, ctypes.RTLD_GLOBAL); import torchlcp\n{SOLVES}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=900)
    assert (result.returncode, result.stderr) == (0, "") and "1.5" in result.stdout


def test_a_second_library_after_the_package_uses_the_operators_of_the_first(tmp_path):
    copied = shutil.copy(pathlib.Path(torchlcp.__file__).with_name("libtorchlcp.so"), tmp_path)
    code = f"import torchlcp, torch; torch.ops.load_library({copied!r})\n{SOLVES}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=900)
    assert result.returncode == 0 and "1.5" in result.stdout
    assert f"a second copy of TorchLCP is loaded, from {copied}; its operators are those of the first" in result.stderr


def test_sources_that_are_not_built_are_refused(tmp_path):
    shutil.copytree(
        pathlib.Path(torchlcp.__file__).parent, tmp_path / "torchlcp", ignore=shutil.ignore_patterns("_built.py")
    )
    message = python(f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import torchlcp")
    assert message.startswith("ImportError: this torchlcp is not built")


def test_metadata():
    package = importlib.metadata.metadata("torchlcp")
    minor = ".".join(torch.__version__.split(".")[:2])
    version, _, local = package["Version"].partition("+")
    assert version == torchlcp.__version__ and local in ("", f"torch{minor}")
    assert package["License-Expression"] == "BSD-3-Clause"
    required = [x for x in package.get_all("Requires-Dist") or [] if "extra" not in x]
    assert required == [f"torch=={minor}.*"] and package.get_all("Provides-Extra") == ["robots"]
    assert pathlib.Path(torchlcp.__file__).with_name("py.typed").exists()
