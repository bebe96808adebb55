"""Calls on small tensors: what the host does for each is longer than what the GPU does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import Case
from .kernels import error, pair


def calls() -> Iterator[Case]:
    import torch
    import torch.nn.functional as TF

    import votive
    import votive.nn.functional as F

    x, tx = pair(64, 64, dtype="float32")
    w, tw = pair(64, dtype="float32")
    m, tm = pair(64, 64, dtype="float32")
    q, tq = pair(1, 4, 64, 64)
    many, tmany = x.unbind(0), tx.unbind(0)
    sides: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "x + y": (lambda: x + m, lambda: tx + tm),
        "x * 2": (lambda: x * 2.0, lambda: tx * 2.0),
        "x.add_(y)": (lambda: x.add_(m, alpha=1e-9), lambda: tx.add_(tm, alpha=1e-9)),
        "gelu": (lambda: F.gelu(x), lambda: TF.gelu(tx)),
        "sum": (lambda: x.sum(), lambda: tx.sum()),
        "softmax": (lambda: F.softmax(x, -1), lambda: TF.softmax(tx, -1)),
        "layer_norm": (lambda: F.layer_norm(x, (64,), w, w), lambda: TF.layer_norm(tx, (64,), tw, tw)),
        "x @ y": (lambda: x @ m, lambda: tx @ tm),
        "linear with bias": (lambda: F.linear(x, m, w), lambda: TF.linear(tx, tm, tw)),
        "attention": (
            lambda: F.scaled_dot_product_attention(q, q, q),
            lambda: TF.scaled_dot_product_attention(tq, tq, tq),
        ),
        "x.view": (lambda: x.view(32, 128), lambda: tx.view(32, 128)),
        "x[1:3]": (lambda: x[1:3], lambda: tx[1:3]),
        "stack of 64": (lambda: votive.stack(many), lambda: torch.stack(tmany)),
        "empty": (lambda: votive.empty(64, 64, device="cuda"), lambda: torch.empty(64, 64, device="cuda")),
        "zeros": (lambda: votive.zeros(64, 64, device="cuda"), lambda: torch.zeros(64, 64, device="cuda")),
        "x.to(bfloat16)": (lambda: x.to(votive.bfloat16), lambda: tx.to(torch.bfloat16)),
    }
    for name, (ours, theirs) in sides.items():
        same = name not in ("empty", "x.add_(y)")
        check = (lambda a=ours, b=theirs: error(a(), b())) if same else None
        yield Case(f"64 x 64: {name}", ours, theirs, check=check)
    yield small_network()


def small_network() -> Case:
    """A training step of three small layers, launched one by one."""
    import torch

    import votive

    def step(lib: Any, data: Any, target: Any) -> Callable[[], Any]:
        nn = lib.nn
        with lib.device("cuda"):
            layers = [nn.Linear(64, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 10)]
            model = nn.Sequential(*layers)
        optimizer = lib.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

        def run() -> Any:
            loss = nn.functional.cross_entropy(model(data), target)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return loss

        return run

    x, tx = pair(64, 64, dtype="float32")
    target = torch.arange(64, device="cuda") % 10
    ours = step(votive, x, votive.from_dlpack(target))
    return Case("a training step of a small network", ours, step(torch, tx, target))
