"""What the glass engine costs: nothing attached, layers captured, every call seen, stepped through.

    python -m benchmarks.glass [--model NAME] [--tokens 64]

Ratios to a plain forward of the same model, taken in turns. "Without the engine" is the same model
with a `Module.__call__` that knows no hooks at all.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import votive
from votive import glass, nn
from votive.core.mode import Ever, mode
from votive.models import AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM, bundled
from votive.nn.address import Path as ModulePath
from votive.nn.address import locate

from .pairing import pair


def _call_without_hooks(self: Any, *args: Any, **kwargs: Any) -> Any:
    """`Module.__call__` with the path, which errors need, and no question about hooks."""
    before = mode.module_path
    if before.__class__ is ModulePath:
        path = before.below.get(id(self)) or locate(self, before)
    else:
        path = locate(self, before)
    mode.module_path = path
    if path and not before:
        mode.noted = Ever.noted = True
    try:
        return self.forward(*args, **kwargs)
    finally:
        mode.module_path = before
        if path and not before:
            mode.renew()


def without_engine(run: Callable[[], Any]) -> Callable[[], Any]:
    """`run` while modules know no hooks."""
    with_hooks = nn.Module.__call__

    def changed() -> Any:
        nn.Module.__call__ = _call_without_hooks  # type: ignore[method-assign]
        try:
            return run()
        finally:
            nn.Module.__call__ = with_hooks  # type: ignore[method-assign]

    return changed


def model_named(name: str | None) -> Any:
    """The bundled model, one that is named, or one of its shape."""
    if name is not None:
        return AutoModelForCausalLM.from_pretrained(name, dtype=votive.float32)
    if bundled():
        return AutoModelForCausalLM.from_pretrained(bundled()[0], dtype=votive.float32)
    config = Qwen3Config(
        vocab_size=4096,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=32,
    )
    return Qwen3ForCausalLM(config).eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    model = model_named(args.model)
    ids = votive.arange(args.tokens).unsqueeze(0) + 5
    whole = {str(n.address): n for n in glass.tree(model, ids).walk()}
    layers = [a for a in whole if a.rpartition(".")[0].endswith((".layers", ".h"))]

    def plain() -> Any:
        with votive.no_grad():
            return model(ids)

    def captured(at: Any, policy: str) -> Callable[[], Any]:
        def run() -> Any:
            with votive.no_grad(), glass.capture(model, at, policy=policy):
                return model(ids)

        return run

    def stepped() -> Any:
        with votive.no_grad(), votive.debug(model, ids) as d:
            return d.finish()

    rows = {
        "nothing attached / without the engine": pair("off", plain, without_engine(plain), args.rounds),
        f"outputs of {len(layers)} layers kept": pair(
            "layers", captured(f"^{layers[0].rpartition('.')[0]}.*", "keep"), plain, args.rounds
        ),
        "every module's output kept": pair("all", captured("**", "keep"), plain, args.rounds),
        "every operator's result seen": pair("ops", captured(["**", "/**"], "keep"), plain, args.rounds),
        "a whole run under the debugger": pair("debug", stepped, plain, args.rounds),
    }
    print(f"{args.tokens} tokens, {votive.get_num_threads()} threads")
    for name, r in rows.items():
        print(f"{name:40s} {r.ratio:5.2f} ({r.low:.2f}..{r.high:.2f})  {r.votive_us / 1e3:.2f} ms")
    if args.json is not None:
        found = {n: {"ratio": r.ratio, "low": r.low, "high": r.high} for n, r in rows.items()}
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
