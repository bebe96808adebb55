"""Mixtures of experts with weights in blocks: loaded, quantized and multiplied without being decoded as a whole."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests import tiny_sizes
from votive import nn
from votive.cli import main
from votive.core.errors import UnsupportedError
from votive.io.gguf import GGUFFile
from votive.nn import functional as F
from votive.surface.block_tensor import BlockTensor

FAMILIES = ["Mixtral", "Qwen3Moe"]


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    before = votive.backends.quantized.activations
    votive.backends.quantized.activations = "exact"
    yield
    votive.backends.quantized.activations = before


def model(family: str) -> Any:
    sizes = tiny_sizes.transformer(256, 256, layers=2, heads=2, vocab=40, kv_heads=2)
    more = {
        "Mixtral": {"num_local_experts": 3},
        "Qwen3Moe": {"num_experts": 3, "moe_intermediate_size": 256, "norm_topk_prob": True},
    }[family]
    config = getattr(votive.models, f"{family}Config")(**sizes, **more, num_experts_per_tok=2)
    votive.manual_seed(0)
    return getattr(votive.models, f"{family}ForCausalLM")(config).eval()


def experts(made: nn.Module) -> list[Any]:
    return [p for n, p in made.named_parameters() if ".experts." in n]


def decoded(made: nn.Module) -> nn.Module:
    out = copy.deepcopy(made)
    for module in out.modules():
        if isinstance(getattr(module, "weight", None), BlockTensor):
            module.weight = nn.Parameter(module.weight.dequantize())
    return out


@pytest.mark.parametrize("kind", ["q4_k_m", "q8_0", "iq4_xs"])
@pytest.mark.parametrize("family", FAMILIES)
def test_experts_are_quantized_and_routers_are_not(family: str, kind: str) -> None:
    made, tokens = model(family), votive.randint(0, 40, (2, 6))
    report = votive.quantize_(made, kind)
    assert len(experts(made)) == 18
    assert all(isinstance(p, BlockTensor) for p in experts(made))
    assert [n.rpartition(".")[2] for n in report.kept] == ["gate", "gate"]
    with votive.no_grad():
        votive.testing.assert_close(made(tokens).logits, decoded(made)(tokens).logits, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_stacked_experts_of_a_gguf_file_are_read_in_blocks(family: str, tmp_path: Path) -> None:
    made, tokens = model(family), votive.randint(0, 40, (2, 6))
    made.save_pretrained(tmp_path / "folder")
    votive.quant.save_imatrix(tmp_path / "imatrix.gguf", votive.quant.importance(made, [tokens]))
    out = tmp_path / "model.gguf"
    options = ["--quantize", "q4_k", "--imatrix", str(tmp_path / "imatrix.gguf")]
    assert main(["convert", str(tmp_path / "folder"), str(out), *options]) == 0
    with GGUFFile(out) as file:
        assert (file.info("blk.1.ffn_down_exps.weight").stored, file.info("blk.1.ffn_down_exps.weight").shape) == (
            "Q4_K",
            (3, 256, 256),
        )
        rows = file.raw("blk.1.ffn_down_exps.weight")
    read = votive.models.AutoModelForCausalLM.from_pretrained(out)
    assert all(p.dtype is votive.q4_k for p in experts(read))
    last = next(
        p
        for n, p in read.named_parameters()
        if ".1." in n and n.endswith(("experts.2.w2.weight", "experts.2.down_proj.weight"))
    )
    np.testing.assert_array_equal(last.blocks.numpy(), rows[2])
    with votive.no_grad():
        votive.testing.assert_close(read(tokens).logits, decoded(read)(tokens).logits, rtol=1e-3, atol=1e-4)
    # The same codes as quantizing the module with the same importance, expert by expert.
    votive.quantize_(made, votive.q4_k, imatrix=tmp_path / "imatrix.gguf", skip="*.gate")
    same = next(
        p
        for n, p in made.named_parameters()
        if n.endswith(("1.block_sparse_moe.experts.2.w2.weight", "1.mlp.experts.2.down_proj.weight"))
    )
    np.testing.assert_array_equal(same.blocks.numpy(), rows[2])


def weights(transposed: bool) -> tuple[Any, Any]:
    votive.manual_seed(0)
    stacked = votive.randn(3, 256, 64)
    if transposed:
        blocks = stacked.transpose(1, 2).contiguous().to(votive.q4_k).transpose(1, 2)
    else:
        blocks = stacked.to(votive.q8_0)
    return blocks, blocks.dequantize()


@pytest.mark.parametrize("transposed", [True, False])
def test_grouped_products_read_blocks_and_pass_gradients(transposed: bool) -> None:
    blocks, numbers = weights(transposed)
    x = votive.randn(7, 256, requires_grad=True)
    other = x.detach().clone().requires_grad_()
    offs = votive.tensor([2, 2, 6], dtype=votive.int32)
    y, wanted = F.grouped_mm(x, blocks, offs=offs), F.grouped_mm(other, numbers, offs=offs)
    votive.testing.assert_close(y, wanted, rtol=1e-4, atol=1e-4)
    y.square().sum().backward()
    wanted.square().sum().backward()
    votive.testing.assert_close(x.grad, other.grad, rtol=1e-3, atol=1e-2)
    batch = votive.randn(3, 4, 256)
    votive.testing.assert_close(votive.bmm(batch, blocks), votive.bmm(batch, numbers), rtol=1e-4, atol=1e-4)
    votive.testing.assert_close(F.grouped_mm(batch, blocks), votive.bmm(batch, numbers), rtol=1e-4, atol=1e-4)
    nothing = F.grouped_mm(x[:0], blocks, offs=votive.zeros(3, dtype=votive.int32))
    assert nothing.shape == (0, 64)


def test_grouped_products_of_other_shapes_are_refused() -> None:
    blocks, _ = weights(False)
    x, offs = votive.randn(7, 256), votive.tensor([2, 2, 6], dtype=votive.int32)
    with pytest.raises(RuntimeError, match="give offs"):
        F.grouped_mm(x, blocks)
    with pytest.raises(RuntimeError, match="3 ends of int32"):
        F.grouped_mm(x, blocks, offs=offs[:2])
    with pytest.raises(RuntimeError, match="contraction"):
        F.grouped_mm(x[:, :64], blocks, offs=offs)
    with pytest.raises(UnsupportedError, match="second factor may be in q8_0 blocks"):
        F.grouped_mm(x, blocks[0], offs=offs)
    with pytest.raises(UnsupportedError, match="first factor is in q8_0"):
        votive.bmm(blocks, votive.randn(3, 64, 2))
    with pytest.raises(RuntimeError, match="do not go together"):
        votive.bmm(votive.randn(3, 4, 64), blocks)
