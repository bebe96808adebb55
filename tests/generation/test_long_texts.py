"""Two thousand tokens: memory stays flat, and tables of plans stay bounded."""

from __future__ import annotations

import gc
import os
from typing import Any

import pytest

import votive
from tests.test_memory import resident
from votive.dispatch.build import PLAN_LIMIT, _memories
from votive.generation import generate
from votive.ops.registry import OPS

from .tiny import PROMPT, model

TOKENS = 2000
# A layer's keys and values: batch 1, 2 heads of 8 numbers, 4 bytes each, in 2 layers.
PER_POSITION = 2 * 2 * 2 * 8 * 4


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc on this system")
@pytest.mark.parametrize(
    ("settings", "room"),
    [
        ({"cache_implementation": "static"}, TOKENS + 40),
        ({"cache_implementation": "sliding"}, 200),
        ({"cache_implementation": "dynamic", "repetition_penalty": 1.1}, 4 * TOKENS + 200),
    ],
    ids=["static", "sliding", "dynamic with a penalty"],
)
def test_two_thousand_tokens_leave_memory_flat(settings: dict[str, Any], room: int) -> None:
    net = model("mistral", max_position_embeddings=4096)
    held: list[int] = []

    def look(ids: Any, scores: Any) -> bool:
        held.append(votive.cpu.memory_allocated())
        return False

    generate(net, [PROMPT], max_new_tokens=20, stopping_criteria=look, **settings)
    held.clear()
    gc.collect()
    before, allocated = resident(), votive.cpu.memory_allocated()
    gc.disable()  # nothing may depend on the collector
    try:
        found = generate(net, [PROMPT], max_new_tokens=TOKENS, stopping_criteria=look, **settings)
    finally:
        gc.enable()
    assert found.shape == (1, TOKENS + len(PROMPT))
    del found
    assert votive.cpu.memory_allocated() <= allocated + 4096
    # No more at any time than the cache and the ids, and a little for the step itself.
    assert max(held) - allocated <= room * PER_POSITION + 8 * (TOKENS + 7) + (64 << 10)
    if settings["cache_implementation"] != "dynamic":
        assert held[-1] - held[10] <= 8192
    # What is left are plans for lengths not seen before, of which there is a bounded number.
    assert resident() - before < 12 << 20
    assert all(len(o.plans) <= 2 * PLAN_LIMIT for o in OPS.values())
    assert all(len(m) <= 2 * PLAN_LIMIT for m in _memories)


def test_no_view_of_the_history_is_made_where_nobody_reads_it() -> None:
    net = model()
    plans = {name: len(o.plans) for name, o in OPS.items()}
    generate(net, [PROMPT], max_new_tokens=300, do_sample=True, repetition_penalty=1.1, seed=0)
    grown = {n: len(o.plans) - plans[n] for n, o in OPS.items() if len(o.plans) - plans[n] > 50}
    # Attention sees another number of keys each time; nothing else may.
    assert set(grown) <= {"_attention"}
