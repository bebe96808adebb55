"""The joined operators of one token give the CPU's numbers, and compiled steps are made of them."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive.models import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM
from votive.ops.registry import F as ops

from .device import agree, cpu_fallbacks

HERE = "webgpu"
each_type = pytest.mark.parametrize("dtype", [votive.float32, votive.bfloat16], ids=str)


def _both(run: Any, *given: Any) -> None:
    """The CPU's result, and what it writes, is that of the device."""

    def moved(v: Any) -> Any:
        if isinstance(v, list):
            return [moved(x) for x in v]
        return v.to(HERE) if isinstance(v, votive.Tensor) else v

    there = [moved(v) for v in given]
    theirs = run(*given)
    with cpu_fallbacks() as left:
        ours = run(*there)
    assert not left
    agree(ours, theirs, "result", rtol=3e-2 if theirs.dtype is votive.bfloat16 else None)
    for x, y in zip(there, given, strict=True):
        if isinstance(x, votive.Tensor):
            agree(x, y, "argument")


@each_type
@pytest.mark.parametrize("rows", [1, 3])
def test_a_norm_and_its_products(dtype: Any, rows: int) -> None:
    votive.manual_seed(0)
    x, norm = votive.randn(rows, 1, 48, dtype=dtype), votive.randn(48, dtype=dtype)
    weights = [votive.randn(n, 48, dtype=dtype) / 7 for n in (6, 4, 5)]
    _both(lambda *a: ops._norm_linear(a[0], a[1], 1e-5, a[2], False), x, norm, weights)
    pair = [votive.randn(12, 48, dtype=dtype) / 7 for _ in range(2)]
    _both(lambda *a: ops._norm_linear(a[0], a[1], 1e-5, a[2], True), x, norm, pair)
    _both(ops._linear_add, x, votive.randn(10, 48, dtype=dtype) / 7, votive.randn(rows, 1, 10, dtype=dtype))


@each_type
@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("at", [0, 5, 69])
def test_heads_are_rotated_kept_and_attended_with(dtype: Any, normed: bool, at: int) -> None:
    votive.manual_seed(0)
    batch, heads, shared, length, width = 2, 4, 2, 70, 8
    qkv = votive.randn(batch, 1, (heads + 2 * shared) * width, dtype=dtype)
    norms = [votive.rand(width, dtype=dtype) + 0.5 for _ in range(2)] if normed else [None, None]
    angles = votive.rand(length, width // 2)
    keys, values = (votive.randn(batch, shared, length, width, dtype=dtype) for _ in range(2))
    position, counts = votive.tensor([at]), votive.zeros(batch * shared, dtype=votive.int32)

    def run(qkv: Any, cos: Any, sin: Any, keys: Any, values: Any, position: Any, counts: Any, *norms: Any) -> Any:
        q, k = norms or (None, None)
        return ops._rotate_and_attend(qkv, q, k, 1e-5, cos, sin, keys, values, position, counts, heads, width**-0.5)

    given = (qkv, angles.cos().to(dtype), angles.sin().to(dtype), keys, values, position, counts)
    _both(run, *given, *(norms if normed else []))


def _models() -> dict[str, Any]:
    size = {
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 128,
    }
    votive.manual_seed(2)
    return {"llama": LlamaForCausalLM(LlamaConfig(**size)), "qwen3": Qwen3ForCausalLM(Qwen3Config(**size, head_dim=8))}


@pytest.mark.parametrize("name", ["llama", "qwen3"])
def test_a_compiled_step_takes_five_dispatches_a_layer(name: str) -> None:
    model = _models()[name].eval()
    ids = votive.randint(0, 64, (1, 7))
    theirs = model.generate(ids, max_new_tokens=24, do_sample=False)
    model.to(HERE)
    ours = model.generate(ids.to(HERE), max_new_tokens=24, do_sample=False, compile=True)
    assert ours.tolist() == theirs.tolist()
    before = votive.webgpu.dispatch_count()
    model.generate(ids.to(HERE), max_new_tokens=24, do_sample=False, compile=True)
    assert (votive.webgpu.dispatch_count() - before) / 24 <= 5 * 3 + 15
