"""Train a small GPT on characters, its parameters and optimizer states in shards, with checkpoints that any number of
ranks resumes.

    votive launch -n 2 examples/distributed_gpt.py --folder run     # processes
    votive launch -n 1:2 --max-restarts 3 examples/distributed_gpt.py --folder run
    python examples/distributed_gpt.py --ranks 2                    # threads of one process, to see how it works

Kill a rank and start again, with as many ranks or others: training goes on from the last checkpoint. A step is always
of 32 windows, whoever takes them.
"""

import argparse
from pathlib import Path

import votive
import votive.distributed as dist
from votive.data import DataLoader, Dataset
from votive.models.gpt2 import GPT2Config, GPT2LMHeadModel
from votive.nn import functional as F
from votive.train import Trainer

TEXT = Path(__file__).parent / "data" / "tiny.txt"
WINDOWS = 32


class Characters(Dataset):
    """Windows of a text, as (characters, the ones behind them)."""

    def __init__(self, text: str, context: int) -> None:
        self.letters = sorted(set(text))
        places = {letter: i for i, letter in enumerate(self.letters)}
        self.text, self.context = votive.tensor([places[letter] for letter in text]), context

    def __len__(self) -> int:
        return (len(self.text) - 1) // self.context

    def __getitem__(self, i: int) -> tuple[votive.Tensor, votive.Tensor]:
        window = self.text[i * self.context : (i + 1) * self.context + 1]
        return window[:-1], window[1:]


def loss_of(model: GPT2LMHeadModel, batch: tuple[votive.Tensor, votive.Tensor]) -> votive.Tensor:
    """The mean loss, in nats, of guessing each character."""
    x, y = batch
    return F.cross_entropy(model(x, use_cache=False).logits.flatten(0, 1), y.flatten())


def train(args: argparse.Namespace) -> None:
    """What every rank does."""
    data = Characters(TEXT.read_text(), args.context)
    cut = len(data) * 9 // 10
    training, held = votive.data.Subset(data, range(cut)), votive.data.Subset(data, range(cut, len(data)))
    config = GPT2Config(
        vocab_size=len(data.letters), n_positions=args.context, n_embd=args.width, n_layer=2, n_head=2,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    total = sum(p.numel() for p in model.parameters())
    optimizer = votive.optim.AdamW(model.parameters(), lr=3e-3)
    trainer = Trainer(
        model, optimizer, step=loss_of, distributed="sharded", seed=args.seed, max_steps=args.steps, clip_grad_norm=1.0,
        train_data=DataLoader(training, WINDOWS // dist.get_world_size(), shuffle=True, drop_last=True),
        eval_data=DataLoader(held, 8), folder=args.folder, checkpoint_every=args.every,
        progress=None if args.folder else False,
    )  # fmt: skip
    history = trainer.fit()
    if dist.get_rank() == 0:
        here = sum(p.numel() for p in model.parameters())
        print(f"{dist.get_world_size()} ranks; the first holds {here:,} of {total:,} numbers")
        print(f"loss {history['loss'][-1]:.3f}  held-out loss {history.evals[-1]['loss']:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="A GPT whose parameters are in shards.")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--every", type=int, default=50, help="steps between checkpoints")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--context", type=int, default=32)
    parser.add_argument("--folder", help="where checkpoints go, and where training goes on from")
    parser.add_argument("--seed", type=int, default=0)
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
