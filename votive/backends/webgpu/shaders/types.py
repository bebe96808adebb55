"""How elements of each dtype lie in words, and what kernels compute with.

Memory is as on the CPU, byte for byte; kernels see it as 32-bit words. Half types are widened to f32 and rounded when
stored; narrow integers become 32 bits, int64 two words. float64 and complex numbers are moved as words only.
"""

from __future__ import annotations

from ....core import dtype as dt

# What a value of the dtype is inside a kernel: "f" f32, "i" i32, "u" u32, "l" 64 bits, "p" 8 bytes, "q" 16 bytes.
KIND = {
    dt.bool_: "u",
    dt.uint8: "u",
    dt.uint16: "u",
    dt.uint32: "u",
    dt.int8: "i",
    dt.int16: "i",
    dt.int32: "i",
    dt.int64: "l",
    dt.uint64: "p",
    dt.float16: "f",
    dt.bfloat16: "f",
    dt.float32: "f",
    dt.float64: "p",
    dt.complex64: "p",
    dt.complex128: "q",
    dt.float8_e4m3fn: "u",
    dt.float8_e5m2: "u",
}
WGSL = {"f": "f32", "i": "i32", "u": "u32", "l": "vec2<u32>", "p": "vec2<u32>", "q": "vec4<u32>"}
FLOATS = frozenset([dt.float32, dt.float16, dt.bfloat16])
INTEGERS = frozenset([dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64])
# What kernels compute with; the rest is moved only.
NUMBERS = FLOATS | INTEGERS | {dt.bool_, dt.uint16, dt.uint32}
ZERO = {"f": "0.0", "i": "0i", "u": "0u", "l": "vec2<u32>(0u, 0u)", "p": "vec2<u32>(0u, 0u)", "q": "vec4<u32>()"}


def floats(*specs: object) -> bool:
    """Whether all tensors have floats that kernels compute with."""
    return all(getattr(s, "dtype") in FLOATS for s in specs)  # noqa: B009


def numbers(*specs: object) -> bool:
    """Whether all tensors have numbers that kernels compute with."""
    return all(getattr(s, "dtype") in NUMBERS for s in specs)  # noqa: B009


def load(buffer: str, d: dt.dtype, atomic: bool) -> str:
    """The body of a function of `e`, the number of an element, that gives its value."""

    def word(at: str) -> str:
        return f"atomicLoad(&{buffer}[{at}])" if atomic else f"{buffer}[{at}]"

    size, kind = d.itemsize, KIND[d]
    if size == 16:
        return f"let w = e * 4u; return vec4<u32>({', '.join(word(f'w + {k}u') for k in range(4))});"
    if size == 8:
        return f"return vec2<u32>({word('e * 2u')}, {word('e * 2u + 1u')});"
    if size == 4:
        return f"return bitcast<{WGSL[kind]}>({word('e')});" if kind != "u" else f"return {word('e')};"
    shift, mask = ("(e & 3u) * 8u", "0xffu") if size == 1 else ("(e & 1u) * 16u", "0xffffu")
    at = "e >> 2u" if size == 1 else "e >> 1u"
    bits = f"(({word(at)} >> ({shift})) & {mask})"
    if d is dt.bfloat16:
        return f"return bitcast<f32>({bits} << 16u);"
    if d is dt.float16:
        return f"return h_widened({bits});"
    if kind == "i":
        up = 32 - 8 * size
        return f"return bitcast<i32>({bits} << {up}u) >> {up}u;"
    return f"return {bits};"


def bits_of(d: dt.dtype, v: str) -> str:
    """The bits of a value as its element holds them, in the low part of a word."""
    if d is dt.bfloat16:
        return f"b_narrowed({v})"
    if d is dt.float16:
        return f"h_narrowed({v})"
    if d is dt.bool_:
        return f"select(0u, 1u, {v} != 0u)"
    return f"(bitcast<u32>({v}) & {'0xffu' if d.itemsize == 1 else '0xffffu'})"


def store(buffer: str, d: dt.dtype, atomic: bool) -> str:
    """The body of a function of `e` and `v` that writes an element."""

    def put(at: str, value: str) -> str:
        return f"atomicStore(&{buffer}[{at}], {value});" if atomic else f"{buffer}[{at}] = {value};"

    size, kind = d.itemsize, KIND[d]
    if size == 16:
        return " ".join(put(f"e * 4u + {k}u", f"v[{k}]") for k in range(4))
    if size == 8:
        return put("e * 2u", "v.x") + " " + put("e * 2u + 1u", "v.y")
    if size == 4:
        return put("e", "v" if kind == "u" else "bitcast<u32>(v)")
    # Neighbours share the word: only the element's own bits change.
    shift, mask = ("(e & 3u) * 8u", "0xffu") if size == 1 else ("(e & 1u) * 16u", "0xffffu")
    at = "e >> 2u" if size == 1 else "e >> 1u"
    return (
        f"let s = {shift}; let n = {bits_of(d, 'v')}; "
        f"atomicAnd(&{buffer}[{at}], ~({mask} << s)); atomicOr(&{buffer}[{at}], n << s);"
    )


FUNCTIONS = {
    "h_widened": """fn h_widened(h: u32) -> f32 {
  let sign = (h & 0x8000u) << 16u;
  let e = (h >> 10u) & 31u;
  let m = h & 0x3ffu;
  if (e == 31u) { return bitcast<f32>(sign | 0x7f800000u | (m << 13u)); }
  if (e == 0u) { return select(1.0, -1.0, sign != 0u) * (f32(m) * 5.9604644775390625e-8); }
  return bitcast<f32>(sign | ((e + 112u) << 23u) | (m << 13u));
}""",
    "h_narrowed": """fn h_narrowed(x: f32) -> u32 {
  // To the nearest half, ties to even.
  let bits = bitcast<u32>(x);
  let sign = (bits >> 16u) & 0x8000u;
  let a = bits & 0x7fffffffu;
  if (a > 0x7f800000u) { return sign | 0x7e00u; }
  if (a >= 0x477ff000u) { return sign | 0x7c00u; }
  if (a < 0x33000001u) { return sign; }
  if (a < 0x38800000u) {
    let shift = 126u - (a >> 23u);
    let m = (a & 0x7fffffu) | 0x800000u;
    let kept = m >> shift;
    let rest = m & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    return sign | (kept + select(0u, 1u, rest > half || (rest == half && (kept & 1u) != 0u)));
  }
  let y = a - 0x38000000u;
  return sign | ((y + 0xfffu + ((y >> 13u) & 1u)) >> 13u);
}""",
    "b_narrowed": """fn b_narrowed(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}""",
}


def cast(value: str, have: dt.dtype, want: dt.dtype) -> str:
    """A value of one dtype's kind as one of another's; narrow integers wrap."""
    a, b = KIND[have], KIND[want]
    if have is want:
        return value
    if want is dt.bool_:
        if a == "f":
            return f"select(0u, 1u, {value} != 0.0)"
        if a == "l":
            return f"select(0u, 1u, any({value} != vec2<u32>(0u, 0u)))"
        return f"select(0u, 1u, {value} != {ZERO[a]})"
    if b == "f":
        text = {"f": value, "l": f"f_from_l({value})", "i": f"f_from_i({value})", "u": f"f_from_u({value})"}[a]
        return text
    if b == "l":
        return {"f": f"l_from_f({value})", "l": value, "i": f"l_from_i({value})", "u": f"l_from_u({value})"}[a]
    if a == "f":
        # Through 64 bits where these are what is cut off, as processors do it.
        value = f"i_from_f({value})" if want is dt.int32 else f"bitcast<i32>(l_from_f({value}).x)"
    elif a == "l":
        value = f"bitcast<i32>({value}.x)"
    elif a == "u":
        value = f"bitcast<i32>({value})"
    bits = 8 * want.itemsize
    if b == "i":
        return value if bits == 32 else f"i_wrap{bits}({value})"
    word = f"bitcast<u32>({value})"
    return word if bits == 32 else f"u_wrap{bits}({word})"
