"""Tile sizes of attention and of products with few rows, tried one by one on this GPU:
`python -m benchmarks.gpu.tuning attention`, or `few_rows`.
"""

from __future__ import annotations

from typing import Any

from . import batch_time
from .attention_tuning import attention, compile_share
from .kernels import pair


def _time(fn: Any) -> float:
    for _ in range(3):
        fn()
    return min(batch_time(fn, "votive", 10) for _ in range(3))


def few_rows() -> None:
    from votive.backends.cuda.kernels.matmul import kernels as matmul_kernels
    from votive.backends.cuda.programs.program import Program

    for n, k in ((3072, 1024), (1024, 1024), (1024, 3072), (2048, 1024), (151936, 1024)):
        weights = [pair(n, k)[0] for _ in range(max(1, min(48, int(2e8 / (2 * n * k)))))]
        x, y = pair(1, k)[0], pair(1, n)[0]
        best = []
        for bn in (1, 2, 4, 8, 16):
            for bk in (256, 512, 1024):
                if k % bk:
                    continue
                for warps in (1, 2, 4, 8):
                    p = Program(
                        matmul_kernels._few_rows,
                        ["*bf16"] * 4 + ["i32", "i32", "i64", "i64", "i64"],
                        {"M": 1, "BIAS": False, "KIND": 0, "EVEN": True, "BN": bn, "BK": bk},
                        warps=warps,
                    )
                    p.divisible = (4, 5, 6, 7, 8)

                    def run(
                        p: Any = p, bn: int = bn, weights: Any = weights, x: Any = x, y: Any = y, n: int = n, k: int = k
                    ) -> None:
                        to, row = y._data.ptr, x._data.ptr
                        for w in weights:
                            p((-(-n // bn),), to, row, w._data.ptr, row, n, k, k, k, n)

                    try:
                        import votive

                        for _ in range(2):
                            run()
                        graphed = votive.cuda.make_graphed(run)
                        best.append((_time(graphed) / len(weights) * 1e3, bn, bk, warps))
                    except Exception as e:  # tiles that do not compile or fit are no candidates
                        print(n, k, bn, bk, warps, f"{type(e).__name__} {e}"[:120], flush=True)
        best.sort()
        print(
            f"few rows {n} x {k}:",
            ", ".join(f"{t:.2f} us {b}" for t, *b in best[:4]),
            f"floor {2 * n * k / 4.2e6:.2f} us",
            flush=True,
        )


if __name__ == "__main__":
    import sys

    if sys.argv[1] == "compile":
        compile_share(int(sys.argv[2]), int(sys.argv[3]))
    else:
        {"attention": attention, "few_rows": few_rows}[sys.argv[1]]()
