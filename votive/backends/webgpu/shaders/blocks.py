"""Weights in blocks of few bits, decoded where they are read: `weight_at(row, column)` over rows of bytes `w`."""

from __future__ import annotations

# Bytes and numbers of a block, and WGSL of the number `i` of the block at byte `b`.
FORMATS = {
    "q4_0": (
        18,
        32,
        "let q = w_at(b + 2u + i % 16u); return half_at(b) * f32(i32(select(q & 15u, q >> 4u, i >= 16u)) - 8);",
    ),
    "q8_0": (34, 32, "return half_at(b) * f32(signed_at(b + 2u + i));"),
    "q4_k": (
        144,
        256,
        """let j = i / 32u;
  var s = w_at(b + 4u + j) & 63u;
  var m = w_at(b + 8u + j) & 63u;
  if (j >= 4u) {
    let both = w_at(b + 8u + j);
    s = (both & 15u) | ((w_at(b + j) >> 6u) << 4u);
    m = (both >> 4u) | ((w_at(b + 4u + j) >> 6u) << 4u);
  }
  let q = w_at(b + 16u + (i / 64u) * 32u + i % 32u);
  let x = select(q & 15u, q >> 4u, (i & 32u) != 0u);
  return f32(x) * (half_at(b) * f32(s)) - half_at(b + 2u) * f32(m);""",
    ),
    "q6_k": (
        210,
        256,
        """let h = i / 128u;
  let e = i % 128u;
  let low = w_at(b + h * 64u + e % 64u);
  let high = (w_at(b + 128u + h * 32u + e % 32u) >> (2u * (e / 32u))) & 3u;
  let q = i32(select(low & 15u, low >> 4u, e >= 64u) | (high << 4u)) - 32;
  return (half_at(b + 208u) * f32(signed_at(b + 192u + i / 16u))) * f32(q);""",
    ),
}


def head(name: str) -> str | None:
    """The functions for a format; None where there are none. A kernel has a number `row_bytes` and an operand `w`."""
    found = FORMATS.get(name)
    if found is None:
        return None
    nbytes, count, text = found
    return f"""fn half_at(b: u32) -> f32 {{ return h_widened(w_at(b) | (w_at(b + 1u) << 8u)); }}
fn signed_at(b: u32) -> i32 {{ return bitcast<i32>(w_at(b) << 24u) >> 24u; }}
fn in_block(b: u32, i: u32) -> f32 {{
  {text}
}}
fn weight_at(row: u32, column: u32) -> f32 {{
  return in_block(row * P.row_bytes + (column / {count}u) * {nbytes}u, column % {count}u);
}}
"""
