"""Trains with gradients that have the same bits on any number of processes.

    torchrun --nproc-per-node 3 examples/same_bits.py

DistributedDataParallel sums what the processes have summed before, so that the number of processes changes the round-off.
Here each batch has eight parts, whoever computes them; all gradients are gathered, and summed in the order of the parts.
"""
import hashlib

import torch
import torch.distributed as dist
import torch.distributed.nn  # noqa: F401  # imported later, it would keep the group's threads until Python ends
import torchlcp

PARTS = 8


def gradient(parameters, loss_of, parts):
    """The gradient of the sum of loss_of over all parts, flat: the same bits on each process."""
    rank, processes = dist.get_rank(), dist.get_world_size()
    most = -(-len(parts) // processes)
    own = torch.zeros(most, sum(p.numel() for p in parameters), dtype=parameters[0].dtype)
    for row, part in zip(own, parts[rank * most : (rank + 1) * most]):
        row.copy_(torch.cat([g.flatten() for g in torch.autograd.grad(loss_of(part), parameters)]))
    rows = [torch.empty_like(own) for _ in range(processes)]
    dist.all_gather(rows, own)
    total = torch.zeros_like(own[0])
    for row in torch.cat(rows)[: len(parts)]:
        total += row
    return total


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    B = torch.randn(4, 4, dtype=torch.float64)
    q = torch.randn(4000, 4, dtype=torch.float64)
    z = torchlcp.solve(B @ B.T + torch.eye(4), q).z
    learned = torch.eye(4, dtype=torch.float64).requires_grad_()
    optimizer = torch.optim.Adam([learned], lr=0.1)

    def loss_of(part):
        return (torchlcp.solve(learned @ learned.T + torch.eye(4), q[part]).z - z[part]).square().sum()

    for _ in range(400):
        learned.grad = gradient([learned], loss_of, torch.randperm(len(q)).chunk(PARTS)).view_as(learned)
        optimizer.step()
    if dist.get_rank() == 0:
        error = (learned @ learned.T - B @ B.T).abs().max().item()
        print(f"M is learned to {error:.1e}, bits", hashlib.sha256(learned.detach().numpy().tobytes()).hexdigest()[:16])
    dist.barrier()  # so that none ends while others still exchange gradients
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
