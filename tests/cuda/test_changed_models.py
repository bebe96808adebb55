"""Models that were changed, on the GPU: recorded and fused steps give what the modules give, also
when the change comes in the midst of a text or between two texts.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import votive
from tests.nn.changes import CHANGES, LOOKS
from tests.nn.test_fast_path import llama
from votive import nn
from votive.generation.graphs import GraphStepper
from votive.generation.stepping import DecoderStepper
from votive.models.fused_decoder import FusedDecoder
from votive.nn.modules.module import register_module_forward_hook

from .device import EMULATED

pytestmark = pytest.mark.filterwarnings("ignore:For backward hooks to be called")
WAYS = {**CHANGES, **LOOKS}
PROMPT, TOKENS = [[1, 2, 3]], [4, 5]  # few: emulated launches take long
# Seen by neither a class nor a hook: what recorded steps once passed over.
SOME = [
    "nothing",
    "an own forward of the net",
    "an own forward of a product that is added",
    "a forward hook on a norm",
    "another parameter",
    "other data",
    "another eps for keys only",
    "a window",
    "an observer",
    "LoRA",
    "forward of Linear replaced",
    "an own activation",
]


def _steps(model: Any, kind: Any, way: str = "", after: int = 0) -> list[Any]:
    """The logits of each token; the model is changed after so many of them."""
    found = []
    with votive.no_grad(), ExitStack() as stack:
        if kind is DecoderStepper:  # every module is called
            stack.enter_context(register_module_forward_hook(lambda m, args, y: None))
        stepper = kind(model, cache=nn.StaticCache(8), max_length=8)
        stepper.feed(votive.tensor(PROMPT, device="cuda"))
        for i, token in enumerate(TOKENS):
            if way and i == after:
                WAYS[way](model.model.layers[0], stack)
            logits = stepper.advance(votive.tensor([[token]], device="cuda")).logits
            found.append(logits.cpu().numpy().copy())
    return found


def _agree(got: list[Any], want: list[Any]) -> None:
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


# Emulated launches take seconds: `tests/nn/test_fast_path.py` asks of all ways whether they are seen.
@pytest.mark.parametrize("way", SOME if EMULATED else WAYS)
def test_steps_of_a_changed_model_are_those_of_its_modules(way):
    found = []
    for kind in (GraphStepper, DecoderStepper):
        with ExitStack() as stack:
            model = llama().to("cuda")
            WAYS[way](model.model.layers[0], stack)
            found.append(_steps(model, kind))
    _agree(*found)


@pytest.mark.parametrize("way", SOME[::3] if EMULATED else SOME)
def test_a_change_in_the_midst_of_a_text_is_seen(way):
    want = _steps(llama().to("cuda"), DecoderStepper, way, 1)
    got = _steps(llama().to("cuda"), GraphStepper, way, 1)
    _agree(got, want)
    same = _steps(llama().to("cuda"), DecoderStepper)
    assert np.allclose(want[1], same[1], atol=1e-4) == (way in LOOKS)


def test_a_change_between_two_texts_is_seen():
    model = llama().to("cuda")
    first = _steps(model, GraphStepper)
    model.model.layers[0].mlp.forward = lambda x: 3 * x
    changed = _steps(model, GraphStepper)
    _agree(changed, _steps(model, DecoderStepper))
    del model.model.layers[0].mlp.forward
    _agree(_steps(model, GraphStepper), first)
    assert not np.allclose(changed[0], first[0], atol=1e-4)


def test_layers_that_were_left_out_or_reordered_keep_their_places_in_the_cache():
    for order in ([1], [1, 0]):
        model = llama().to("cuda")
        model.model.layers = nn.ModuleList([model.model.layers[i] for i in order])
        _agree(_steps(model, GraphStepper), _steps(model, DecoderStepper))


def test_an_unchanged_model_is_fused_and_a_changed_one_is_not():
    with votive.no_grad():
        model = llama().to("cuda")
        assert FusedDecoder.of(model) is not None
        for way in ("a bias", "another eps for keys only", "an own forward of the layer"):
            with ExitStack() as stack:
                model = llama().to("cuda")
                CHANGES[way](model.model.layers[0], stack)
                assert FusedDecoder.of(model) is None


def test_weights_of_several_types_are_left_to_the_modules():
    model = llama().to("cuda").to(votive.bfloat16)
    assert FusedDecoder.of(model) is not None
    model.model.norm.float()
    assert FusedDecoder.of(model) is None
    model = llama().to("cuda")
    with votive.autocast("cuda", dtype=votive.bfloat16):
        assert FusedDecoder.of(model) is None
