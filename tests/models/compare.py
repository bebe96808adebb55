"""One helper: a model of transformers and one of votive with the same weights, side by side."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import votive
from tests.vision.torchvision_models import prepare

from ..vision.reference import torchvision

torch = pytest.importorskip("torch", reason="compares with torch")
prepare()
transformers = pytest.importorskip("transformers", reason="compares with transformers")
# Several of its models import torchvision where it is installed, also if that is half broken.
with contextlib.suppress(pytest.skip.Exception):
    torchvision()
# Configurations this small have token ids outside their vocabulary, and it says so each time.
transformers.logging.set_verbosity_error()

# Relative to the largest value: what float32 sums of different orders differ by.
F32 = 1e-4
# bfloat16 keeps 8 bits; layers add up.
BF16 = 4e-2


def pair(
    theirs: Any, ours: type, *, dtype: Any = None, seed: int = 0, train: bool = False, gain: float = 3.0
) -> tuple[Any, Any]:
    """The model of a transformers class and configuration, and `ours` with its weights.

    `gain` makes matrices larger than they start, so that layers do more than pass on what came.
    """
    model_class, config = theirs
    torch.manual_seed(seed)
    config._attn_implementation = "eager"
    reference = model_class(config).eval()
    with torch.no_grad():
        for name, p in reference.named_parameters():
            # Norms of one and biases of zero would hide what is swapped or left out.
            if p.dim() == 1:
                p.add_(torch.randn_like(p) * 0.1)
            elif "embed" not in name and "wte" not in name and "shared" not in name:
                p.mul_(gain)
        for name, p in (*reference.named_buffers(), *reference.named_parameters()):
            if name.endswith("correction_bias"):  # which of a mixture's experts are chosen
                p.copy_(torch.randn_like(p) * 0.2)
    values = config.to_dict()
    model = ours(ours.config_class.from_dict(values))
    model.load_weights(arrays(reference.state_dict()))
    if dtype is not None:
        for p in reference.parameters():  # and no buffer: angles stay float32, as when loaded
            p.data = p.data.to(getattr(torch, dtype))
        for name, b in reference.named_buffers():
            # Tables that are multiplied and added are loaded as parameters are.
            if b.is_floating_point() and name.endswith(("embed_positions.weights", "attn.bias")):
                b.data = b.data.to(getattr(torch, dtype))
        model = model.to(getattr(votive, dtype))
    for p in model.parameters():
        p.requires_grad_(train)
    return reference.requires_grad_(train), model.eval()


def arrays(state: dict[str, Any]) -> Any:
    """Torch's tensors as a weight source."""
    tensors = {k: votive.tensor(v.detach().numpy()) for k, v in state.items() if v is not None}
    return votive.io.MemorySource(tensors)


def agree(got: Any, expected: Any, tolerance: float = F32, where: Any = None) -> None:
    """Equal within `tolerance` of the largest value, at the positions that count."""
    a, b = got.detach().float().numpy(), expected.detach().float().numpy()
    assert a.shape == b.shape
    if where is not None:
        a, b = a[np.asarray(where, bool)], b[np.asarray(where, bool)]
    scale = np.abs(b).max()
    assert scale > 0, "the reference is all zeros: nothing is compared"
    worst = np.abs(a - b).max() / scale
    assert worst <= tolerance, f"differs by {worst:.2e} of the largest value"


def gradients_agree(reference: Any, model: Any, tolerance: float = F32, least: float = 1e-4) -> None:
    """Every parameter's gradient equals the reference's, whatever the two call it.

    What is smaller than `least` of the largest gradient is compared with that much: it may be zero but for rounding.
    """
    kept = reference.state_dict(keep_vars=True)
    found = {k: torch.zeros_like(v) if v.grad is None else v.grad for k, v in kept.items()}
    # The weights' own way from one set of names to the other carries gradients over as well.
    expected = type(model)(model.config)
    expected.load_weights(arrays(found))
    wanted = dict(expected.named_parameters())
    largest = max(p.abs().max().item() for p in wanted.values())
    for name, p in model.named_parameters():
        b = wanted[name].detach().numpy()
        if p.grad is None and ".experts." in name:  # nobody asked this one, whose part of a stacked tensor is zero
            assert not b.any(), name
            continue
        assert p.grad is not None, f"{name} has no gradient"
        a = p.grad.numpy()
        # Some gradients are zero but for rounding: a bias of keys moves all scores of a query.
        scale = max(np.abs(b).max(), least * largest)
        worst = np.abs(a - b).max() / scale
        assert worst <= tolerance, f"{name}: differs by {worst:.2e} of the largest value"


def ids(shape: tuple[int, int], vocabulary: int = 61, seed: int = 0) -> tuple[Any, Any]:
    """Random token ids, for both; none of them is special."""
    values = np.random.default_rng(seed).integers(3, vocabulary, shape)
    return torch.tensor(values), votive.tensor(values)


def both(values: Any) -> tuple[Any, Any]:
    """The same numbers, for both."""
    return torch.tensor(np.asarray(values)), votive.tensor(np.asarray(values))
