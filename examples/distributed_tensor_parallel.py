"""Train a small decoder on a text, each rank with some of its heads and neurons, then let all ranks write together.

    python examples/distributed_tensor_parallel.py --ranks 2          # threads of one process, to see how it works
    votive launch -n 4 examples/distributed_tensor_parallel.py        # processes
    votive launch -n 4 examples/distributed_tensor_parallel.py --data 2

With --data 2, two groups of ranks train on halves of each batch, and each group holds the model in parts. The number
of ranks changes nothing but rounding.
"""

import argparse
import time
from pathlib import Path

import votive
import votive.distributed as dist
from votive import nn
from votive.models import LlamaConfig, LlamaForCausalLM
from votive.models.tensor_parallel import tensor_parallel
from votive.nn.parallel import DistributedDataParallel

TEXT = Path(__file__).parent / "data" / "tiny.txt"  # the opening of Shakespeare's Coriolanus
CONTEXT, BATCH = 48, 16


def network(words: int) -> LlamaForCausalLM:
    """A decoder of characters."""
    config = LlamaConfig(
        vocab_size=words, hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, eos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def windows(data: votive.Tensor, generator: votive.Generator) -> votive.Tensor:
    """Parts of the text, (batch, context): the same on all ranks."""
    begin = votive.randint(0, len(data) - CONTEXT, (BATCH, 1), generator=generator)
    return data[begin + votive.arange(CONTEXT)]


def train(args: argparse.Namespace) -> None:
    """What every rank does."""
    text = TEXT.read_text()
    letters = sorted(set(text))
    data = votive.tensor([letters.index(c) for c in text])

    ranks = dist.get_world_size()
    mesh = dist.init_device_mesh("cpu", (args.data, ranks // args.data), mesh_dim_names=("data", "model"))
    votive.manual_seed(args.seed)
    model = tensor_parallel(network(len(letters)), mesh["model"])
    trained = DistributedDataParallel(model, device_mesh=mesh["data"]) if args.data > 1 else model
    optimizer = votive.optim.AdamW(model.parameters(), lr=3e-3)

    first, began = dist.get_rank() == 0, time.perf_counter()
    generator, share = votive.Generator().manual_seed(args.seed), BATCH // args.data
    mine = slice(share * mesh["data"].get_local_rank(), share * (mesh["data"].get_local_rank() + 1))
    for step in range(1, args.steps + 1):
        ids = windows(data, generator)[mine]
        loss = trained(ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if first and step % 50 == 0:
            print(f"step {step}  loss {loss.item():.3f}", flush=True)
    mean = loss.detach()
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    seconds = time.perf_counter() - began

    prompt = votive.tensor([[letters.index(c) for c in "First "]])
    written = model.eval().generate(prompt, max_new_tokens=80, do_sample=True, top_k=5)
    every: list = [None] * ranks
    dist.all_gather_object(every, written.tolist())
    if first:
        held = sum(p.to_local().numel() if hasattr(p, "to_local") else p.numel() for p in model.parameters())
        print("".join(letters[i] for i in written[0].tolist()))
        print(f"{ranks} ranks with {held:,} of {sum(p.numel() for p in model.parameters()):,} numbers each")
        print(f"all wrote the same: {all(one == every[0] for one in every)}")
        print(f"loss {mean.item():.3f}  seconds {seconds:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Train and run a decoder whose layers are cut over ranks.")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=int, default=1, help="groups of ranks that each train on a part of the batch")
    parser.add_argument("--ranks", type=int, help="play so many ranks by threads of this process")
    args = parser.parse_args()

    if args.ranks:
        dist.simulate(train, args.ranks, args)
    else:
        dist.init_process_group()
        train(args)
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
