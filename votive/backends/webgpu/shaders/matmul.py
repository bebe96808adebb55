"""Products of matrices of any layout: tiles in workgroup memory, and few rows against a matrix read once.

out[b, m, n] = sum over k of a[b, m, k] w[b, k, n], then an epilogue on `v`, the sum, at row `m` and column `n`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....core import dtype as dt
from ....core.layout import Spec
from ..runtime.views import View
from .layouts import Walk
from .program import Program

Ints = tuple[int, ...]
# Rows that the kernel for few of them takes.
FEW = 4


@dataclass(frozen=True)
class Side:
    """An operand: distances of its rows and columns, and of the batch's dimensions."""

    dtype: dt.dtype
    row: int
    column: int
    batch: Ints

    @staticmethod
    def of(spec: Spec, batch: Ints = ()) -> Side:
        """The last two dimensions of a spec as a matrix."""
        return Side(spec.dtype, spec.strides[-2], spec.strides[-1], batch)

    @property
    def turned(self) -> Side:
        """The transpose."""
        return Side(self.dtype, self.column, self.row, self.batch)


class Product:
    """A batch of products of one size."""

    def __init__(
        self,
        name: str,
        shape: Ints,
        sizes: tuple[int, int, int],
        a: Side,
        w: Side,
        out: Side,
        *,
        epilogue: str = "v",
        more: Sequence[tuple[str, dt.dtype]] = (),
        head: str = "",
        numbers: Sequence[tuple[str, str]] = (),
        beside: Ints | None = None,
        read: str = "w_at(zw + {k} * P.wk + {n} * P.wn)",
    ) -> None:
        m, n, k = sizes
        self.read = read
        walk = Walk("z", shape, [a.batch, w.batch, out.batch, *([] if beside is None else [beside])])
        self.count = 1
        for size in shape:
            self.count *= size
        fields = [(f, "I") for f in ("M", "N", "K", "am", "ak", "wk", "wn", "ym", "yn")]
        self.values = [m, n, k, a.row, a.column, w.row, w.column, out.row, out.column, *walk.values]
        operands = [("y", out.dtype, "w"), ("a", a.dtype, "r"), ("w", w.dtype, "r"), *[(s, d, "r") for s, d in more]]
        common = head + walk.function("z_a", 0) + walk.function("z_w", 1) + walk.function("z_y", 2)
        common += "" if beside is None else walk.function("z_x", 3)
        common += f"fn finished(v: f32, m: u32, n: u32, z: u32) -> f32 {{ return {epilogue}; }}\n"
        self.empty = not (m and n and self.count)
        if m <= FEW:
            body, group, self.grid = self._few(m, n, w.row == 1 or k == 1)
        else:
            body, group, self.grid = self._tiles(m, n)
        self.program = Program(
            name, operands, [*fields, *walk.numbers, *numbers], body, group=group, head=common + self.shared
        )

    def _few(self, m: int, n: int, along: bool) -> tuple[str, tuple[int, int], tuple[int, int, int]]:
        """Each weight is read once: threads share a column's sum, more of them where its numbers lie side by side."""
        kl, nl = (16, 4) if along else (4, 16)
        # Neighbouring threads read neighbouring numbers.
        split = f"lane % {kl}u; let c = lane / {kl}u;" if along else f"lane / {nl}u; let c = lane % {nl}u;"
        self.shared = f"var<workgroup> parts: array<f32, {64 * m}>;\n"
        loads = " ".join(f"s{i} += a_at(za + {i}u * P.am + k * P.ak) * v;" for i in range(m))
        puts = " ".join(f"parts[{i * 64}u + c * {kl}u + q] = s{i};" for i in range(m))
        body = f"""  let q = {split}
  let n = wid.x * {nl}u + c;
  let z = wid.z;
  let za = z_a(z);
  let zw = z_w(z);
  {" ".join(f"var s{i} = 0.0;" for i in range(m))}
  if (n < P.N) {{
    for (var k = q; k < P.K; k += {kl}u) {{ let v = {self.read.format(k="k", n="n")}; {loads} }}
  }}
  {puts}
  workgroupBarrier();
  if (q < {m}u && n < P.N) {{
    var v = 0.0;
    for (var i = 0u; i < {kl}u; i++) {{ v += parts[q * 64u + c * {kl}u + i]; }}
    y_set(z_y(z) + q * P.ym + n * P.yn, finished(v, q, n, z));
  }}"""
        return body, (64, 1), (-(-n // nl), 1, self.count)

    def _tiles(self, m: int, n: int) -> tuple[str, tuple[int, int], tuple[int, int, int]]:
        """16 by 16 threads, each with up to 4 by 4 results; both operands pass through workgroup memory."""
        tm = 4 if m > 24 else 2 if m > 16 else 1
        tn = 4 if n > 24 else 2 if n > 16 else 1
        rows, columns, depth = 16 * tm, 16 * tn, 16
        self.shared = (
            f"var<workgroup> left: array<f32, {rows * (depth + 1)}>;\n"
            f"var<workgroup> right: array<f32, {columns * (depth + 1)}>;\n"
        )
        sums = " ".join(f"var s{i}{j} = 0.0;" for i in range(tm) for j in range(tn))
        takes = " ".join(f"let p{i} = left[(lid.y + {16 * i}u) * {depth + 1}u + t];" for i in range(tm))
        takes += " " + " ".join(f"let q{j} = right[(lid.x + {16 * j}u) * {depth + 1}u + t];" for j in range(tn))
        adds = " ".join(f"s{i}{j} += p{i} * q{j};" for i in range(tm) for j in range(tn))
        puts = "\n".join(
            f"  {{ let m = top + lid.y + {16 * i}u; let n = first + lid.x + {16 * j}u; "
            f"if (m < P.M && n < P.N) {{ y_set(zy + m * P.ym + n * P.yn, finished(s{i}{j}, m, n, z)); }} }}"
            for i in range(tm)
            for j in range(tn)
        )
        body = f"""  let z = wid.z;
  let za = z_a(z);
  let zw = z_w(z);
  let zy = z_y(z);
  let top = wid.y * {rows}u;
  let first = wid.x * {columns}u;
  let thread = lid.y * 16u + lid.x;
  {sums}
  for (var k0 = 0u; k0 < P.K; k0 += {depth}u) {{
    for (var e = thread; e < {rows * depth}u; e += 256u) {{
      // Whichever of the two lies densely is the fast one.
      let i = select(e / {depth}u, e % {rows}u, P.am == 1u);
      let t = select(e % {depth}u, e / {rows}u, P.am == 1u);
      var v = 0.0;
      if (top + i < P.M && k0 + t < P.K) {{ v = a_at(za + (top + i) * P.am + (k0 + t) * P.ak); }}
      left[i * {depth + 1}u + t] = v;
    }}
    for (var e = thread; e < {columns * depth}u; e += 256u) {{
      let i = select(e / {depth}u, e % {columns}u, P.wn == 1u);
      let t = select(e % {depth}u, e / {columns}u, P.wn == 1u);
      var v = 0.0;
      if (first + i < P.N && k0 + t < P.K) {{ v = {self.read.format(k="(k0 + t)", n="(first + i)")}; }}
      right[i * {depth + 1}u + t] = v;
    }}
    workgroupBarrier();
    for (var t = 0u; t < {depth}u; t++) {{ {takes} {adds} }}
    workgroupBarrier();
  }}
{puts}"""
        return body, (16, 16), (-(-n // columns), -(-m // rows), self.count)

    def __call__(self, views: Sequence[View], *numbers: float) -> None:
        """Operands y, a, w and those that the epilogue reads."""
        if not self.empty:
            self.program(self.grid, views, *self.values, *numbers)
