"""Writes the files of torch in `data/`, which the tests read where torch is not installed."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

DATA = Path(__file__).parent / "data"


def main() -> None:
    import numpy as np
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(2, 3)
            self.norm = torch.nn.BatchNorm1d(3)
            self.sizes = [3, 5]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.norm(self.first(x)) + self.sizes[0]

    torch.manual_seed(0)
    base = torch.arange(12.0)
    content = {
        "model": OrderedDict(weight=torch.arange(6.0).reshape(2, 3), bias=torch.tensor([0.5, -1])),
        "base": base,
        "view": base[2:8].view(2, 3).t(),
        "parameter": torch.nn.Parameter(torch.tensor([1.5, 2.5])),
        "frozen": torch.nn.Parameter(torch.tensor([1.0]), requires_grad=False),
        "grad": torch.ones(1, requires_grad=True),
        "types": {
            str(d).removeprefix("torch."): torch.tensor([0, 1, 1], dtype=torch.float32).to(d)
            for d in (
                torch.float64,
                torch.float32,
                torch.float16,
                torch.bfloat16,
                torch.float8_e4m3fn,
                torch.float8_e5m2,
                torch.int64,
                torch.int32,
                torch.int16,
                torch.int8,
                torch.uint8,
                torch.uint16,
                torch.uint32,
                torch.uint64,
                torch.bool,
                torch.complex64,
                torch.complex128,
            )
        },
        "conjugate": torch.tensor([1 + 2j]).conj(),
        "scalar": torch.tensor(7),
        "empty": torch.empty(0, 3),
        "expanded": torch.ones(1).expand(2, 2),
        "array": np.arange(6, dtype=np.int16).reshape(2, 3),
        "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "number": np.float32(2.5),
        "set": {1, 2},
        "bytes": b"ab\xff",
        "dtype": torch.float16,
        "device": torch.device("cpu"),
        "size": torch.Size([2, 3]),
        "nested": [1, (2.5, None, True, {"deep": torch.zeros(1)})],
        "large": 2**70,
        "text": "Größe",
    }
    torch.save(content, DATA / "zip.pt")
    torch.save(content, DATA / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(torch.nn.Linear(2, 1), DATA / "module.pt")
    torch.jit.script(Net().eval()).save(DATA / "scripted.pt")
    quantized = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    torch.save({"q": quantized}, DATA / "quantized.pt")


if __name__ == "__main__":
    main()
