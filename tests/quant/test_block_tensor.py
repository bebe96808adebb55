"""Tensors whose dtype is a block format: what computes, what moves, what is refused."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.core.blocks import FORMATS, block_dtype
from votive.core.errors import UnsupportedError
from votive.io.gguf import QUANTIZABLE, quantize
from votive.io.safetensors import load, load_file, save, save_file
from votive.nn import functional as F
from votive.serialization.container import FileFormatError
from votive.surface.block_tensor import BlockTensor, from_blocks

NAMES = [n.lower() for n in QUANTIZABLE if n.lower() in FORMATS and not n.startswith(("IQ1", "IQ2", "IQ3"))]


def blocks(name: str, rows: int = 6, columns: int = 256, seed: int = 0) -> BlockTensor:
    x = np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)
    return from_blocks(votive.from_numpy(quantize(x, name)), name)


@pytest.fixture
def w() -> BlockTensor:
    return blocks("q4_k")


@pytest.fixture
def exact() -> Any:
    before = votive.backends.quantized.activations
    votive.backends.quantized.activations = "exact"
    yield
    votive.backends.quantized.activations = before


def close(a: Any, b: Any, tolerance: float = 1e-5) -> None:
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    assert float((a - b).abs().max()) <= tolerance * max(1.0, float(b.abs().max()))


def test_a_format_is_a_dtype_with_sizes() -> None:
    assert votive.q4_k is FORMATS["q4_k"]
    assert isinstance(votive.q4_k, votive.dtype)
    assert (votive.q4_k.block_size, votive.q4_k.block_bytes, votive.q4_k.itemsize) == (256, 144, 0.5625)
    assert pickle.loads(pickle.dumps(votive.q8_0)) is votive.q8_0
    assert "q4_k" in dir(votive)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [votive.float32, votive.bfloat16, votive.float64])
def test_products_and_tables_are_those_of_the_numbers(name: str, dtype: votive.dtype, exact: None) -> None:
    q = blocks(name).computing_in(dtype)
    d = q.dequantize()
    assert d.dtype is dtype
    x = votive.randn(2, 3, 256, generator=votive.Generator().manual_seed(1)).to(dtype)
    bias = votive.arange(6).to(dtype)
    tolerance = {votive.float32: 1e-5, votive.bfloat16: 2e-2, votive.float64: 1e-12}[dtype]
    close(F.linear(x, q), F.linear(x, d), tolerance)
    close(F.linear(x, q, bias), F.linear(x, d, bias), tolerance)
    close(x @ q.T, x @ d.T, tolerance)
    close(x[..., :6] @ q, x[..., :6] @ d, tolerance)
    close(q @ x[0].T, d @ x[0].T, tolerance)
    close(q @ x[0, 0], d @ x[0, 0], tolerance)
    close(votive.addmm(bias, x[0], q.t()), votive.addmm(bias, x[0], d.t()), tolerance)
    at = votive.tensor([[5, 0], [1, 1]])
    assert F.embedding(at, q).equal(F.embedding(at, d))


def test_eight_bits_of_the_input_cost_half_a_step_of_their_scale(w: BlockTensor) -> None:
    x = votive.randn(1, 256, generator=votive.Generator().manual_seed(2))
    step = x.abs().reshape(8, 32).amax(-1, keepdim=True) / 127
    bound = (w.dequantize().abs().reshape(6, 8, 32) * step / 2).sum((1, 2))
    assert ((F.linear(x, w) - F.linear(x, w.dequantize())).abs()[0] <= bound * 1.01).all()


def test_gradients_go_through_to_the_input(w: BlockTensor) -> None:
    x = votive.randn(3, 256, requires_grad=True)
    y = votive.randn(3, 256, requires_grad=True)
    y.data.copy_(x.data)
    weight = votive.randn(3, 6)
    (F.linear(x, w) * weight).sum().backward()
    (F.linear(y, w.dequantize()) * weight).sum().backward()
    close(x.grad, y.grad)


def test_second_gradients_are_those_of_a_linear_map(w: BlockTensor) -> None:
    x = votive.randn(2, 256, requires_grad=True)
    (g,) = votive.autograd.grad((F.linear(x, w) ** 2).sum(), x, create_graph=True)
    (h,) = votive.autograd.grad(g.sum(), x)
    d = w.dequantize()
    close(h, 2 * (votive.ones(2, 256) @ d.T) @ d, 1e-4)


MOVES: list[Callable[[Any], Any]] = [
    lambda t: t[2:5],
    lambda t: t[3],
    lambda t: t[-1:, :],
    lambda t: t[..., :],
    lambda t: t[votive.tensor([4, 0, 0])],
    lambda t: t[votive.tensor([True, False, True, False, True, False])],
    lambda t: t[None, 1:3],
    lambda t: t[None],
    lambda t: t[1:2, None],
    lambda t: t[..., 2:4, :],
    lambda t: t.select(0, 2),
    lambda t: t.narrow(0, 1, 3),
    lambda t: t.chunk(3)[1],
    lambda t: t.split([1, 5])[1],
    lambda t: t.unbind()[5],
    lambda t: t.index_select(0, votive.tensor([5, 2])),
    lambda t: t.reshape(2, 3, 256)[1],
    lambda t: t.view(3, -1, 256)[2, 1],
    lambda t: votive.cat([t, t[:1]]),
    lambda t: t.unsqueeze(0),
    lambda t: t.T,
    lambda t: t.transpose(0, 1).transpose(0, 1),
    lambda t: t.permute(1, 0),
    lambda t: t.clone(),
    lambda t: t.contiguous(),
    lambda t: t.detach(),
    lambda t: t.data,
    lambda t: t.cpu(),
    lambda t: votive.stack([t, t]),
    lambda t: votive.stack([t[:2], t[2:4]], dim=-2),
    lambda t: t.expand(3, 6, 256),
    lambda t: t[1].expand(4, -1),
    lambda t: t.repeat(2, 1),
    lambda t: t.repeat(3, 1, 2),
    lambda t: t[None, :1].squeeze(),
    lambda t: t[None].squeeze(0),
    lambda t: t.view(2, 3, 256).flatten(0, 1),
    lambda t: t.unflatten(0, (2, 3)),
    lambda t: t.expand_as(votive.empty(2, 6, 256)),
]


@pytest.mark.parametrize("move", MOVES)
def test_whole_rows_move_without_being_decoded(move: Callable[[Any], Any], w: BlockTensor) -> None:
    moved, want = move(w), move(w.dequantize())
    assert isinstance(moved, BlockTensor)
    assert moved.dtype is votive.q4_k
    assert moved.dequantize().equal(want)


def test_a_slice_of_rows_shares_the_bytes(w: BlockTensor) -> None:
    part = w[2:4]
    assert part.data_ptr() == w.data_ptr() + 2 * 144
    w.blocks[2:] = 0
    assert float(part.dequantize().abs().max()) == 0


def test_whole_rows_are_written(w: BlockTensor) -> None:
    other, numbers = blocks("q4_k", seed=1), votive.randn(2, 256)
    w[0] = other[3]
    w[[2, 4]] = numbers
    w[5:] = 0
    assert w[0].equal(other[3])
    assert w[[2, 4]].equal(numbers.to(votive.q4_k))
    assert float(w[5].dequantize().abs().max()) == 0
    plain = votive.zeros(2, 256)
    plain[1] = w[0]
    assert plain[1].equal(w[0].dequantize())


def test_numbers_and_rows_become_blocks_where_a_tensor_is_made() -> None:
    made = votive.tensor([[0.5] * 32], dtype=votive.q8_0)
    assert made.dtype is votive.q8_0
    assert made.equal(votive.full((1, 32), 0.5).to(votive.q8_0))
    same = votive.empty_like(made)
    assert (same.dtype, same.shape) == (votive.q8_0, made.shape)
    assert votive.empty_like(made, dtype=votive.float16).dtype is votive.float16


REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda t: t + 1, UnsupportedError, "add: not implemented for q4_k tensors; use .dequantize()"),
    (lambda t: t.sum(), UnsupportedError, "dequantize"),
    (lambda t: t * t, UnsupportedError, "dequantize"),
    (lambda t: t[0, 3], UnsupportedError, "single elements"),
    (lambda t: t[:, :32], UnsupportedError, "single elements"),
    (lambda t: t[..., 3], UnsupportedError, "single elements"),
    (lambda t: t[..., None], UnsupportedError, "last dimension"),
    (lambda t: t[:, :, None], UnsupportedError, "last dimension"),
    (lambda t: t.chunk(2, 1), UnsupportedError, "blocks lie along dimension 1"),
    (lambda t: t.view(-1), UnsupportedError, "last size must be 256"),
    (lambda t: t.flatten(), UnsupportedError, "blocks lie along dimension 1"),
    (lambda t: t.cuda("cpu"), RuntimeError, "must be a GPU"),
    (lambda t: t.expand(6, 512), UnsupportedError, "last size must be 256"),
    (lambda t: t.squeeze(1), UnsupportedError, "blocks lie along dimension 1"),
    (lambda t: votive.stack([t, t], 2), UnsupportedError, "last dimension"),
    (lambda t: votive.stack([t, t], 4), IndexError, "out of range"),
    (lambda t: votive.stack([t, t.dequantize()]), UnsupportedError, "same format"),
    (lambda t: t.to(votive.int8), UnsupportedError, "become float64"),
    (lambda t: t.__setitem__((0, 3), 1.0), UnsupportedError, "single elements"),
    (lambda t: t.T.contiguous(), UnsupportedError, "transposed"),
    (lambda t: t.T[3:5], UnsupportedError, "columns"),
    (lambda t: t.fill_(0), UnsupportedError, "dequantize"),
    (lambda t: t @ t.T, UnsupportedError, "both factors"),
    (lambda t: t.numpy(), TypeError, "dequantize"),
    (lambda t: t.requires_grad_(), RuntimeError, "no gradient"),
    (lambda t: votive.nn.Parameter(t), RuntimeError, "require gradients"),
    (lambda t: F.linear(votive.ones(2, 32), t), RuntimeError, "takes rows of 256"),
    (lambda t: F.linear(votive.ones(2, 256, dtype=votive.int64), t), RuntimeError, "q4_k weights go with"),
    (lambda t: votive.zeros(2, 256, dtype=votive.q4_k), UnsupportedError, "made from other tensors"),
    (lambda t: votive.cat([t, blocks("q8_0")]), UnsupportedError, "same format"),
    (lambda t: F.embedding(votive.tensor([6]), t), IndexError, "embedding"),
    (lambda t: from_blocks(votive.zeros(2, 100, dtype=votive.uint8), "q4_k"), ValueError, "whole number of blocks"),
    (lambda t: from_blocks(votive.zeros(2, 144), "q4_k"), TypeError, "uint8"),
    (lambda t: from_blocks(votive.zeros(2, 144, dtype=votive.uint8), "q9"), ValueError, "is not a block format"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_what_blocks_cannot_do_says_what_to_do(case: int, w: BlockTensor) -> None:
    call, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words):
        call(w)


def test_printing_says_the_format(w: BlockTensor) -> None:
    text = repr(w)
    assert text.startswith("tensor([[")
    assert text.endswith("dtype=votive.q4_k)")
    assert repr(votive.nn.Parameter(w, requires_grad=False)).startswith("Parameter containing:\ntensor(")


def test_a_module_keeps_its_blocks_when_it_is_cast_copied_and_moved(w: BlockTensor) -> None:
    layer = votive.nn.Linear(256, 6)
    layer.weight = votive.nn.Parameter(w, requires_grad=False)
    layer.bfloat16()
    assert layer.weight.dtype is votive.q4_k
    assert isinstance(layer.weight, votive.nn.Parameter)
    assert layer.weight.compute_dtype is votive.bfloat16
    assert layer.bias.dtype is votive.bfloat16
    assert layer(votive.ones(1, 256, dtype=votive.bfloat16)).dtype is votive.bfloat16
    other = copy.deepcopy(layer)
    assert other.weight.equal(w)
    assert other.weight.data_ptr() != w.data_ptr()
    assert isinstance(other.weight, votive.nn.Parameter)
    assert pickle.loads(pickle.dumps(w)).equal(w)
    other.weight.blocks.zero_()
    other.load_state_dict(layer.state_dict())
    assert other.weight.equal(w)
    assert [p for p in layer.parameters() if p.requires_grad] == [layer.bias]
    assert layer.weight.nbytes == 6 * 144
    assert layer.weight.numel() * layer.weight.element_size() == 6 * 144


def test_embedding_rows_have_the_dtype_that_the_module_computes_in(w: BlockTensor) -> None:
    table = votive.nn.Embedding.from_pretrained(w).half()
    assert table(votive.tensor([1])).dtype is votive.float16


def test_blocks_survive_files(w: BlockTensor, tmp_path: Path) -> None:
    votive.save({"a": w, "b": [w[2:4]], "kind": votive.q4_k}, tmp_path / "x")
    back = votive.load(tmp_path / "x")
    assert back["a"].equal(w)
    assert back["b"][0].equal(w[2:4])
    assert back["kind"] is votive.q4_k
    save_file({"w": w, "t": w.T.clone(), "b": votive.ones(3)}, tmp_path / "w.safetensors")
    found = load_file(tmp_path / "w.safetensors")
    assert found["w"].equal(w)
    assert found["t"].equal(w.T)
    assert found["b"].equal(votive.ones(3))
    assert load(save({"w": w}))["w"].equal(w)
    with votive.io.open_weights(tmp_path / "w.safetensors") as source:
        info = source.info("t")
        assert (info.shape, info.stored, info.dtype) == ((256, 6), "q4_k", votive.float32)
        assert source.tensor("t").equal(w.dequantize().T)
        assert source.slice("w", (slice(1, 3), slice(0, 5))).equal(w.dequantize()[1:3, :5])


@pytest.mark.parametrize(
    "told", ['{"w": ["q9"]}', '{"w": ["q4_0"]}', '{"v": ["q4_k"]}', '{"w": "q4_k"}', "[", '{"w": ["q4_k", "x"]}', "7"]
)
def test_a_file_that_tells_of_blocks_it_does_not_have_is_refused(told: str, tmp_path: Path) -> None:
    rows = votive.zeros(2, 145, dtype=votive.uint8)
    save_file({"w": rows}, tmp_path / "w.safetensors", {"votive.blocks": told})
    with pytest.raises(FileFormatError):
        load_file(tmp_path / "w.safetensors")


def test_compiled_programs_read_blocks_and_see_every_change(w: BlockTensor) -> None:
    layer = votive.nn.Linear(256, 6)
    layer.weight = votive.nn.Parameter(w.clone(), requires_grad=False)
    program = votive.compile(lambda x: votive.nn.functional.silu(layer(x)) * 2)
    x = votive.randn(3, 256, generator=votive.Generator().manual_seed(3))

    def same() -> None:
        assert program(x).equal(votive.nn.functional.silu(layer(x)) * 2)

    same()
    text = str(votive.compiler.explain(program))
    assert "_block_linear" in text
    assert "format=votive.q4_k" in text
    layer.weight.blocks[3:] = 0
    same()
    layer.weight = votive.nn.Parameter(blocks("q8_0"), requires_grad=False)
    same()
    votive.backends.quantized.activations = "exact"
    try:
        same()
    finally:
        votive.backends.quantized.activations = "int8"
    layer.weight = votive.nn.Parameter(w.dequantize())
    same()
    layer.weight = votive.nn.Parameter(w, requires_grad=False)
    x.requires_grad_()
    program(x).sum().backward()
    got, x.grad = x.grad, None
    (votive.nn.functional.silu(layer(x)) * 2).sum().backward()
    close(got, x.grad)


def test_generating_with_compiled_steps_gives_the_same_text() -> None:
    config = votive.models.LlamaConfig(
        vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2
    )
    votive.manual_seed(1)
    model = votive.models.LlamaForCausalLM(config).eval()
    for layer in model.modules():
        if isinstance(layer, votive.nn.Linear):
            data = votive.from_numpy(quantize(layer.weight.detach().numpy(), "q8_0"))
            layer.weight = votive.nn.Parameter(from_blocks(data, "q8_0"), requires_grad=False)
    ids = votive.tensor([[3, 1, 4]])
    plain, compiled = (
        model.generate(ids, max_new_tokens=6, do_sample=False, eos_token_id=None, compile=c) for c in (False, True)
    )
    assert plain.equal(compiled)


def test_a_gguf_model_computes_as_the_same_model_with_numbers(tmp_path: Path, exact: None) -> None:
    from votive.models.gguf_names import to_gguf

    config = votive.models.LlamaConfig(
        vocab_size=64, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4
    )
    votive.manual_seed(0)
    metadata, tensors = to_gguf(config, votive.models.LlamaForCausalLM(config).state_dict())
    path = tmp_path / "m.gguf"
    types = lambda name, shape, dtype: "Q8_0" if len(shape) == 2 else "F32"
    votive.io.gguf.write(path, tensors, metadata, types=types)
    kept = votive.models.AutoModelForCausalLM.from_pretrained(path)
    plain = votive.models.AutoModelForCausalLM.from_pretrained(path, dequantize=True)
    assert isinstance(kept.model.layers[0].self_attn.q_proj.weight.dtype, block_dtype)
    assert all(p.dtype is votive.float32 for p in plain.parameters())
    ids = votive.tensor([[1, 5, 9, 2]])
    with votive.no_grad():
        close(kept(ids).logits, plain(ids).logits, 1e-4)
    assert kept.generate(ids, max_new_tokens=5, do_sample=False).equal(
        plain.generate(ids, max_new_tokens=5, do_sample=False)
    )
    metadata, tensors = to_gguf(kept.config, kept.state_dict())
    votive.io.gguf.write(tmp_path / "again.gguf", tensors, metadata)
    first, second = votive.io.gguf.GGUFFile(path), votive.io.gguf.GGUFFile(tmp_path / "again.gguf")
    assert all((first.raw(name) == second.raw(name)).all() for name in first.names())
    kept.save_pretrained(tmp_path / "folder")
    again = votive.models.AutoModelForCausalLM.from_pretrained(tmp_path / "folder")
    assert again.lm_head.weight.equal(kept.lm_head.weight)


def test_numbers_are_copied_into_blocks_that_lie_along_the_other_dimension() -> None:
    votive.manual_seed(0)
    config = votive.models.GPT2Config(vocab_size=32, n_embd=32, n_layer=1, n_head=2)
    first, second = votive.models.GPT2LMHeadModel(config), votive.models.GPT2LMHeadModel(config)
    wanted = first.state_dict()
    votive.quantize_(second, "q8_0")
    second.load_state_dict(wanted)
    votive.quantize_(first, "q8_0")
    found = second.state_dict()
    assert all(t.equal(found[name]) for name, t in first.state_dict().items())
    with votive.no_grad(), pytest.raises(RuntimeError, match="shapes must be the same"):
        second.transformer.h[0].mlp.c_fc.weight.copy_(votive.ones(128, 32))


def test_out_is_refused_at_the_first_call_and_later() -> None:
    w, x, out = votive.ones(4, 32).to(votive.q8_0), votive.ones(2, 32), votive.zeros(2, 4)
    for _ in range(2):
        with pytest.raises(UnsupportedError, match="matmul: out= is not taken with q8_0 tensors"):
            votive.matmul(x, w.t(), out=out)
    assert not bool(out.any())
