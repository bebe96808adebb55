"""One helper: a model of transformers and one of votive with the same weights, side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive

torch = pytest.importorskip("torch", reason="compares with torch")
transformers = pytest.importorskip("transformers", reason="compares with transformers")

# Relative to the largest value: what float32 sums of different orders differ by.
F32 = 1e-4
# bfloat16 keeps 8 bits; layers add up.
BF16 = 4e-2


def pair(theirs: Any, ours: type, *, dtype: Any = None, seed: int = 0) -> tuple[Any, Any]:
    """The model of a transformers class and configuration, and `ours` with its weights."""
    model_class, config = theirs
    torch.manual_seed(seed)
    config._attn_implementation = "eager"
    reference = model_class(config).eval()
    with torch.no_grad():
        for name, p in reference.named_parameters():
            # Norms of one and biases of zero would hide what is swapped or left out.
            if p.dim() == 1:
                p.add_(torch.randn_like(p) * 0.1)
            elif "embed" not in name and "wte" not in name:
                p.mul_(3.0)
    values = config.to_dict()
    model = ours(ours.config_class.from_dict(values))
    state = {k: v.detach().numpy() for k, v in reference.state_dict().items()}
    model.load_weights(Arrays(state))
    if dtype is not None:
        reference, model = reference.to(getattr(torch, dtype)), model.to(getattr(votive, dtype))
    return reference, model.eval()


class Arrays:
    """Arrays as a weight source: the little of it that `load_weights` asks for."""

    def __new__(cls, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
        return votive.io.MemorySource({k: votive.tensor(v) for k, v in arrays.items()})


def agree(got: Any, expected: Any, tolerance: float = F32) -> None:
    """Equal within `tolerance` of the largest value."""
    a, b = got.float().numpy(), expected.detach().float().numpy()
    assert a.shape == b.shape
    scale = np.abs(b).max()
    assert scale > 0, "the reference is all zeros: nothing is compared"
    worst = np.abs(a - b).max() / scale
    assert worst <= tolerance, f"differs by {worst:.2e} of the largest value"
