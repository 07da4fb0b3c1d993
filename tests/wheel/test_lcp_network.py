"""torchlcp.nn.LcpNetwork, a network that ends in an LCP."""

import pytest
import torch
from modules import MAKERS, inputs, network_with

import torchlcp
from torchlcp import Status
from torchlcp.nn import LcpNetwork, TraditionalModel


def test_a_network_is_what_its_parts_say(theta):
    network, x = network_with(theta[0]), torch.stack(inputs(), -1)
    network.input_unit.copy_(torch.tensor([2.0, 3.0]))
    network.output_unit.fill_(5.0)
    step, parts = network.step(x), network.parts(x)
    s = x / torch.tensor([2.0, 3.0])
    of = lambda name: network.get_parameter(name)
    hidden = (s @ of("q_hidden_weight").T + of("q_hidden_bias")).tanh()
    torch.testing.assert_close(parts.q, s @ of("q_weight").T + of("q_bias") + hidden @ of("q_out_weight").T)
    torch.testing.assert_close(parts.f, s @ of("f_weight").T + of("f_bias"))
    L, U = network.M.tril(), network.M.triu(1)
    torch.testing.assert_close(parts.M, L @ L.T + 0.3 * torch.eye(2) + U - U.T)
    assert torch.equal(network.matrix(), parts.M)
    z = torchlcp.solve(parts.M, parts.q).z
    torch.testing.assert_close(step.z, z)
    torch.testing.assert_close(step.y, 5 * (parts.f + (parts.G * z.unsqueeze(1)).sum(-1)))
    torch.testing.assert_close(step.activity, (parts.G.norm(dim=1) * z).sum(-1))
    assert (step.status == Status.SOLVED).all() and torch.equal(network(x), step.y)
    assert LcpNetwork(2, 1, 2).parts(x).f is None


def test_many_networks_step_at_once_and_are_mapped_and_compiled(theta):
    x = torch.stack(inputs(), -1)
    network = network_with(theta[1])
    together = network.step(x, theta.unsqueeze(1))
    torch.testing.assert_close(together.y[1], network.step(x).y)
    torch.testing.assert_close(torch.func.vmap(lambda t: network.step(x, t).y)(theta), together.y)
    compiled = torch.compile(lambda x: network(x), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), network(x))
    assert torch.equal(network.entry("M", theta)[1], network.M)
    assert torch.equal(network.theta(), theta[1]) and network.size == theta.shape[1]


def test_the_linearization_of_networks_is_that_of_autograd(theta):
    network, x = MAKERS["LCP network"](), torch.stack(inputs(), -1)
    found = network.linearize(x, theta)
    values = lambda t: torch.cat([(step := network.step(x, t)).y, step.activity.unsqueeze(-1)], -1)
    for k in range(3):
        torch.testing.assert_close(found.values[k], values(theta[k]))
        torch.testing.assert_close(found.jacobian[k], torch.func.jacrev(values)(theta[k]))
    with pytest.raises(RuntimeError, match="kappa must be 0; got 0.1"):
        network.linearize(x, theta, kappa=0.1)


def test_a_network_grows_and_is_restricted(theta):
    x = torch.stack(inputs(), -1)
    small = network_with(theta[0])
    large = LcpNetwork(2, 1, 3, f="affine", G="network", q="network", hidden=4)
    grown = large.grown(small, theta[0], torch.Generator().manual_seed(0))
    for name, value in small.named_parameters():
        part = large.entry(name, grown)[tuple(slice(n) for n in value.shape)]
        assert torch.equal(part, value)
    assert torch.equal(grown, large.grown(small, theta[0], torch.Generator().manual_seed(0)))
    two = LcpNetwork(2, 1, 2, f="affine", G="network", q="network", hidden=4)
    unknowns = torch.tensor([0, 2])
    restricted = two.matrix(large.restricted(grown, unknowns))
    torch.testing.assert_close(restricted, large.matrix(grown)[unknowns][:, unknowns])
    assert two.step(x, large.restricted(grown, unknowns)).y.shape == (20, 1)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: LcpNetwork(0, 1, 1), "inputs must be > 0; got 0"),
        (lambda: LcpNetwork(1, 1, 1, definiteness=0.0), "definiteness must be > 0; got 0"),
        (lambda: LcpNetwork(1, 1, 1, G="absent"), "G must not be absent"),
        (lambda: LcpNetwork(1, 1, 1, f="linear"), "f must be absent, constant, affine or network; got linear"),
        (lambda: LcpNetwork(1, 1, 1, activation="sine"), "activation must be tanh or relu; got sine"),
        (lambda: LcpNetwork(1, 1, 1).entry("N", torch.zeros(9)), "the network has no parameter N"),
        (lambda: LcpNetwork(3, 1, 1).save_torchscript("x.pt", inputs=1), "the network has 3 inputs; got 0 positions, 1 velo"),
    ],
)
def test_mistakes_of_networks_are_named(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_a_vector_of_the_wrong_size_is_refused():
    network = LcpNetwork(1, 1, 1)
    with pytest.raises(ValueError, match=rf"theta must be \[{network.size}\]; got \[2\]"):
        network.set_theta(torch.zeros(2))


def test_networks_have_no_rows():
    with pytest.raises(AttributeError, match="networks have no rows"):
        TraditionalModel("networks").rows()
