"""Folders whose weights other libraries quantized: every number is theirs, blocks stay blocks, bad files are told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import votive
from votive.io.safetensors import load_file, save_file
from votive.models import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
from votive.serialization.container import FileFormatError
from votive.surface.block_tensor import BlockTensor

Weights = dict[str, Any]
NAME = "model.layers.0.self_attn.q_proj"
NF4 = [
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
]
FP4 = [s * x / 12 for s in (1, -1) for x in (0.0, 0.0625, 8.0, 12.0, 4.0, 6.0, 2.0, 3.0)]


def packed_words(codes: np.ndarray, bits: int, order: list[int] | None = None) -> np.ndarray:
    """Words of int32 along the last dimension, written one code at a time."""
    if bits == 3:  # one long number of 96 bits for 32 codes
        flat = codes.reshape(-1, 32)
        longs = [sum(int(q) << (3 * i) for i, q in enumerate(row)) for row in flat]
        words = [[(n >> (32 * i)) & 0xFFFFFFFF for i in range(3)] for n in longs]
        return np.array(words, np.uint32).view(np.int32).reshape(*codes.shape[:-1], -1)
    per = 32 // bits
    out = np.zeros((*codes.shape[:-1], codes.shape[-1] // per), np.int64)
    for i in range(codes.shape[-1]):
        place = i % per if order is None else order.index(i % per)
        out[..., i // per] |= codes[..., i].astype(np.int64) << (bits * place)
    return out.astype(np.uint32).view(np.int32)


def gptq(rng: Any, rows: int, columns: int, bits: int = 4, v2: bool = False, shuffle: bool = False) -> Any:
    groups = columns // 32
    q = rng.integers(0, 1 << bits, (columns, rows))
    z = rng.integers(1, 1 << bits, (groups, rows))
    s = rng.uniform(0.01, 0.02, (groups, rows)).astype(np.float16)
    index = np.arange(columns) // 32
    if shuffle:
        rng.shuffle(index)
    parts = {
        "qweight": packed_words(q.T, bits).T,
        "qzeros": packed_words(z if v2 else z - 1, bits),
        "scales": s,
        "g_idx": index.astype(np.int32),
    }
    return parts, ((q - z[index]).astype(np.float16) * s[index]).T, votive.float16


def awq(rng: Any, rows: int, columns: int) -> Any:
    q, z = rng.integers(0, 16, (columns, rows)), rng.integers(0, 16, (columns // 64, rows))
    s = rng.uniform(0.01, 0.02, z.shape).astype(np.float16)
    order = [0, 2, 4, 6, 1, 3, 5, 7]
    parts = {"qweight": packed_words(q, 4, order), "qzeros": packed_words(z, 4, order), "scales": s}
    return parts, ((q - z.repeat(64, 0)).astype(np.float16) * s.repeat(64, 0)).T, votive.float16


def awq_gemv(rng: Any, rows: int, columns: int) -> Any:
    groups = columns // 32
    q, z = rng.integers(0, 16, (rows, columns)), rng.integers(0, 16, (rows, groups))
    s = rng.uniform(0.01, 0.02, z.shape).astype(np.float16)
    pad = ((0, 0), (0, 32 - groups))
    parts = {"qweight": packed_words(q, 4), "qzeros": packed_words(np.pad(z, pad), 4), "scales": np.pad(s, pad)}
    return parts, (q - z.repeat(32, 1)).astype(np.float16) * s.repeat(32, 1), votive.float16


def hqq(rng: Any, rows: int, columns: int, bits: int = 4, group: int = 64, axis: int = 1, floats: bool = False) -> Any:
    """As HQQ stores a layer: groups as rows (axis 1) or columns (axis 0), codes of far rows in one byte."""
    grouped = (rows * columns // group, group) if axis == 1 else (group, rows * columns // group)
    q = rng.integers(0, 1 << bits, grouped)
    shape = (grouped[0], 1) if axis == 1 else (1, grouped[1])
    s = rng.uniform(0.01, 0.02, shape).astype(np.float16)
    z = rng.uniform(0, (1 << bits) - 1, shape).astype(np.float16)
    per = 10 if bits == 3 else 8 // bits
    lines = -(-len(q) // per)
    packed = np.zeros((lines, grouped[1]), np.int32 if bits == 3 else np.uint8)
    for i in range(len(q)):
        packed[i % lines] |= (q[i] << (bits * (per - 1 - i // lines))).astype(packed.dtype)
    number = lambda n: np.array(n, np.int32)
    parts = {
        "W_q": packed.view(np.float16) if floats else packed,
        "scale": s,
        "zero": z,
        "nbits": number(bits),
        "group_size": number(group),
        "axis": number(axis),
        "shape": np.array([rows, columns]),
        "packing": np.frombuffer(("3bit_32" if bits == 3 else f"{bits}bit_u8").encode(), np.uint8),
        "view_as_float": np.array(floats, np.uint8),
        "compute_dtype": np.frombuffer(b"torch.float16", np.uint8),
        "channel_wise": np.array(1, np.uint8),
        "encoded_state_dict": np.array(1, np.uint8),
    }
    numbers = (q.astype(np.float32) - z.astype(np.float32)) * s.astype(np.float32)
    return parts, numbers.reshape(rows, columns), votive.float32


def torchao(rng: Any, rows: int, columns: int, kind: str = "Int8Tensor") -> Any:
    q = rng.integers(-128, 128, (rows, columns)).astype(np.int8)
    groups = 1 if kind == "Int8Tensor" else columns // 32
    s, z = rng.uniform(0.01, 0.02, (rows, groups)).astype(np.float32), rng.integers(-9, 9, (rows, groups))
    parts = {"_weight_qdata": q, "_weight_scale": s}
    if kind == "IntxUnpackedToInt8Tensor":
        parts["_weight_zero_point"] = z.astype(np.int8)
    if kind == "Float8Tensor":
        parts["_weight_qdata"] = q = rng.normal(size=(rows, columns)).astype(ml_dtypes.float8_e4m3fn)
        s = parts["_weight_scale"] = s[:, :1]
    zero = z.repeat(32, 1) if kind == "IntxUnpackedToInt8Tensor" else 0
    wide = s.repeat(columns // s.shape[1], 1)
    return parts, (q.astype(np.float32) - np.float32(1) * zero).astype(np.float32) * wide, votive.float32


def bnb4(rng: Any, rows: int, columns: int, kind: str = "nf4", nested: bool = True) -> Any:
    q = rng.integers(0, 16, rows * columns).astype(np.uint8)
    count, table = rows * columns // 64, np.array(NF4 if kind == "nf4" else FP4, np.float32)
    state: dict[str, Any] = {"quant_type": kind, "blocksize": 64, "dtype": "float16", "shape": [rows, columns]}
    parts: Weights = {"weight": (q[::2] << 4 | q[1::2])[:, None], "weight.quant_map": table}
    if nested:
        codes, levels = rng.integers(0, 256, count).astype(np.uint8), np.linspace(-1, 1, 256).astype(np.float32)
        tops = rng.uniform(0.01, 0.02, -(-count // 256)).astype(np.float32)
        absmax = levels[codes] * tops.repeat(256)[:count] + np.float32(0.05)
        state |= {"nested_blocksize": 256, "nested_offset": 0.05, "nested_dtype": "float32"}
        parts |= {"weight.absmax": codes, "weight.nested_absmax": tops, "weight.nested_quant_map": levels}
    else:
        absmax = parts["weight.absmax"] = rng.uniform(0.01, 0.05, count).astype(np.float32)
    parts[f"weight.quant_state.bitsandbytes__{kind}"] = np.frombuffer(json.dumps(state).encode(), np.uint8)
    return parts, (table[q].reshape(-1, 64) * absmax[:, None]).reshape(rows, columns), votive.float32


def bnb8(rng: Any, rows: int, columns: int) -> Any:
    q, s = rng.integers(-127, 128, (rows, columns)).astype(np.int8), rng.uniform(1, 2, rows).astype(np.float32)
    numbers = q.astype(np.float32) * s[:, None] * np.float32(7.874015718698502e-3)
    return {"weight": q, "SCB": s, "weight_format": np.array(0, np.uint8)}, numbers, votive.float32


def fp8(rng: Any, rows: int, columns: int, per: str = "block") -> Any:
    q = rng.normal(size=(rows, columns)).astype(ml_dtypes.float8_e4m3fn)
    shape = {"block": (-(-rows // 128), -(-columns // 128)), "row": (rows, 1), "tensor": ()}[per]
    s = rng.uniform(0.01, 0.02, shape).astype(np.float32)
    wide = s.repeat(128, 0).repeat(128, 1)[:rows, :columns] if per == "block" else s
    parts = {"weight": q, "weight_scale_inv" if per == "block" else "weight_scale": s}
    return parts, q.astype(np.float32) * wide, votive.float32


def packs(rng: Any, rows: int, columns: int, zeros: bool = False) -> Any:
    q, z = rng.integers(-8, 8, (rows, columns)), rng.integers(-8, 8, (rows, columns // 32))
    s = rng.uniform(0.01, 0.02, z.shape).astype(np.float16)
    parts = {"weight_packed": packed_words(q + 8, 4), "weight_scale": s, "weight_shape": np.array([rows, columns])}
    if zeros:
        parts["weight_zero_point"] = packed_words(z.T + 8, 4).T
    return parts, (q - (z if zeros else z * 0).repeat(32, 1)).astype(np.float16) * s.repeat(32, 1), votive.float16


def ints(rng: Any, rows: int, columns: int) -> Any:
    q, s = rng.integers(-128, 128, (rows, columns)).astype(np.int8), rng.uniform(0.01, 0.02, (rows, 1))
    s = s.astype(np.float16)
    return {"weight": q, "weight_scale": s}, q.astype(np.float16) * s, votive.float16


def compressed(bits: int, kind: str = "int", **more: Any) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": {"num_bits": bits, "type": kind, **more}}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": group}}


HQQ = {"quant_method": "hqq", "quant_config": {}}
TORCHAO = {"quant_method": "torchao", "quant_type": "int8_weight_only"}
BNB = {"quant_method": "bitsandbytes"}
CASES: dict[str, tuple[dict[str, Any], Callable[..., Any], str]] = {
    "gptq": ({"quant_method": "gptq", "bits": 4}, gptq, "int4_g32"),
    "gptq v2": (
        {"quant_method": "gptq", "bits": 4, "checkpoint_format": "gptq_v2"},
        lambda *a: gptq(*a, v2=True),
        "int4_g32",
    ),
    "gptq 2": ({"quant_method": "gptq", "bits": 2}, lambda *a: gptq(*a, bits=2), "int2_g32"),
    "gptq 8": ({"quant_method": "gptq", "bits": 8}, lambda *a: gptq(*a, bits=8), "int8_g32"),
    "gptq 3": ({"quant_method": "gptq", "bits": 3}, lambda *a: gptq(*a, bits=3), "int4_g32"),
    "gemv": ({"quant_method": "awq", "bits": 4, "version": "gemv", "group_size": 32}, awq_gemv, "int4_g32"),
    "hqq": (HQQ, hqq, "int4_g64"),
    "hqq 8": (HQQ, lambda *a: hqq(*a, bits=8, group=32), "int8_g32"),
    "hqq 3": (HQQ, lambda *a: hqq(*a, bits=3), "int4_g64"),
    "hqq 2": (HQQ, lambda *a: hqq(*a, bits=2, group=128), "int2_g64"),
    "hqq 1": (HQQ, lambda *a: hqq(*a, bits=1, floats=True), "int2_g64"),
    "torchao int8": (TORCHAO, torchao, "int8_g64"),
    "torchao intx": (TORCHAO, lambda *a: torchao(*a, kind="IntxUnpackedToInt8Tensor"), "int8_g32"),
    "torchao fp8": (TORCHAO, lambda *a: torchao(*a, kind="Float8Tensor"), "fp8_g64"),
    "awq": ({"quant_method": "awq", "bits": 4}, awq, "int4_g64"),
    "nf4": (BNB, bnb4, "nf4_g64"),
    "fp4": (BNB, lambda *a: bnb4(*a, kind="fp4", nested=False), "fp4_g64"),
    "int8": (BNB, bnb8, "absmax8_g64"),
    "fp8 block": ({"quant_method": "fp8", "weight_block_size": [128, 128]}, fp8, "fp8_g64"),
    "fp8 row": ({"quant_method": "fbgemm_fp8"}, lambda *a: fp8(*a, per="row"), "fp8_g64"),
    "fp8 tensor": (compressed(8, "float"), lambda *a: fp8(*a, per="tensor"), "fp8_g64"),
    "packed": (compressed(4), packs, "int4_g32"),
    "packed zeros": (compressed(4, symmetric=False), lambda *a: packs(*a, zeros=True), "int4_g32"),
    "int": (compressed(8), ints, "int8_g64"),
}


def write(folder: Path, config: dict[str, Any], make: Callable[..., Any]) -> dict[str, tuple[np.ndarray, Any]]:
    """A tiny Llama whose linear layers are quantized; gives their numbers and the dtype they are computed in."""
    rng = np.random.default_rng(3)
    sizes = {"vocab_size": 32, "hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 1}
    model = LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=2, tie_word_embeddings=False))
    model.save_pretrained(folder)
    weights: Weights = dict(load_file(folder / "model.safetensors"))
    numbers = {}
    for name in [n for n in weights if n.endswith("_proj.weight")]:
        parts, *numbers[name] = make(rng, *weights.pop(name).shape)
        base = name.removesuffix("weight")
        weights |= {
            base + k: votive.tensor(v) if v.dtype != ml_dtypes.float8_e4m3fn else eight(v) for k, v in parts.items()
        }
    told = {}
    for name in numbers if config["quant_method"] == "torchao" else ():
        kind = _class(weights, name.removesuffix("weight"))
        told[name] = json.dumps({"_type": kind, "_data": {"block_size": [1, 32]}, "_tensor_data_names": ["qdata"]})
    save_file(weights, folder / "model.safetensors", {**told, "tensor_names": json.dumps(list(told))} if told else None)
    edit(folder, quantization_config=config)
    return numbers


def _class(weights: Weights, base: str) -> str:
    """torchao's class of a weight with such parts."""
    if f"{base}_weight_zero_point" in weights:
        return "IntxUnpackedToInt8Tensor"
    return "Int8Tensor" if weights[f"{base}_weight_qdata"].dtype is votive.int8 else "Float8Tensor"


def eight(values: np.ndarray) -> Any:
    return votive.tensor(values.view(np.uint8)).view(votive.float8_e4m3fn)


def edit(folder: Path, **values: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize("case", CASES)
def test_a_quantized_folder_keeps_its_blocks_and_its_numbers(case: str, tmp_path: Path) -> None:
    config, make, format = CASES[case]
    numbers = write(tmp_path, config, make)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    for name, (told, dtype) in numbers.items():
        weight = model.get_parameter(name)
        assert isinstance(weight, BlockTensor)
        np.testing.assert_array_equal(weight.dequantize(dtype).numpy(), told)
    assert model.get_parameter(f"{NAME}.weight").dtype.name == format
    ids = votive.tensor([[1, 2, 3]])
    plain = AutoModelForCausalLM.from_pretrained(tmp_path, dequantize=True)
    with votive.no_grad():
        wanted = plain(ids).logits
        logits = model(ids).logits  # rounds inputs to 8 bits
        assert float((logits - wanted).abs().max()) < 0.03 * float(wanted.abs().max())
        before = votive.backends.quantized.activations
        votive.backends.quantized.activations = "exact"
        try:
            exact = model(ids).logits
        finally:
            votive.backends.quantized.activations = before
        votive.testing.assert_close(exact, wanted, rtol=1e-4, atol=1e-4)
    # What is saved are blocks that describe themselves, and load again as they were.
    model.save_pretrained(tmp_path / "again")
    again = AutoModelForCausalLM.from_pretrained(tmp_path / "again")
    assert again.get_parameter(f"{NAME}.weight").dtype.name == format
    with votive.no_grad():
        assert votive.equal(again(ids).logits, logits)


def test_groups_in_any_order_become_the_right_numbers_and_a_warning_tells(tmp_path: Path) -> None:
    config = {"quant_method": "gptq", "bits": 4, "desc_act": True}
    numbers = write(tmp_path, config, lambda *a: gptq(*a, shuffle=True))
    with pytest.warns(UserWarning, match=r"gptq: model.*becomes numbers.*act-order"):
        model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype="float16")
    for name, (wanted, _) in numbers.items():
        np.testing.assert_array_equal(model.get_parameter(name).detach().numpy(), wanted)


def test_hqq_along_columns_becomes_the_right_numbers_and_a_warning_tells(tmp_path: Path) -> None:
    numbers = write(tmp_path, HQQ, lambda *a: hqq(*a, axis=0, bits=4, group=32))
    with pytest.warns(UserWarning, match=r"hqq: model.*becomes numbers.*groups along columns"):
        model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype="float32")
    for name, (wanted, _) in numbers.items():
        np.testing.assert_array_equal(model.get_parameter(name).detach().numpy(), wanted)


def test_zero_points_that_need_more_than_half_precision_make_numbers(tmp_path: Path) -> None:
    def fine(*args: Any) -> Any:
        parts, _, dtype = hqq(*args)
        parts["zero"] = parts["zero"].astype(np.float32) + np.float32(1e-4)
        codes = np.concatenate([parts["W_q"] >> 4, parts["W_q"] & 15]).astype(np.float32)
        numbers = (codes - parts["zero"]) * parts["scale"].astype(np.float32)
        return parts, numbers.reshape(*args[1:]), dtype

    numbers = write(tmp_path, HQQ, fine)
    with pytest.warns(UserWarning, match="zero points need more than half precision"):
        model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype="float32")
    for name, (wanted, _) in numbers.items():
        np.testing.assert_array_equal(model.get_parameter(name).detach().numpy(), wanted)


def test_parts_of_torchao_in_several_files_are_found(tmp_path: Path) -> None:
    numbers = write(tmp_path, *CASES["torchao int8"][:2])
    whole = votive.io.safetensors.SafetensorsFile(tmp_path / "model.safetensors")
    names, metadata = whole.names(), dict(whole.metadata)
    shards = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for file, mine in shards.items():
        save_file({n: whole.tensor(n).clone() for n in mine}, tmp_path / file, metadata)
    index = {"metadata": {}, "weight_map": {n: file for file, mine in shards.items() for n in mine}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "model.safetensors").unlink()
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    for name, (wanted, dtype) in numbers.items():
        np.testing.assert_array_equal(model.get_parameter(name).dequantize(dtype).numpy(), wanted)


def changed(parts: Weights, key: str, value: Any) -> None:
    parts.pop(f"{NAME}.{key}")
    if value is not None:
        parts[f"{NAME}.{key}"] = votive.tensor(value)


STATE = "weight.quant_state.bitsandbytes__nf4"


@pytest.mark.parametrize(
    ("case", "key", "value", "told"),
    [
        ("gptq", "scales", np.ones((3, 64), np.float16), "qzeros must have the shape"),
        ("gptq", "scales", np.ones((2, 8), np.float16), r"scales must have the shape \(2, 64\)"),
        ("gptq", "qzeros", None, "qzeros is missing"),
        ("gptq", "g_idx", np.full(64, 7, np.int32), "g_idx names groups from 7 to 7, but there are 2"),
        ("gptq", "g_idx", np.full(64, -1, np.int32), "g_idx names groups from -1"),
        ("awq", "qzeros", np.zeros((2, 8), np.int32), "qzeros must have the shape"),
        ("awq", "qweight", np.zeros((64, 8), np.float32), "qweight must be int32"),
        ("nf4", "weight.absmax", np.zeros(3, np.uint8), "absmax must have the shape"),
        ("nf4", "weight.quant_map", np.zeros(16, np.float32), "is not the table of nf4"),
        ("nf4", STATE, np.zeros(4, np.uint8), "cannot be read"),
        ("int8", "SCB", np.ones(3, np.float32), r"SCB must have the shape \(64,\)"),
        ("fp8 block", "weight_scale_inv", np.ones((4, 4), np.float32), "weight_scale_inv must have the shape"),
        ("gptq 3", "qweight", np.zeros((7, 64), np.int32), "do not hold a whole number|must have the shape"),
        ("gemv", "scales", np.ones((64, 1), np.float16), "scales must have the shape"),
        ("hqq", "zero", None, "zero is missing; quantized"),
        ("hqq", "scale", np.ones((5, 1), np.float16), "scale must have the shape"),
        ("hqq", "W_q", np.zeros((32, 9), np.uint8), "does not hold 64 x 64 codes"),
        ("hqq", "W_q", np.zeros((32, 64), np.int8), "must be uint8"),
        ("hqq", "packing", np.frombuffer(b"5bit", np.uint8), "is '5bit'; known are 8bit_u8"),
        ("hqq", "axis", np.array(2, np.int32), "axis 2, which cannot be"),
        ("hqq", "group_size", np.array(63, np.int32), "is 63, which does not divide"),
        ("hqq", "group_size", np.array(0.5, np.float32), "is 0.5; whole numbers"),
        ("hqq", "shape", np.array([-1, 64]), "which cannot be"),
        ("hqq", "shape", np.array([1 << 40, 1 << 40]), "must have the shape|does not hold"),
        ("hqq", "shape", np.array([np.nan, 64.0]), "must be int64"),
        ("torchao int8", "_weight_scale", np.ones((63, 1), np.float32), "does not divide a weight"),
        ("torchao int8", "_weight_qdata", None, "_weight_qdata is missing"),
        ("torchao int8", "_weight_qdata", np.zeros((64, 64), np.uint8), "must be int8"),
        ("torchao intx", "_weight_zero_point", np.zeros(3, np.int8), "zero_point must have the shape"),
        ("packed", "weight_shape", np.array([64, 999]), r"weight_shape tells \(64, 999\)"),
        ("packed", "weight_scale", np.ones((64, 7), np.float16), "7 groups, which do not divide"),
    ],
)
def test_a_damaged_file_is_told_by_scheme_and_tensor(
    case: str, key: str, value: Any, told: str, tmp_path: Path
) -> None:
    write(tmp_path, *CASES[case][:2])
    weights = dict(load_file(tmp_path / "model.safetensors"))
    metadata = dict(votive.io.safetensors.SafetensorsFile(tmp_path / "model.safetensors").metadata)
    changed(weights, key, value)
    save_file(weights, tmp_path / "model.safetensors", metadata)
    with pytest.raises(FileFormatError, match=told):
        AutoModelForCausalLM.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"quant_method": "quanto"}, "quantized by 'quanto', which is not supported"),
        ({"quant_method": "hqq", "quant_config": 4}, "quant_config must be a mapping"),
        ({"quant_method": "torchao"}, "does not describe its tensors.*pickled files"),
        ({"quant_method": "gptq", "bits": 5}, "bits=5 is not supported"),
        ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}, "'marlin' is not supported"),
        ({"quant_method": "awq", "bits": 4, "version": "marlin"}, "'marlin' is not supported"),
        ({"quant_method": "awq", "bits": 4, "version": "gemv", "group_size": "x"}, "group_size='x'"),
        ({**compressed(4), "sparsity_config": {"format": "sparse-24"}}, "sparsity_config"),
        ({"quant_method": "fp8", "weight_block_size": [0, 1]}, "weight_block_size"),
        ("gptq", "quantized by 'gptq'"),
    ],
)
def test_what_is_not_read_is_refused_by_name(config: Any, told: str, tmp_path: Path) -> None:
    write(tmp_path, *CASES["gptq"][:2])
    edit(tmp_path, quantization_config=config)
    with pytest.raises(ValueError, match=told):
        AutoModelForCausalLM.from_pretrained(tmp_path)


def test_layouts_of_torchao_for_one_gpu_kernel_are_refused_by_their_class(tmp_path: Path) -> None:
    write(tmp_path, *CASES["torchao int8"][:2])
    weights = dict(load_file(tmp_path / "model.safetensors"))
    told = {f"{NAME}.weight": json.dumps({"_type": "Int4TilePackedTo4dTensor", "_data": {}})}
    save_file(weights, tmp_path / "model.safetensors", told)
    with pytest.raises(ValueError, match=r"stored as Int4TilePackedTo4dTensor.*Int8WeightOnlyConfig"):
        AutoModelForCausalLM.from_pretrained(tmp_path)
    save_file(weights, tmp_path / "model.safetensors", {f"{NAME}.weight": '{"_type": 5}'})
    with pytest.raises(FileFormatError, match="has a description that cannot be read"):
        AutoModelForCausalLM.from_pretrained(tmp_path)


def test_inspect_lists_the_stored_tensors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from votive.cli import main

    write(tmp_path, *CASES["gptq"][:2])
    assert main(["inspect", str(tmp_path)]) == 0
    assert f"{NAME}.qweight" in capsys.readouterr().out
