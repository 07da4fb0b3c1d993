"""Problems for the tests and benchmarks of GPUs: batches (M, q) on the CPU, in double precision."""

import torch


def positive(count, n, seed=0):
    """P-matrices: positive definite and not symmetric; a third of the unknowns is active."""
    g = torch.Generator().manual_seed(seed)
    B = torch.randn(count, n, n, generator=g, dtype=torch.double) / n**0.5
    S = torch.randn(count, n, n, generator=g, dtype=torch.double) / n**0.5
    M = B @ B.mT + 0.1 * torch.eye(n, dtype=torch.double) + (S - S.mT) / 2
    return M, torch.randn(count, n, generator=g, dtype=torch.double)


def anything(count, n, seed=0):
    """Matrices of any kind: with one solution, several, or none."""
    g = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(count, *size, generator=g, dtype=torch.double) for size in ((n, n), (n,)))


def degenerate(count, n, seed=0):
    """Small whole numbers: ties, singular bases, redundant rows."""
    g = torch.Generator().manual_seed(seed)
    return tuple(
        torch.randint(-2, 3, (count, *size), generator=g, dtype=torch.int64).double() for size in ((n, n), (n,))
    )


def friction(count, contacts=4, mu=0.6, seed=0):
    """Contacts of a body of six velocities, four directions of friction each: n = 6 contacts [Stewart, Trinkle, 1996]."""
    g = torch.Generator().manual_seed(seed)
    c, double = contacts, {"dtype": torch.double}
    A = torch.randn(count, 6, 6, generator=g, **double)
    A = A @ A.mT + torch.eye(6, **double)
    normal = torch.randn(count, c, 6, generator=g, **double)
    sides = torch.randn(count, 2 * c, 6, generator=g, **double).view(count, c, 2, 6)
    tangential = torch.cat([sides, -sides], 2).reshape(count, 4 * c, 6)
    J = torch.cat([normal, tangential], 1)
    M = torch.zeros(count, 6 * c, 6 * c, **double)
    M[:, : 5 * c, : 5 * c] = J @ torch.linalg.solve(A, J.mT)
    E = torch.eye(c, **double).repeat_interleave(4, 0)
    M[:, c : 5 * c, 5 * c :] = E
    M[:, 5 * c :, :c] = mu * torch.eye(c, **double)
    M[:, 5 * c :, c : 5 * c] = -E.mT
    v = torch.randn(count, 6, 1, generator=g, **double)
    q = torch.cat([(J @ v).squeeze(-1), torch.zeros(count, c, **double)], 1)
    return M, q


def block(count, seed=0):
    """A block that slides, sticks or flies: 3 x 3 [Stewart, Trinkle, 1996], masses and friction of each its own."""
    g = torch.Generator().manual_seed(seed)
    mass, mu = 0.5 + torch.rand(count, generator=g), 0.1 + 0.5 * torch.rand(count, generator=g)
    velocity, force = torch.randn(count, generator=g), torch.randn(count, generator=g)
    M = torch.zeros(count, 3, 3, dtype=torch.double)
    M[:, 0, 0] = M[:, 1, 1] = 1 / mass
    M[:, 0, 1] = M[:, 1, 0] = -1 / mass
    M[:, 0, 2] = M[:, 1, 2] = 1
    M[:, 2, 0] = M[:, 2, 1] = -1
    v = velocity + 0.1 * force / mass
    return M, torch.stack([v, -v, mu * mass * 0.981], -1).double()


def bodies(count, contacts=4, number=1, gaps=True, seed=0):
    """Bodies that touch the ground or each other: A, v_free, J, b and mu of solve_friction. Without gaps, those of one
    body touch one plane, and more than three of them are redundant."""
    g = torch.Generator().manual_seed(seed)
    double, c = {"dtype": torch.double}, contacts
    mass = 0.5 + torch.rand(count, number, generator=g, **double)
    diagonal = torch.cat([mass.unsqueeze(-1).expand(-1, -1, 3), mass.unsqueeze(-1).expand(-1, -1, 3) / 6], -1)
    A = torch.diag_embed(diagonal.flatten(1))
    axes = torch.eye(3, **double).expand(count, c, 3, 3)
    if gaps:
        axes = torch.linalg.qr(torch.randn(count, c, 3, 3, generator=g, **double))[0]
        axes = axes * axes[:, :, -1:, -1:].sign()  # normals point up
    body = torch.randint(number, (count, c), generator=g)
    J = torch.zeros(count, c, 3, number, 6, **double)
    for side in (0, 1):  # of the contact; on the other one is the next body, or the ground
        point = torch.rand(count, c, 3, generator=g, **double) - 0.5
        if not gaps:
            point[..., 2] = -0.5
        of_turn = torch.linalg.cross(point.unsqueeze(2).expand(-1, -1, 3, -1), axes)
        here = torch.nn.functional.one_hot(body + side, number + 1)[..., :number].double()
        J = J + (1 - 2 * side) * torch.cat([axes, of_turn], -1).unsqueeze(3) * here[:, :, None, :, None]
    v_free = torch.randn(count, 6 * number, generator=g, **double) * 0.5
    v_free[:, 2::6] -= 0.5
    b = torch.zeros(count, c, 3, **double)
    if gaps:
        b[..., 2] = 0.2 * torch.rand(count, c, generator=g, **double)
    mu = 0.1 + 0.8 * torch.rand(count, c, generator=g, **double)
    return A, v_free, J.reshape(count, 3 * c, 6 * number), b.flatten(1), mu


def compliant(count, contacts=4, number=1, seed=0):
    """The same bodies with compliance: A, v_free, J, v_hat, R and mu of solve_contact."""
    A, v_free, J, b, mu = bodies(count, contacts, number, seed=seed)
    w = (J / A.diagonal(dim1=-2, dim2=-1).unsqueeze(-2) * J).sum(-1).unflatten(-1, (contacts, 3)).mean(-1)
    R = torch.stack([1e-3 * w, 1e-3 * w, 0.03 * w], -1).flatten(-2)
    return A, v_free, J, -b, R, mu
