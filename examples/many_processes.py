"""Learns the friction of surfaces from the motion of bodies on many processes, by DistributedDataParallel.

    torchrun --nproc-per-node 2 examples/many_processes.py [--epochs 20] [--workers 1] [--checkpoint FOLDER]

Each body touches the ground in one to eight points; the friction of a point depends on how rough and how wet the ground
is there, and a network is to find out how. A run that is started again with the same --checkpoint goes on after its last
epoch, also with another number of processes.
"""
import argparse
import pathlib
import shutil

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.distributed.nn  # noqa: F401  # imported later, it would keep the group's threads until Python ends
import torchlcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

DT, MASS, GRAVITY = 0.01, 1.0, 9.81
INERTIA = torch.diag(torch.tensor([MASS, MASS, MASS, 0.1, 0.1, 0.1], dtype=torch.float64))


def true_friction(ground):
    rough, wet = ground.unbind(-1)
    return 0.2 + 0.6 * rough * (1 - wet)


class Bodies(Dataset):
    """Free velocities [6], Jacobians [3 c, 6] and grounds [c, 2] of bodies with c contacts, each of its own number."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, k):
        generator = torch.Generator().manual_seed(k)
        uniform = lambda *size: torch.rand(*size, generator=generator, dtype=torch.float64)
        contacts = int(torch.randint(1, 9, (), generator=generator))
        points = torch.cat([uniform(contacts, 2) - 0.5, -0.2 * torch.ones(contacts, 1)], -1).double()
        axes = torch.eye(3).double().expand(contacts, 3, 3)
        turning = torch.linalg.cross(points.unsqueeze(1).expand(contacts, 3, 3), axes)
        v_free = 0.2 * (uniform(6) - 0.5)
        v_free[2] = -GRAVITY * DT
        return v_free, torch.cat([axes, turning], -1).flatten(0, 1), uniform(contacts, 2)


def batch_of(bodies):
    """Bodies with different numbers of contacts as one batch, and these numbers."""
    v_free, J, ground = zip(*bodies)
    ground, sizes = torchlcp.pad(ground, 2)
    return torch.stack(v_free), torchlcp.pad(J, 2).values, ground, sizes


class Step(torch.nn.Module):
    """The velocity after a step with the friction that a network finds, and what of the batch is solved."""

    def __init__(self):
        super().__init__()
        self.network = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()

    def friction(self, ground):
        return torch.nn.functional.softplus(self.network(ground).squeeze(-1))

    def forward(self, v_free, J, ground, sizes):
        return velocity(v_free, J, self.friction(ground), sizes)


def velocity(v_free, J, mu, sizes):
    solution = torchlcp.solve_friction(INERTIA, v_free, J, torch.zeros_like(J[..., 0]), mu, sizes=sizes)
    return solution.v, solution.status == torchlcp.Status.SOLVED


def save(folder, epochs, model, optimizer):
    """Into a folder of its own, which is complete when it has .metadata; then those before it go."""
    dcp.save(dict(zip(("model", "optimizer"), get_state_dict(model, optimizer))), checkpoint_id=folder / str(epochs))
    dist.barrier()
    if dist.get_rank() == 0:
        for other in folder.iterdir():
            if other.name != str(epochs):
                shutil.rmtree(other)


def restore(folder, model, optimizer):
    """The epochs that the newest complete checkpoint has seen, or 0."""
    epochs = max((int(path.parent.name) for path in folder.glob("*/.metadata")), default=0)
    if epochs > 0:
        saved = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer)))
        dcp.load(saved, checkpoint_id=folder / str(epochs))
        set_state_dict(model, optimizer, model_state_dict=saved["model"], optim_state_dict=saved["optimizer"])
    return epochs


def train(flags):
    rank, processes = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(Step())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    first = restore(flags.checkpoint, model, optimizer) if flags.checkpoint else 0
    data = Bodies(flags.bodies)
    sampler = DistributedSampler(data, processes, rank, seed=0)
    loader = DataLoader(data, flags.batch // processes, sampler=sampler, collate_fn=batch_of, num_workers=flags.workers)
    for epoch in range(first, flags.epochs):
        sampler.set_epoch(epoch)
        totals = torch.zeros(2, dtype=torch.float64)
        for v_free, J, ground, sizes in loader:
            target, known = velocity(v_free, J, true_friction(ground), sizes)
            v, solved = model(v_free, J, ground, sizes)
            both = known & solved
            errors = (v[both] - target[both]).square()
            counted = both.sum().double()
            dist.all_reduce(counted)
            loss = processes * errors.sum() / counted  # the mean of it over the processes is that over all solved bodies
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            totals += torch.stack([errors.detach().sum(), both.sum()])
        dist.all_reduce(totals)
        if rank == 0:
            print(f"epoch {epoch + 1}: rms error {(totals[0] / totals[1]).sqrt():.2e} m/s", flush=True)
        if flags.checkpoint:
            save(flags.checkpoint, epoch + 1, model, optimizer)
    if rank == 0:
        ground = torch.tensor([[0.2, 0.2], [0.8, 0.2], [0.8, 0.8]], dtype=torch.float64)
        print("friction", model.module.friction(ground).tolist(), "truth", true_friction(ground).tolist())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--bodies", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=400, help="of all processes together")
    parser.add_argument("--workers", type=int, default=1, help="processes that make the data, for each process")
    parser.add_argument("--checkpoint", type=pathlib.Path, help="folder to save to after each epoch, and to go on from")
    dist.init_process_group("gloo")
    try:
        train(parser.parse_args())
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
