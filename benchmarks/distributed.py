"""What ranks cost: all-reduces against the MPI library's own, and how much of DDP's messages a step hides.

    votive launch -n 2 -m benchmarks.distributed

Times are taken in turns, so that other work on the machine falls on both sides alike; the least of several counts.
With `--timeline FILE` a step's timeline is written for Perfetto.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import votive
import votive.distributed as dist
from votive import nn
from votive.distributed.group import OBSERVERS, Ran
from votive.models.gpt2 import GPT2Config, GPT2LMHeadModel
from votive.nn.parallel import DistributedDataParallel
from votive.profiler import profile


def least(calls: list[Callable[[], Any]], rounds: int) -> list[float]:
    """The least seconds of each call, of several rounds in turns."""
    found = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            dist.barrier()
            start = time.perf_counter()
            call()
            found[i] = min(found[i], time.perf_counter() - start)
    return found


def reductions(mib: int, rounds: int) -> dict[str, float]:
    """All-reduce here, and by mpi4py on the same memory."""
    from mpi4py import MPI

    x = votive.ones(mib << 18)
    raw = np.ones(mib << 18, np.float32)
    here, plain = least(
        [lambda: dist.all_reduce(x), lambda: MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, raw, MPI.SUM)], rounds
    )
    return {"MiB": mib, "here": here, "MPI": plain, "rate against MPI": plain / here}


def training(width: int, layers: int, batch: int, rounds: int) -> dict[str, Any]:
    """A step of a GPT alone, with copies averaged in backward, and averaged behind it; and what was hidden."""
    config = GPT2Config(
        vocab_size=256, n_positions=64, n_embd=width, n_layer=layers, n_head=4, resid_pdrop=0.0, embd_pdrop=0.0,
        attn_pdrop=0.0,
    )  # fmt: skip
    votive.manual_seed(0)
    plain, copied = GPT2LMHeadModel(config), DistributedDataParallel(GPT2LMHeadModel(config), bucket_cap_mb=4)
    x = votive.randint(0, 256, (batch, 64))

    def step(model: Any) -> None:
        model.zero_grad()
        logits = model(x, use_cache=False).logits
        nn.functional.cross_entropy(logits.flatten(0, 1), x.flatten()).backward()

    def behind() -> None:
        step(plain)
        for p in plain.parameters():
            if p.grad is not None:
                dist.all_reduce(p.grad)

    alone, beside, after = least([lambda: step(plain), lambda: step(copied), behind], rounds)
    spans: list[tuple[float, float]] = []

    def observe(ran: Ran) -> None:
        if ran.call.op == "all_reduce":
            spans.append((ran.start, ran.end))

    OBSERVERS.append(observe)
    dist.barrier()
    began = time.perf_counter()
    logits = copied(x, use_cache=False).logits
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), x.flatten())
    back = time.perf_counter()
    loss.backward()
    ended = time.perf_counter()
    OBSERVERS.remove(observe)
    begun = [start for start, _ in spans]
    return {
        "step alone": alone, "averaged in backward": beside, "averaged behind it": after,
        "against the ideal": beside / alone, "messages": len(spans), "forward": back - began, "backward": ended - back,
        "first message after this part of backward": (min(begun) - back) / (ended - back) if spans else None,
        "messages begun within backward": sum(start < ended for start in begun),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--timeline", metavar="FILE")
    args = parser.parse_args()
    dist.init_process_group("mpi")
    found = {
        "ranks": dist.get_world_size(),
        "all_reduce": reductions(args.mib, args.rounds),
        "training": training(args.width, args.layers, args.batch, args.rounds),
    }
    if args.timeline:
        with profile() as prof:
            training(args.width, args.layers, args.batch, 1)
        dist.export_timeline(prof, args.timeline)
    if dist.get_rank() == 0:
        print(json.dumps(found, indent=1))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
