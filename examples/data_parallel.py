"""Train the network of digits.py on several ranks, each of which sees its own part of every batch.

    votive launch -n 2 examples/data_parallel.py       # processes
    python examples/data_parallel.py --ranks 2         # threads of one process, to see how it works
    votive launch -n 2 examples/data_parallel.py --shards

With --shards, parameters, gradients and the optimizer's states are spread over the ranks, too. The number of ranks
changes nothing but rounding: a batch is always of 64 pictures.
"""

import argparse
import time

from digits import draw, network

import votive
import votive.distributed as dist
from votive import nn
from votive.distributed.fsdp import fully_shard
from votive.nn import functional as F
from votive.nn.parallel import DistributedDataParallel
from votive.utils.data import DataLoader, DistributedSampler, TensorDataset

BATCH = 64


def spread(model: nn.Sequential, shards: bool) -> nn.Module:
    """The model as all ranks train it, beginning with rank 0's parameters."""
    if not shards:
        return DistributedDataParallel(model)
    for layer in model:
        if any(True for _ in layer.parameters()):
            fully_shard(layer)
    return fully_shard(model)


@votive.no_grad()
def accuracy(model: nn.Module, images: votive.Tensor, labels: votive.Tensor) -> float:
    """The fraction of pictures whose class is right; each rank looks at its part."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    right = (model(images[rank::ranks]).argmax(1) == labels[rank::ranks]).sum()
    dist.all_reduce(right)
    return right.item() / len(labels)


def train(args: argparse.Namespace) -> None:
    """What every rank does."""
    data = TensorDataset(*draw(8000, args.seed))
    sampler = DistributedSampler(data, seed=args.seed)
    loader = DataLoader(data, batch_size=BATCH // dist.get_world_size(), sampler=sampler, drop_last=True)
    model = spread(network(), args.shards)
    optimizer = votive.optim.Adam(model.parameters(), lr=3e-3)
    schedule = votive.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)

    first = dist.get_rank() == 0
    began = time.perf_counter()
    step = epoch = 0
    while step < args.steps:
        sampler.set_epoch(epoch)
        epoch += 1
        for images, labels in loader:
            loss = F.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            step += 1
            if first and step % 100 == 0:
                print(f"step {step}  loss {loss.item():.3f}", flush=True)
            if step == args.steps:
                break
    seconds = time.perf_counter() - began

    held = accuracy(model, *draw(2000, seed=args.seed + 1))
    numbers = sum(p.numel() for p in model.parameters())
    if first:
        print(f"{dist.get_world_size()} ranks with {numbers:,} numbers each")
        print(f"loss {loss.item():.3f}  held-out accuracy {held:.3f}  seconds {seconds:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Classify drawn digits, on several ranks.")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shards", action="store_true", help="spread parameters over the ranks")
    parser.add_argument("--ranks", type=int, help="play so many ranks by threads of this process")
    args = parser.parse_args()

    votive.manual_seed(args.seed)
    if args.ranks:
        dist.simulate(train, args.ranks, args)
    else:
        dist.init_process_group()
        train(args)
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
