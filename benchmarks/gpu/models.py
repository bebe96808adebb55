"""Whole steps on a GPU: training GPT-2 and generating with a Qwen3 of 0.6 billion parameters."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from . import failure

BATCH, LENGTH, VOCABULARY = 16, 1024, 50304


def _rate(step: Any, sync: Any, tokens: int, rounds: int, each: int) -> tuple[float, float]:
    """(tokens a second, spread) from the median of several rounds."""
    for _ in range(3):
        step()
    sync()
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(each):
            step()
        sync()
        found.append(tokens * each / (time.perf_counter() - began))
    return statistics.median(found), (max(found) - min(found)) / statistics.median(found)


def _training_step(lib: Any, model: Any, ids: Any) -> Callable[[], Any]:
    """One step of AdamW under bf16 autocast, by either library."""
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    x = lib.tensor(ids, device="cuda")

    def step() -> Any:
        with lib.autocast("cuda", dtype=lib.bfloat16):
            loss = model(x, labels=x).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


def training(rounds: int = 5, each: int = 10) -> list[dict[str, Any]]:
    """GPT-2 of 124 million parameters, bf16 autocast, AdamW."""
    import numpy as np

    import votive
    from votive.models import GPT2Config, GPT2LMHeadModel

    ids = np.random.default_rng(0).integers(0, 50257, (BATCH, LENGTH))
    votive.manual_seed(0)
    none = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
    with votive.device("cuda"):
        model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, **none))
    model.train()
    step = _training_step(votive, model, ids)
    rows = []
    first = step().item()
    speed, spread = _rate(step, votive.cuda.synchronize, BATCH * LENGTH, rounds, each)
    rows.append({"name": "GPT-2 124M training, eager", "votive": speed, "spread": spread, "loss": first})
    rows[-1]["memory"] = votive.cuda.max_memory_allocated()
    try:
        graphed = votive.cuda.make_graphed(step)
        speed, spread = _rate(graphed, votive.cuda.synchronize, BATCH * LENGTH, rounds, each)
        rows.append({"name": "GPT-2 124M training, graph", "votive": speed, "spread": spread})
        rows[-1]["loss"] = graphed().item()
    except Exception as e:  # the figure of single launches stands
        rows.append(failure("GPT-2 124M training, graph", e))
    return rows


def torch_training(rounds: int = 5, each: int = 10, compiled: bool = False) -> list[dict[str, Any]]:
    """The same by torch and transformers."""
    import numpy as np
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    ids = np.random.default_rng(0).integers(0, 50257, (BATCH, LENGTH))
    none = {"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0}
    config = GPT2Config(vocab_size=VOCABULARY, use_cache=False, **none)
    config._attn_implementation = "sdpa"
    model = GPT2LMHeadModel(config).cuda().train()
    if compiled:
        model = torch.compile(model)
    step = _training_step(torch, model, ids)
    speed, spread = _rate(step, torch.cuda.synchronize, BATCH * LENGTH, rounds, each)
    name = "compiled" if compiled else "eager"
    return [{"name": f"GPT-2 124M training, torch {name}", "votive": speed, "spread": spread}]


def decoding(context: int = 256, tokens: int = 200) -> list[dict[str, Any]]:
    """Tokens a second of batch 1 behind `context` tokens, greedy; the choice is on the device."""
    import votive
    from votive.generation.graphs import GraphStepper
    from votive.models import Qwen3Config, Qwen3ForCausalLM

    votive.manual_seed(0)
    config = Qwen3Config(
        vocab_size=151936,
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=28,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
    )
    with votive.device("cuda"):
        model = Qwen3ForCausalLM(config).to(votive.bfloat16).eval()
    ids = votive.randint(0, 150000, (1, context), device="cuda")
    rows = []
    with votive.no_grad():
        for name, make in (("eager", None), ("graph", GraphStepper)):
            try:
                from votive.generation.stepping import DecoderStepper

                cache = votive.nn.StaticCache(context + 2 * tokens + 64)
                stepper = (make or DecoderStepper)(model, cache=cache, max_length=cache.max_length)
                token = stepper.feed(ids).logits.argmax(-1)
                some = tokens if make else 24
                for _ in range(4):
                    token = stepper.advance(token).logits.argmax(-1)
                votive.cuda.synchronize()
                began = time.perf_counter()
                for _ in range(some):
                    token = stepper.advance(token).logits.argmax(-1)
                votive.cuda.synchronize()
                speed = some / (time.perf_counter() - began)
                row = {"name": f"Qwen3-0.6B decode, {name}", "votive": speed}
                if make:
                    row["launches"] = stepper.captured.nodes()
                rows.append(row)
            except Exception as e:  # the other way is measured all the same
                rows.append(failure(f"Qwen3-0.6B decode, {name}", e))
    return rows
