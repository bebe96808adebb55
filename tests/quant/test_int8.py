"""`quantize_(model, "int8_dynamic")` and `"int8_static"`: near the model, in files, compiled, and what is refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

import votive
from votive import glass, nn


def net() -> Any:
    votive.manual_seed(0)
    parts = (nn.Conv2d(3, 8, 3, padding=1, groups=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10))
    return nn.Sequential(*parts).eval()


def batch() -> votive.Tensor:
    votive.manual_seed(1)
    return votive.randn(4, 3, 8, 8)


@pytest.mark.parametrize("kind", ["int8_dynamic", "int8_static"])
def test_results_are_near_those_of_the_model(kind: str, tmp_path: Path) -> None:
    model, x = net(), batch()
    exact = model(x).detach()
    small = copy.deepcopy(model)
    data = [x] if kind == "int8_static" else None
    told: list[tuple[str, int, int]] = []
    report = votive.quantize_(small, kind, data=data, progress=lambda *a: told.append(a))
    changed = ["0", "3"] if data else ["3"]
    assert [e.name for e in report.entries] == changed == [t[0] for t in told]
    assert report.worst(1)[0].relative_error < 0.01
    y = small(x)
    assert float((y - exact).abs().max()) < 0.03 * float(exact.abs().max())
    assert votive.compile(small)(x).equal(y)
    votive.save(small.state_dict(), tmp_path / "f")
    other = net()
    votive.quantize_(other, kind, data=None if data is None else [2 * x])
    other.load_state_dict(votive.load(tmp_path / "f"))
    assert other(x).equal(y)
    with glass.capture(small, "3") as seen:
        small(x)
    assert seen["3"].equal(y)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_convolutions_of_every_rank_are_calibrated(n: int) -> None:
    votive.manual_seed(0)
    kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[n - 1]
    model = nn.Sequential(kind(4, 6, 3, stride=2, padding=1, groups=2, bias=n != 2)).eval()
    x = votive.randn(2, 4, *[7] * n)
    exact = model(x).detach()
    votive.quantize_(model, "int8_static", data=[x])
    assert model(x).shape == exact.shape
    assert float((model(x) - exact).abs().max()) < 0.03 * float(exact.abs().max())
    assert model(x[0]).equal(model(x)[0])


def test_language_models_generate_and_half_types_stay() -> None:
    config = votive.models.LlamaConfig(
        vocab_size=256, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4
    )
    votive.manual_seed(0)
    model = votive.models.LlamaForCausalLM(config).eval()
    ids = votive.tensor([[1, 2, 3, 4]])
    exact = model(ids).logits
    half = copy.deepcopy(model).to(votive.bfloat16)
    votive.quantize_(model, "int8_dynamic", skip=["lm_head"])
    assert type(model.lm_head) is nn.Linear
    assert float((model(ids).logits - exact).abs().max()) < 0.05 * float(exact.abs().max())
    assert model.generate(ids, max_new_tokens=3).shape == (1, 7)
    votive.quantize_(half, "int8_dynamic")
    assert half(ids).logits.dtype is votive.bfloat16


def test_what_cannot_be_done_is_said_before_anything_changes() -> None:
    for given, text in (
        ({"kind": "int8_static"}, "give data="),
        ({"kind": "int8_dynamic", "data": [batch()]}, "leave out data="),
        ({"kind": "int8_dynamic", "method": "gptq"}, "rounds to nearest"),
        ({"kind": "int8_dynamic", "skip": "*"}, "no layer"),
    ):
        model = net()
        with pytest.raises(ValueError, match=text):
            votive.quantize_(model, **given)
        assert type(model[3]) is nn.Linear
    with pytest.raises(ValueError, match="Sequential"):
        votive.quantize_(nn.Linear(2, 2), "int8_dynamic")
    model = net()
    model[3].weight.data[0, 0] = float("nan")
    with pytest.raises(ValueError, match="NaN"):
        votive.quantize_(model, "int8_dynamic")


def test_tied_weights_stay_tied() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.body, self.head = nn.Embedding(8, 4), nn.Linear(4, 4), nn.Linear(4, 8, bias=False)
            self.head.weight = self.table.weight

        def forward(self, ids: votive.Tensor) -> votive.Tensor:
            return self.head(self.body(self.table(ids)))

    model = Tied()
    votive.quantize_(model, "int8_dynamic")
    assert model.head.weight is model.table.weight
    assert type(model.body).__name__ == "Int8Linear"


def test_inputs_of_another_width_are_refused() -> None:
    # Rows of 62 and 64 numbers are filled up to the same packed length.
    linear, conv = nn.Sequential(nn.Linear(62, 8)), nn.Sequential(nn.Conv2d(2, 8, 1))
    x, image = votive.randn(3, 62), votive.randn(1, 2, 4, 4)
    dynamic, static = copy.deepcopy(linear), copy.deepcopy(linear)
    votive.quantize_(dynamic, "int8_dynamic")
    votive.quantize_(static, "int8_static", data=[x])
    votive.quantize_(conv, "int8_static", data=[image])
    small = votive.ao.quantization.quantize_dynamic(linear, {nn.Linear})
    for model in (dynamic, static, small):
        assert model(x).shape == (3, 8)
        for wrong in (votive.randn(3, 64), votive.randn(3, 61), votive.tensor(1.0)):
            with pytest.raises(RuntimeError, match="takes rows of 62, got shape"):
                model(wrong)
    for wrong in (votive.randn(1, 3, 4, 4), votive.randn(4, 4)):
        with pytest.raises(RuntimeError, match=r"2 channels|dimensions"):
            conv(wrong)
    codes = votive.quantize_per_tensor(votive.randn(3, 64), 0.1, 0, votive.quint8)
    with pytest.raises(RuntimeError, match="takes rows of 62"):
        votive.ao.nn.quantized.Linear(62, 8)(codes)
