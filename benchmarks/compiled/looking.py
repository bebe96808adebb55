"""What looking into a compiled model costs: `python -m benchmarks.compiled.looking [cpu|cuda]`.

A hand-written GPT, compiled, with captures and edits against the same compiled model without them, in turns.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable
from typing import Any

import votive
from votive import glass

from ..pairing import pair
from .programs import gpt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", nargs="?", default="cpu")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=30.0)
    args = parser.parse_args()
    cuda = args.device == "cuda"
    votive.manual_seed(0)
    sizes: dict[str, Any] = {"vocabulary": 4096, "width": 256, "layers": 6, "heads": 8, "length": 256, "plain": False}
    if cuda:
        sizes = {"vocabulary": 50304, "width": 768, "layers": 12, "heads": 12, "length": 1024, "plain": True}
    model = gpt(votive, **sizes).to(args.device)
    shape = (8, 1024) if cuda else (4, 128)
    ids = votive.randint(0, sizes["vocabulary"], shape, device=args.device)
    compiled = votive.compile(model)

    def run(fn: Any, training: bool) -> Any:
        with votive.set_grad_enabled(training), votive.autocast(args.device, dtype=votive.bfloat16, enabled=cuda):
            loss = fn(ids, ids)
        if training:
            loss.backward()
            model.zero_grad()
        if cuda:
            votive.cuda.synchronize()
        return loss

    def under(around: Callable[[], Any], training: bool) -> Callable[[], Any]:
        def measured() -> Any:
            with around():
                return run(compiled, training)

        return measured

    direction = votive.ones(sizes["width"], device=args.device)
    ways: dict[str, Callable[[], Any]] = {
        "outputs of all layers kept": lambda: glass.capture(compiled, "blocks.*"),
        "outputs of all layers copied": lambda: glass.capture(compiled, "blocks.*", policy="copy"),
        "outputs of all modules kept": lambda: glass.capture(compiled, "**"),
        "a vector added to a layer": lambda: glass.patch(
            compiled, glass.Edit("blocks.2", "add", direction), measure=False
        ),
    }
    # One thread's own time, where there is one: others on the machine disturb it less.
    clock = time.process_time if not cuda and votive.get_num_threads() == 1 else time.perf_counter
    for training in (False, True):
        kind = "training step" if training else "forward"
        plain = under(contextlib.nullcontext, training)
        for name, way in ways.items():
            looking = under(way, training)
            for fn in (plain, looking):
                for _ in range(4):
                    fn()
            r = pair(name, looking, plain, args.rounds, args.seconds, clock=clock)
            text = f"{kind:14s} {name:30s} {r.ratio:5.3f} ({r.low:.2f}..{r.high:.2f})"
            print(f"{text}  {r.votive_us / 1e3:.2f} against {r.torch_us / 1e3:.2f} ms", flush=True)
        eager = pair(
            "eager", plain, lambda training=training: run(model, training), args.rounds, args.seconds, clock=clock
        )
        print(
            f"{kind:14s} {'compiled against eager':30s} {eager.ratio:5.3f} ({eager.low:.2f}..{eager.high:.2f})",
            flush=True,
        )
    found = votive.compiler.explain(compiled)
    print(f"{len(found.versions)} versions", found.eager, *found.refused)


if __name__ == "__main__":
    main()
