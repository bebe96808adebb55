"""A block taken apart: its scales and codes give its numbers again, and its bits are where the text says."""

from __future__ import annotations

import numpy as np
import pytest

import votive
from votive.backends.common.blocks import DECODE
from votive.backends.common.blocks.anatomy import anatomy, holders
from votive.core.blocks import FORMATS
from votive.quant import open_block

CODEBOOKS = {"iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s"}


@pytest.mark.parametrize("name", FORMATS)
def test_scales_and_codes_give_the_numbers_bit_by_bit(name: str) -> None:
    format, source = FORMATS[name], np.random.default_rng(5)
    for _ in range(8):
        raw = source.integers(0, 256, format.block_bytes, dtype=np.uint8).view(format.np)
        with np.errstate(all="ignore"):
            found, wanted = anatomy(raw, format), DECODE[name](raw)[0].astype(np.float32)
            if name in CODEBOOKS:
                assert found.codes is None
                continue
            assert found.codes is not None
            assert found.scale is not None
            levels = found.codes - np.float32(found.zero) if found.levels is None else found.levels[found.codes]
            made = levels.astype(np.float32).reshape(len(found.scale), -1) * found.scale[:, None]
            if found.offset is not None:
                made = made + found.offset[:, None]
        made = made.reshape(-1)
        if name.startswith("absmax8"):  # whose definition multiplies by the code before it divides
            np.testing.assert_allclose(made, wanted, rtol=3e-7, atol=1e-37, equal_nan=True)
        else:
            np.testing.assert_array_equal(made, wanted)


def test_bits_that_are_said_to_be_a_numbers_own_change_it_alone() -> None:
    for name in ("q4_k", "q6_k", "nvfp4", "int4_g64"):
        format = FORMATS[name]
        seen = holders(format)
        alone = seen.sum(axis=1) == 1
        bits = {"q4_k": 4, "q6_k": 6, "nvfp4": 4, "int4_g64": 4}[name]
        assert (seen[alone].sum(axis=0) == bits).all()


def test_a_block_of_a_tensor_is_found_by_its_number_and_shows_its_row() -> None:
    w = votive.randn(4, 512, generator=votive.Generator().manual_seed(0)).to(votive.q4_k)
    block = open_block(w, 5)
    assert (block.row, block.start) == (2, 256)
    np.testing.assert_array_equal(block.numbers, w.dequantize()[2, 256:].numpy())
    assert open_block(w, -3).index == 5
    assert block.to_dict()["numbers"] == block.numbers.tolist()
    text = str(block)
    assert "q4_k block 5: row 2, columns 256..511, 144 bytes" in text
    assert "minima" in text
    with pytest.raises(IndexError, match="block 8 is out of range; the tensor has 8"):
        open_block(w, 8)
    with pytest.raises(TypeError, match="wants a tensor in blocks, got Tensor"):
        open_block(votive.ones(2))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_and_a_tensor_of_it_explain_themselves(name: str) -> None:
    text = votive.explanation(FORMATS[name])
    assert text.startswith(f"{name}: {FORMATS[name].block_size} numbers in {FORMATS[name].block_bytes} bytes")
    assert votive.explanation(f"votive.{name}") == text


def test_explaining_a_tensor_shows_its_first_block() -> None:
    text = votive.explanation(votive.ones(2, 32).to(votive.q8_0))
    assert "in 2 blocks, 68 bytes" in text
    assert "q8_0 block 0: row 0" in text
    assert "q8_0: 32 numbers" in votive.explanation(votive.empty(0, 32).to(votive.q8_0))
