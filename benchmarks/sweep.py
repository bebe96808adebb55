"""What a patching sweep costs, beside one full forward per site and position.

    python -m benchmarks.sweep [--model NAME] [--tokens 24] [--rounds 3]

The other side is as many plain forwards as the sweep has cells, without any patch: what the naive
loop would at least take. All positions differ between the two texts, so that no cell is known
beforehand. Both are taken in turns.
"""

from __future__ import annotations

import argparse
from typing import Any

import votive
from votive import glass

from .glass import model_named
from .pairing import pair


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model")
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    model = model_named(args.model)
    clean = votive.arange(args.tokens).unsqueeze(0) + 5
    corrupt = clean + args.tokens
    layers = [f"^{n}" for n in glass.find_parts(model).names]

    def metric(out: Any) -> Any:
        return out.logits[:, -1, 7] - out.logits[:, -1, 8]

    def swept() -> Any:
        return glass.sweep(model, clean, corrupt, metric=metric, sites=layers, batch=args.batch)

    def plain() -> None:
        with votive.no_grad():
            for _ in range(len(layers) * args.tokens):
                metric(model(corrupt))

    row = pair("sweep", swept, plain, args.rounds)
    print(
        f"{len(layers)} layers x {args.tokens} positions, {votive.get_num_threads()} threads: "
        f"sweep {row.votive_us / 1e6:.2f} s, one forward per cell {row.torch_us / 1e6:.2f} s, "
        f"ratio {row.ratio:.2f} ({row.low:.2f}..{row.high:.2f})"
    )


if __name__ == "__main__":
    main()
