"""Every model of the package, compiled, gives what it gives eagerly: values, gradients, training, token by token."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import votive
from tests.models.golden import IDS, ROWS, inputs, model_of, scores
from votive import nn
from votive.vision import models as vision

from .compare import close

pytestmark = pytest.mark.usefixtures("interpreted")

DECODERS = [row for row, (name, _) in ROWS.items() if "Causal" in name or "LMHead" in name]
VISION: dict[str, Any] = {
    "resnet18": lambda: vision.resnet18(num_classes=5),
    "mobilenet_v2": lambda: vision.mobilenet_v2(num_classes=5),
}


def parts(model: Any) -> Any:
    """The compiled program behind a compiled module."""
    return model.__dict__["_compiled"]


def agree(model: Any, arguments: dict[str, Any], given: Any) -> None:
    """Three calls with gradients, compiled and not."""
    other = copy.deepcopy(model)
    compiled = votive.compile(model)
    for turn in range(3):
        found = []
        for m in (other, compiled):
            m.zero_grad()
            votive.manual_seed(turn)
            out = given(m(**arguments))
            (out.float() * 0.5).sin().sum().backward()
            found.append((out, [p.grad for p in m.parameters()]))
        (want, grads), (got, others) = found
        close(want, got)
        for a, b in zip(grads, others, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                close(a, b, 10)


@pytest.mark.parametrize("row", ROWS)
def test_a_model_gives_its_values_and_gradients(row: str) -> None:
    agree(model_of(row).train(), inputs(row, votive.tensor), scores)


@pytest.mark.parametrize("name", VISION)
def test_a_vision_model_gives_its_values_and_gradients(name: str) -> None:
    votive.manual_seed(0)
    model = VISION[name]()
    agree(model, {"x": votive.randn(2, 3, 32, 32)}, lambda y: y)


@pytest.mark.parametrize("row", DECODERS)
def test_a_generation_step_with_a_static_cache_gives_its_scores(row: str) -> None:
    model = model_of(row)
    compiled = votive.compile(model_of(row))
    caches = [nn.StaticCache(7) for _ in range(2)]
    with votive.no_grad():
        for t in votive.tensor(IDS).split(1, 1):
            want, got = (m(t, past_key_values=c).logits for m, c in zip((model, compiled), caches, strict=True))
            close(want, got)
