"""Whole steps: training a network, generating a token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .case import Case, ints, randn, tensor
from .models import Decoder, cnn, fill, gpt, mlp

Setup = Callable[[Any], Callable[[], object]]


def _training(make: Callable[[Any], Any], optimizer: str, x: Any, y: Any) -> Setup:
    def setup(m: Any) -> Callable[[], object]:
        model = fill(m, make(m))
        opt = getattr(m.optim, optimizer)(model.parameters(), lr=1e-4)
        inputs, targets = tensor(m, x), tensor(m, y)

        def step() -> float:
            opt.zero_grad()
            logits = model(inputs)
            loss = m.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), targets)
            loss.backward()
            opt.step()
            return float(loss.item())

        return step

    return setup


def _decoding(dtype: str, tokens: int, start: int, sizes: dict[str, int]) -> Setup:
    def setup(m: Any) -> Callable[[], object]:
        model = Decoder(m, dtype, **sizes)
        prompt = tensor(m, ints(1, tokens, high=sizes.get("vocabulary", 151_936)))

        def step() -> int:
            with m.no_grad():
                return int(model(prompt, start).argmax().item())

        return step

    return setup


TINY = {"layers": 2, "hidden": 16, "heads": 4, "kv_heads": 2, "head": 8, "inner": 32, "vocabulary": 50, "room": 24}


def cases(scale: str) -> Iterator[Case]:
    """Three trainings, and a 0.6-billion transformer reading a prompt and writing a token."""
    tiny = scale == "tiny"
    seconds = {"full": 4.0, "quick": 0.8, "tiny": 0.0}[scale]
    batch = 4 if tiny else 64

    def case(name: str, setup: Setup) -> Case:
        return Case(name, setup, seconds, least=2, memory=scale == "full")

    labels = ints(batch, high=10)
    yield case(
        f"MLP training, batch {batch}",
        _training(lambda m: mlp(m, 16 if tiny else 512), "SGD", randn(batch, 784), labels),
    )
    yield case(
        f"CNN training, batch {batch}",
        _training(lambda m: cnn(m, 2 if tiny else 16), "Adam", randn(batch, 1, 28, 28), labels),
    )
    width, layers, context, n = (12, 1, 8, 2) if tiny else (384, 6, 256, 16)
    if scale == "quick":
        n = 2
    text = ints(n, context + 1, high=65)
    yield case(
        f"GPT training, {layers} layers of {width}, batch {n}",
        _training(
            lambda m: gpt(m, 65, context, width, 6, layers), "AdamW", text[:, :-1].copy(), text[:, 1:].reshape(-1)
        ),
    )
    # A few of the layers stand for all where time is short.
    less = {"full": 1, "quick": 7, "tiny": 14}[scale]
    sizes = TINY if tiny else {"layers": 28 // less}
    named = "" if less == 1 else f" ({28 // less} of 28 layers)"
    past, prompt = (16, 4) if tiny else (512, 128)
    for dtype in ("float32", "bfloat16"):
        yield case(f"0.6B decode {dtype}{named}", _decoding(dtype, 1, past, sizes))
        yield case(f"0.6B prefill {prompt} {dtype}{named}", _decoding(dtype, prompt, 0, sizes))
