"""One token at long context with keys and values in full and in few bits: time, and bytes of a position.

    python -m benchmarks.caches                    # 4096 positions, one thread
    python -m benchmarks.caches --context 16384 --threads 2 --model bfloat16

The caches are filled with random rows and take turns, so that what else the machine does meets all alike; the best and
the median of each count, and the median of the ratios of neighbours to the first.
"""

from __future__ import annotations

import argparse
import statistics
import time

import votive
from votive import nn
from votive.models import LlamaConfig, LlamaForCausalLM

KEPT = (None, "q8_0", "q5_0", "q4_0", "iq4_nl", "int8", "fp8")


def filled(model: LlamaForCausalLM, kept: str | None, context: int) -> nn.DynamicCache:
    """A cache that has seen a text of random rows."""
    config = model.config
    _, heads, width = config.head_sizes()
    cache = nn.DynamicCache(overwrite=True, dtype=kept)
    for layer in range(config.num_hidden_layers):
        rows = votive.randn(1, heads, context - 1, width).to(model.dtype)
        cache.update(rows[:, :, :-1], rows[:, :, :-1], layer)
        cache.update(rows[:, :, -1:], rows[:, :, -1:], layer)  # makes room behind
    return cache


def step(model: LlamaForCausalLM, cache: nn.DynamicCache, context: int) -> float:
    """Milliseconds of the token at the end of the context."""
    start = time.perf_counter()
    model(votive.tensor([[1]]), past_key_values=cache, use_cache=True)
    took = time.perf_counter() - start
    cache.crop(context - 1)
    return 1e3 * took


def main() -> None:
    """Measure and print a table."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    p.add_argument("--context", type=int, default=4096)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=12)
    p.add_argument("--model", choices=("float32", "bfloat16"), default="float32")
    given = p.parse_args()
    votive.set_num_threads(given.threads)
    votive.manual_seed(0)
    config = LlamaConfig(
        vocab_size=1000,
        hidden_size=1024,
        intermediate_size=2816,
        num_hidden_layers=8,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=64,
        max_position_embeddings=given.context,
    )
    model = LlamaForCausalLM(config).eval().to(getattr(votive, given.model))
    with votive.no_grad():
        caches = {kept or given.model: filled(model, kept, given.context) for kept in KEPT}
        times: dict[str, list[float]] = {name: [] for name in caches}
        for _ in range(given.rounds):
            for name, cache in caches.items():
                times[name].append(step(model, cache, given.context))
    first = times[given.model]
    print(f"Llama of 8 layers, 8 x 64 keys a layer, {given.context} positions, {given.threads} thread(s)")
    for name, cache in caches.items():
        ratio = statistics.median(a / b for a, b in zip(times[name], first, strict=True))
        print(
            f"{name:10} {cache.nbytes() / (given.context - 1):8.0f} bytes/token  best {min(times[name]):7.2f} ms  "
            f"median {statistics.median(times[name]):7.2f} ms  ratio {ratio:.2f}"
        )


if __name__ == "__main__":
    main()
