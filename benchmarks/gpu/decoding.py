"""Steps a second of a decoder of 8 billion parameters with random weights, for several batches:
`python -m benchmarks.gpu.decoding [--rows 1 8 32] [--layers 32] [--blocks q4_k]`.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

# Llama 3's shape of 8 billion parameters.
SHAPE = {
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
    "rope_theta": 500000.0,
}
CONTEXT, STEPS = 64, 100


def model(layers: int, **shape: Any) -> Any:
    """A Llama in bfloat16 on the GPU."""
    import votive
    from votive.models import LlamaConfig, LlamaForCausalLM

    votive.manual_seed(0)
    before = votive.get_default_dtype()
    votive.set_default_dtype(votive.bfloat16)
    try:
        with votive.device("cuda"):
            return LlamaForCausalLM(LlamaConfig(num_hidden_layers=layers, **(SHAPE | shape))).eval()
    finally:
        votive.set_default_dtype(before)


def in_blocks(model: Any, name: str) -> Any:
    """The same model whose linear layers have random codes of a block format, and scales that keep numbers small."""
    import votive
    from votive.surface.block_tensor import from_blocks

    from .quantized import codes

    for part in model.modules():
        if isinstance(part, votive.nn.Linear):
            data, kind = codes(name, *part.weight.shape)
            blocks = from_blocks(data, kind, compute_dtype=votive.bfloat16)
            part.weight = votive.nn.Parameter(blocks, requires_grad=False)
    votive.cuda.empty_cache()
    return model


def steps(model: Any, rows: int, context: int = CONTEXT, count: int = STEPS) -> float:
    """Steps a second of a batch, greedy; the choice is on the device."""
    import votive
    from votive.generation.graphs import GraphStepper

    ids = votive.randint(0, model.config.vocab_size, (rows, context), device="cuda")
    with votive.no_grad():
        cache = votive.nn.StaticCache(context + count + 64)
        stepper = GraphStepper(model, cache=cache, max_length=cache.max_length)
        token = stepper.feed(ids).logits.argmax(-1)
        for _ in range(4):
            token = stepper.advance(token).logits.argmax(-1)
        votive.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(count):
            token = stepper.advance(token).logits.argmax(-1)
        votive.cuda.synchronize()
        return count / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--blocks", help="weights of linear layers in blocks of this format")
    args = parser.parse_args()
    llama = model(args.layers)
    if args.blocks:
        llama = in_blocks(llama, args.blocks)
    for rows in args.rows:
        print(f"{rows:3} rows: {steps(llama, rows):.0f} steps/s", flush=True)


if __name__ == "__main__":
    main()
