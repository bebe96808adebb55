"""A linear layer and its activation as one kernel against two: `python -m benchmarks.epilogue`.

The two times are those of the fused operator and of the two operators of votive; rows
marked "to torch" compare the fused operator with the two of torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .cpu.case import randn, tensor
from .pairing import Row, pair, table

# Rows, inputs, outputs: decoding, a prompt, small nets, the net of a small GPT.
SHAPES = [(1, 1024, 3072), (64, 512, 512), (128, 1024, 3072), (256, 768, 3072), (4096, 384, 1536)]


def rows(seconds: float = 0.7) -> Iterator[Row]:
    """Each shape in float32 and bfloat16, with gelu and silu."""
    import torch

    import votive
    from votive.ops.registry import F

    for dtype in ("float32", "bfloat16"):
        for m, k, n in SHAPES:
            arrays = (randn(m, k, dtype=dtype), randn(n, k, dtype=dtype, seed=1), randn(n, dtype=dtype))
            x, w, b = (tensor(votive, a) for a in arrays)
            theirs: Any = [tensor(torch, a) for a in arrays]
            for f in ("gelu", "silu"):
                name, act = f"{dtype} {m}x{k}x{n} {f}", getattr(torch.nn.functional, f)
                fused = lambda x=x, w=w, b=b, f=f: F._linear_activated(x, w, b, f)
                apart = lambda x=x, w=w, b=b, f=f: F._linear_activated_composite(x, w, b, f)
                two = lambda t=theirs, act=act: act(torch.nn.functional.linear(*t))
                yield pair(name, fused, apart, 15, seconds)
                yield pair(f"{name}, to torch", fused, two, 15, seconds)


def main() -> None:
    import torch

    import votive

    torch.set_num_threads(2)
    votive.set_num_threads(2)
    with votive.no_grad(), torch.no_grad():
        for row in rows():
            print(table([row]).splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
