"""The random words of every device: Philox4x32-10. Word i of a draw is word i % 4 of counter `first + i / 4`."""

from __future__ import annotations

NUMBERS = [(f"r{n}", "I") for n in ("k0", "k1", "c0", "c1", "c2", "c3")]


def values(key: int, counter: int) -> tuple[int, ...]:
    """The parameters of a draw."""
    words = (key >> 32 * k & 0xFFFFFFFF for k in range(2)), (counter >> 32 * k & 0xFFFFFFFF for k in range(4))
    return (*words[0], *words[1])


HEAD = """fn random_four(block: u32) -> vec4<u32> {
  var c = vec4<u32>(P.rc0 + block, P.rc1, P.rc2, P.rc3);
  if (c.x < block) { c.y += 1u; if (c.y == 0u) { c.z += 1u; if (c.z == 0u) { c.w += 1u; } } }
  var k = vec2<u32>(P.rk0, P.rk1);
  for (var n = 0; n < 10; n++) {
    let a = l_wide(0xD2511F53u, c.x);
    let b = l_wide(0xCD9E8D57u, c.z);
    c = vec4<u32>(b.y ^ c.y ^ k.x, b.x, a.y ^ c.w ^ k.y, a.x);
    k += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}
fn random_word(i: u32) -> u32 { return random_four(i >> 2u)[i & 3u]; }
"""


def threshold(p: float) -> int:
    """Below this number a word means yes, with chance p < 1."""
    import math

    return min(math.ceil(p * 2.0**32), 0xFFFFFFFF)
