"""Fine-tune a frozen network on a new task with low-rank adapters, then merge them away.

    python examples/lora.py

A network learns digits; its adapters then learn digits seen in a mirror.

Result: 61.3 % right in the mirror before, 95.2 % after 1,000 steps that train 9,424 numbers beside
the 105,482 frozen ones; merging moves no output by more than 4e-5; 9 to 10 s on a busy machine.
"""

import argparse
import time

from digits import SIDE, accuracy, draw
from progress import Line

import votive
from votive import nn
from votive.nn import functional as F


def task(count: int, seed: int, changed: bool) -> tuple[votive.Tensor, votive.Tensor]:
    """Digits as drawn, or as a mirror shows them."""
    images, labels = draw(count, seed, noise=0.1)
    return (images.flip(-1) if changed else images), labels


def fit(model: nn.Module, data: tuple, steps: int, lr: float, label: str) -> float:
    """Train whatever in the model is not frozen; returns the last loss."""
    images, labels = data
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = votive.optim.AdamW(trained, lr=lr)
    line = Line(steps, label)
    for _ in line:
        pick = votive.randint(len(labels), (64,))
        loss = F.cross_entropy(model(images[pick]), labels[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        line.show(loss=loss.item())
    return loss.item()


def main() -> None:
    parser = argparse.ArgumentParser(description="Fine-tune with LoRA, then merge.")
    parser.add_argument("--steps", type=int, default=1000, help="steps of each of the two phases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rank", type=int, default=8)
    args = parser.parse_args()

    votive.manual_seed(args.seed)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(SIDE * SIDE, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 10)
    )
    old, new = (task(2000, args.seed + 1, changed) for changed in (False, True))
    began = time.perf_counter()

    fit(model, task(8000, args.seed, changed=False), args.steps, 2e-3, "pretraining")
    before = accuracy(model, *old), accuracy(model, *new)

    whole = sum(p.numel() for p in model.parameters())
    nn.apply_lora(model, "*", r=args.rank, alpha=2 * args.rank)
    small = sum(p.numel() for p in model.parameters() if p.requires_grad)
    fit(model, task(8000, args.seed, changed=True), args.steps, 5e-3, "adapting")
    after = accuracy(model, *new)
    seconds = time.perf_counter() - began

    with votive.no_grad():
        adapted = model(new[0])
        nn.merge_lora(model)  # plain Linears again, of the first model's shapes
        drift = (model(new[0]) - adapted).abs().max().item()

    print(f"old task {before[0]:.3f}  new task before {before[1]:.3f}, after {after:.3f}")
    print(f"trained {small} of {whole} parameters  merging moved outputs by {drift:.1e}", end="  ")
    print(f"seconds {seconds:.1f}")


if __name__ == "__main__":
    main()
