"""Train a small GPT as a pipeline: each rank has some of its layers, and microbatches go through one after the other.

    votive launch -n 2 examples/distributed_pipeline.py
    python examples/distributed_pipeline.py --ranks 4 --schedule ZBVZeroBubble    # threads of one process

Prints who computes what and when: F forward, B backward, I and W its halves, for inputs and for weights.
"""

import argparse
from pathlib import Path

import votive
import votive.distributed as dist
from votive.distributed.pipelining import get_schedule_class, pipeline
from votive.models.gpt2 import GPT2Config, GPT2LMHeadModel
from votive.nn import functional as F

TEXT = Path(__file__).parent / "data" / "tiny.txt"
CONTEXT = 32


def loss_of(logits: votive.Tensor, y: votive.Tensor) -> votive.Tensor:
    """The mean loss, in nats, of guessing each character."""
    return F.cross_entropy(logits.flatten(0, 1), y.flatten())


def train(args: argparse.Namespace) -> None:
    """What every rank does."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    text = TEXT.read_text()
    letters = sorted(set(text))
    tokens = votive.tensor([letters.index(letter) for letter in text])
    single = args.schedule in ("GPipe", "1F1B")
    count = ranks if single else 2 * ranks
    config = GPT2Config(
        vocab_size=len(letters), n_positions=CONTEXT, n_embd=args.width, n_layer=count, n_head=2,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    votive.manual_seed(args.seed)  # all ranks begin with the same numbers, and keep their own layers
    pipe = pipeline(GPT2LMHeadModel(config), (tokens[:CONTEXT].view(1, -1),), split_spec=count)
    mine = [rank] if single else [rank, 2 * ranks - 1 - rank] if "ZBV" in args.schedule else [rank, ranks + rank]
    stages = [pipe.build_stage(s, "cpu") for s in mine]
    schedule = get_schedule_class(args.schedule)(stages[0] if single else stages, args.microbatches, loss_of)
    if rank == 0:
        print(f"{pipe}\n{schedule}\nof its time a rank waits {schedule.bubble:.0%}")

    numbers = {id(p): p for stage in stages for p in stage.submod.parameters()}
    optimizer = votive.optim.AdamW(list(numbers.values()), lr=3e-3)
    picked = votive.Generator().manual_seed(args.seed)  # the same batches on the first rank and on the last
    losses: list[votive.Tensor] = []
    for _ in range(args.steps):
        at = votive.randint(0, len(tokens) - CONTEXT - 1, (4 * args.microbatches,), generator=picked).tolist()
        x = votive.stack([tokens[i : i + CONTEXT] for i in at])
        y = votive.stack([tokens[i + 1 : i + CONTEXT + 1] for i in at])
        optimizer.zero_grad()
        schedule.step(*((x,) if 0 in mine else ()), target=y if count - 1 in mine else None, losses=losses)
        optimizer.step()
    if losses:
        print(f"loss {votive.stack(losses).mean().item():.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="A GPT as a pipeline.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--microbatches", type=int, default=4)
    parser.add_argument("--schedule", default="1F1B", help="1F1B, GPipe, Interleaved1F1B, ZBVZeroBubble …")
    parser.add_argument("--seed", type=int, default=0)
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
