"""torchlcp.learning, against sums over all paths and closed forms."""

import inspect
import itertools

import pytest
import torch

from torchlcp import learning
from torchlcp.learning import MarkovChain, identifiability, log_likelihood, predicted_states


@pytest.mark.parametrize("name", learning.__all__)
def test_what_is_public_is_documented(name):
    assert inspect.getdoc(getattr(learning, name))


@pytest.fixture
def chain():
    initial, transition = torch.tensor([0.3, 0.7]).double(), torch.tensor([[0.9, 0.1], [0.4, 0.6]]).double()
    return MarkovChain(initial.log(), transition.log())


@pytest.fixture
def observations():
    return torch.randn(5, 4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def paths(chain, log_observation):
    """The log of the joint density of each path of states and the observations [steps, s]."""
    for path in itertools.product(range(2), repeat=len(log_observation)):
        steps = [chain.log_transition[a, b] for a, b in itertools.pairwise(path)]
        yield path, chain.log_initial[path[0]] + sum(steps) + sum(x[s] for x, s in zip(log_observation, path, strict=True))


def test_the_likelihood_is_a_sum_over_paths(chain, observations):
    found = log_likelihood(chain, observations)
    for k in range(5):
        expected = torch.stack([x for _, x in paths(chain, observations[k])]).logsumexp(0)
        torch.testing.assert_close(found[k], expected)


def test_its_derivative_is_the_probability_of_each_state(chain, observations):
    x = observations[0].clone().requires_grad_()
    likelihood = log_likelihood(chain, x)
    likelihood.backward()
    expected = torch.zeros(4, 2).double()
    for path, joint in paths(chain, observations[0]):
        for k, state in enumerate(path):
            expected[k, state] += (joint - likelihood.detach()).exp()
    torch.testing.assert_close(x.grad, expected)
    tensors = [y.clone().requires_grad_() for y in (*chain, observations)]
    assert torch.autograd.gradcheck(lambda a, b, y: log_likelihood(MarkovChain(a, b), y), tensors)
    assert torch.autograd.gradgradcheck(lambda a, b, y: log_likelihood(MarkovChain(a, b), y), tensors)


def test_states_are_predicted_from_the_observations_before(chain, observations):
    found = predicted_states(chain, observations)
    torch.testing.assert_close(found.sum(-1), torch.ones(5, 4).double())
    for k in range(4):
        joint = torch.zeros(2).double()
        silent = torch.cat([observations[0, :k], torch.zeros(1, 2).double()])
        for path, x in paths(chain, silent):
            joint[path[-1]] += x.exp()
        torch.testing.assert_close(found[0, k], joint / joint.sum())


def test_a_chain_is_mapped_and_compiled(chain, observations):
    expected = log_likelihood(chain, observations)
    torch.testing.assert_close(torch.func.vmap(lambda x: log_likelihood(chain, x))(observations), expected)
    compiled = torch.compile(lambda x: log_likelihood(chain, x), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(observations), expected)


def test_parameters_that_data_do_not_determine_are_found():
    x = torch.arange(1, 6).double()
    found = identifiability(torch.stack([x, 2 * x, torch.ones(5).double()], -1))
    assert found.rank == 2 and isinstance(found.rank, int) and found.condition > 1
    assert found.null_space.shape == (3, 1)
    torch.testing.assert_close(found.null_space[:, 0].abs(), torch.tensor([2.0, 1.0, 0.0]).double() / 5**0.5)
    assert identifiability(torch.eye(3).double()).condition == pytest.approx(1)


def test_mistakes_are_named(chain, observations):
    for call, message in [
        (lambda: identifiability(torch.eye(3)), r"features must be \[samples, parameters\], float64"),
        (lambda: log_likelihood(chain, observations[..., :1]), r"log_observation must be \[..., steps, s\] with s = 2"),
        (lambda: log_likelihood(chain._replace(log_initial=chain[1]), observations), r"log_initial must be \[s\]"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            call()
