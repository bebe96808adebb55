"""What sees and hears gives what transformers gives, from the same weights."""

from __future__ import annotations

import re
from typing import Any

import pytest

import votive
import votive.models as models

from .compare import arrays, torch, transformers
from .seeing import ROWS, fresh, inputs, models_of, same

pytestmark = pytest.mark.parity
every = pytest.mark.parametrize("name", ROWS)
AUTO = ("AutoModel", *sorted(n for n in models.__all__ if n.startswith(("AutoModelFor", "AutoBackbone"))))


@every
def test_outputs_states_and_attentions_agree(name: str) -> None:
    reference, model = models_of(name)
    t, v = inputs(name)
    asked = dict.fromkeys(ROWS[name].asked, True)
    with torch.no_grad(), votive.no_grad():
        expected, got = reference(**t, **asked), model(**v, **asked)
    assert same(got, expected, real=t.get("attention_mask")) > 0


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.labels])
def test_losses_and_gradients_agree(name: str) -> None:
    reference, model = fresh(name, train=True)
    t, v = inputs(name, labels=True)
    expected, got = reference(**t), model(**v)
    same({"loss": got.loss.reshape(1)}, {"loss": expected.loss.reshape(1)})
    expected.loss.backward()
    got.loss.backward()
    found = {p.data_ptr(): p.grad for p in reference.parameters() if p.grad is not None}
    wanted = type(model)(model.config)
    with votive.no_grad():
        for p in wanted.parameters():
            p.zero_()
    state = {k: found.get(p.data_ptr(), torch.zeros_like(p)) for k, p in reference.state_dict().items()}
    wanted.load_weights(arrays(state))
    expected_grads = dict(wanted.named_parameters())
    largest = max(float(p.abs().max()) for p in expected_grads.values())
    assert largest > 0
    for key, p in model.named_parameters():
        wants = expected_grads[key].detach()
        if p.grad is None:
            assert not wants.abs().max(), f"{key} has no gradient"
            continue
        scale = max(float(wants.abs().max()), 1e-3 * largest)
        worst = float((p.grad - wants).abs().max()) / scale
        assert worst <= 5e-4, f"{key}: differs by {worst:.2e} of the largest value"


@every
def test_folders_go_both_ways(name: str, tmp_path: Any) -> None:
    reference, model = models_of(name)
    t, v = inputs(name)
    reference.save_pretrained(tmp_path / "theirs")
    again = type(model).from_pretrained(tmp_path / "theirs")
    model.save_pretrained(tmp_path / "ours")
    names = [votive.io.open_weights(tmp_path / side / "model.safetensors").names() for side in ("ours", "theirs")]
    assert sorted(names[0]) == sorted(names[1])
    theirs, told = type(reference).from_pretrained(
        tmp_path / "ours", output_loading_info=True, attn_implementation="eager"
    )
    assert not any(told[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    with torch.no_grad(), votive.no_grad():
        expected = reference(**t)
        same(again(**v), expected, real=t.get("attention_mask"))
        found = theirs.eval()(**t)
        pairs = [k for k in expected if isinstance(expected[k], torch.Tensor)]
        assert all(torch.allclose(found[k], expected[k], atol=1e-5, rtol=1e-4) for k in pairs)


def test_auto_classes_find_what_transformers_finds() -> None:
    wrong = {}
    for name, row in ROWS.items():
        config = models_of(name)[1].config
        for auto in AUTO:
            theirs = getattr(transformers, auto, None)
            if theirs is None or type(row.config()) not in theirs._model_mapping:
                continue
            classes = theirs._model_mapping[type(row.config())]
            classes = classes if isinstance(classes, tuple) else (classes,)
            try:
                found = getattr(models, auto)._class_for(config.model_type).__name__
            except ValueError:
                continue
            if found != classes[0].__name__:
                wrong[name, auto] = found, classes[0].__name__
    assert not wrong


@pytest.mark.parametrize("name", sorted({re.sub(r" .*", "", n): n for n in ROWS}.values()))
def test_values_are_captured_and_patched_by_address(name: str) -> None:
    from votive import glass

    model = models_of(name)[1]
    _, v = inputs(name)
    stack = next(n for n, m in model.named_modules() if isinstance(m, votive.nn.ModuleList) and len(m))
    address = f"{stack}.0"
    with votive.no_grad():
        before = _first(model(**v))
        with glass.capture(model, address) as seen:
            model(**v)
        with glass.ablate(model, address):
            after = _first(model(**v))
    assert seen[address] is not None
    assert not votive.allclose(before, after)


def _first(found: Any) -> Any:
    while not isinstance(found, votive.Tensor):
        found = found[0]
    return found


def test_names_of_timm_fit_a_resnet() -> None:
    reference, model = models_of("resnet classes")
    again = type(model)(model.config)
    shorter = {"embedder.embedder.convolution": "conv1", "embedder.embedder.normalization": "bn1"}

    def named(name: str) -> str:
        name = name.removeprefix("resnet.").replace("classifier.1.", "fc.")
        name = re.sub(r"shortcut\.(\w+)", lambda m: f"downsample.{int(m[1] == 'normalization')}", name)
        for long, short in shorter.items():
            name = name.replace(long, short)
        name = re.sub(r"layer\.(\d)\.convolution", lambda m: f"conv{int(m[1]) + 1}", name)
        name = re.sub(r"layer\.(\d)\.normalization", lambda m: f"bn{int(m[1]) + 1}", name)
        return re.sub(r"encoder\.stages\.(\d)\.layers", lambda m: f"layer{int(m[1]) + 1}", name)

    state = {named(k): v for k, v in reference.state_dict().items()}
    assert {"conv1.weight", "layer2.0.downsample.0.weight", "layer3.0.bn2.running_var", "fc.bias"} <= set(state)
    report = again.load_weights(arrays(state))
    assert not report.missing
    _, v = inputs("resnet classes")
    with votive.no_grad():
        same(again.eval()(**v).logits, reference(**inputs("resnet classes")[0]).logits)
