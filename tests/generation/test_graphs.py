"""Which models may have their step recorded as a graph; recording itself needs a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import votive
from votive import nn
from votive.generation.graphs import graphable
from votive.generation.stepping import Wanted

from .tiny import model


def test_nothing_is_recorded_on_the_cpu() -> None:
    assert graphable(model(), nn.StaticCache(8), None) is False
    assert graphable(model("qwen3"), nn.StaticCache(8), Wanted()) is False


class _Elsewhere(nn.Module):
    """A model that says it is on a GPU; nothing of it runs."""

    __module__ = "votive"  # other code than votive's is not recorded
    device = votive.device("cuda", 0)

    def __init__(self, rope: Any = None, window: int | None = None) -> None:
        super().__init__()
        self.config = SimpleNamespace(sliding_window=window)
        self.rope = rope or nn.RotaryEmbedding(4, 16)
        self.eval()


def test_a_step_on_a_gpu_with_memory_that_stays_can_be_recorded() -> None:
    assert graphable(_Elsewhere(), nn.StaticCache(8), None) is True
    assert graphable(_Elsewhere(), nn.StaticCache(8), Wanted()) is True


def test_memory_that_grows_cannot_be_recorded() -> None:
    assert graphable(_Elsewhere(), nn.DynamicCache(), None) is False


def test_a_window_or_angles_that_depend_on_the_length_cannot_be_recorded() -> None:
    longer = nn.RotaryEmbedding(4, 16, scaling={"rope_type": "dynamic", "factor": 2.0})
    assert graphable(_Elsewhere(window=4), nn.StaticCache(8), None) is False
    assert graphable(_Elsewhere(longer), nn.StaticCache(8), None) is False


def test_who_looks_inside_keeps_the_step_from_being_recorded() -> None:
    found = _Elsewhere()
    assert graphable(found, nn.StaticCache(8), Wanted(attentions=True)) is False
    handle = found.rope.register_forward_hook(lambda *given: None)
    assert graphable(found, nn.StaticCache(8), None) is False
    handle.remove()
    assert graphable(found, nn.StaticCache(8), None) is True


def test_code_that_is_not_votives_keeps_the_step_from_being_recorded() -> None:
    found = _Elsewhere()
    found.rope.forward = lambda x: x
    assert graphable(found, nn.StaticCache(8), None) is False
    del found.rope.forward
    assert graphable(found, nn.StaticCache(8), None) is True
    found.rope.train()  # dropout draws anew for each token
    assert graphable(found, nn.StaticCache(8), None) is False

    class Other(nn.RotaryEmbedding):
        def forward(self, *args: Any) -> Any:
            return super().forward(*args)

    assert graphable(_Elsewhere(Other(4, 16)), nn.StaticCache(8), None) is False
