"""Looking inside of compiled training steps: captures, edits and profiles see what they see eagerly."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import glass
from votive.nn import functional as F

from .compare import close
from .test_whole_steps import OPTIMIZERS, small, small_batch

pytestmark = pytest.mark.usefixtures("interpreted")


def training(compiled: bool) -> tuple[Any, Any]:
    votive.manual_seed(0)
    model = small()
    optimizer = OPTIMIZERS["adamw"](model.parameters())

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return model, votive.compile(step) if compiled else step


def looked(compiled: bool, how: Any) -> list[Any]:
    model, step = training(compiled)
    batch = small_batch()
    found = [step(*batch) for _ in range(3)]
    for _ in range(3):
        found += how(model, lambda: step(*batch))
    return [*found, step(*batch), *(p.detach().clone() for p in model.parameters())]


def kept(model: Any, run: Any) -> list[Any]:
    with glass.capture(model, ["0", "2"]) as seen:
        out = run()
    return [out, seen["0"].detach().clone(), seen["2"].detach().clone()]


def copied(model: Any, run: Any) -> list[Any]:
    with glass.capture(model, ["0", "1"], policy="copy") as seen:
        out = run()
    return [out, seen["0"].detach(), seen["1"].detach()]


def patched(model: Any, run: Any) -> list[Any]:
    with glass.patch(model, {"1": lambda v: v * 0.5}):
        return [run()]


def hooked(model: Any, run: Any) -> list[Any]:
    with model[0].register_forward_hook(lambda m, args, out: out + 1):
        return [run()]


def with_gradients(model: Any, run: Any) -> list[Any]:
    seen: list[Any] = []
    with model[2].register_full_backward_hook(lambda m, by_input, by_output: seen.append(by_output[0].clone())):
        out = run()
    return [out, *seen]


def disabled(model: Any, run: Any) -> list[Any]:
    return [votive.compiler.disable(run)()]


def anomalies(model: Any, run: Any) -> list[Any]:
    with votive.autograd.set_detect_anomaly(True):
        return [run()]


HOWS = [kept, copied, patched, hooked, with_gradients, disabled, anomalies]


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("how", HOWS, ids=lambda h: h.__name__)
def test_looking_sees_what_it_sees_eagerly(how: Any) -> None:
    want, got = looked(False, how), looked(True, how)
    assert len(want) == len(got)
    for a, b in zip(want, got, strict=True):
        close(a, b, 30)
