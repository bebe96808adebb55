"""Linear layers of an 8B model with weights in blocks, against bfloat16 weights of the same shape:
`python -m benchmarks.gpu.quantized [--formats q4_k q6_k q8_0] [--rows 1 4 16 64 512] [--exact] [--only REGEX]`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import Any

from . import Case, measure, show

FORMATS = ("q4_k", "q6_k", "q8_0")
ROWS = (1, 4, 16, 64, 512)
# Features in and out: attention, both sides of the feed-forward part, the head.
SHAPES = ((4096, 4096), (4096, 14336), (14336, 4096), (4096, 128256))


def _error(a: Any, b: Any) -> float:
    """Relative difference in the Euclidean norm."""
    x, y = (t.float().cpu().double() for t in (a, b))
    return float((x - y).norm() / (y.norm() + 1e-30))


def codes(name: str, rows: int, columns: int) -> Any:
    """Random codes, with scales that keep numbers finite: quantizing a weight of this size would take longer."""
    import numpy as np

    import votive
    from votive.core.blocks import by_name

    kind, rng = by_name(name), np.random.default_rng(0)
    raw = rng.integers(0, 256, (rows, kind.row_bytes(columns)), dtype=np.uint8)
    records = raw.view(kind.np)
    for field in ("d", "dmin", "m"):
        if field in (kind.np.names or ()):
            records[field] = 1e-3
    if "z" in (kind.np.names or ()):
        records["z"] = 8
    return votive.from_numpy(raw).to("cuda"), kind


def blocks(formats: Sequence[str] = FORMATS, counts: Sequence[int] = ROWS, exact: bool = False) -> Iterator[Case]:
    """Each shape in bfloat16, then in each format; a rate is the bytes of the weight over the time. Unless `exact`, few
    rows are rounded to eight bits, as they are by default.
    """
    import votive
    import votive.nn.functional as F
    from votive.ops.registry import F as ops

    for k, n in SHAPES:
        inputs = {rows: votive.randn(rows, k, device="cuda", dtype=votive.bfloat16) for rows in counts}
        weight = votive.randn(n, k, device="cuda", dtype=votive.bfloat16)
        for rows, x in inputs.items():
            yield Case(
                f"bfloat16 {k} to {n}, {rows} rows", lambda x=x, w=weight: F.linear(x, w), None, bytes=2.0 * n * k
            )
        for name in formats:
            data, kind = codes(name, n, k)
            weight = ops._block_decode(data, kind, votive.bfloat16)
            for rows, x in inputs.items():
                mine = lambda x=x, d=data, f=kind: ops._block_linear(x, d, None, f, exact)
                check = lambda x=x, w=weight, m=mine: _error(m(), F.linear(x, w))
                yield Case(f"{name} {k} to {n}, {rows} rows", mine, None, bytes=float(data.nbytes), check=check)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--formats", nargs="+", default=FORMATS, help="block formats by name")
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS, help="rows of the input")
    parser.add_argument("--exact", action="store_true", help="round no input")
    parser.add_argument("--only", default="", help="cases whose name matches")
    args = parser.parse_args(argv)
    for case in blocks(args.formats, args.rows, args.exact):
        if re.search(args.only, case.name):
            print(show(measure(case)), flush=True)


if __name__ == "__main__":
    main()
