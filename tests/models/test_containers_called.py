"""Modules that only hold others are called too, so that hooks and an own forward take effect."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from tests import tiny_sizes
from votive import models, nn

TEXT = {"vocab_size": 11, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
PICTURE = {"image_size": 16, "patch_size": 8, **tiny_sizes.transformer(8, 16, layers=2, heads=2)}
IDS = {"input_ids": votive.tensor([[1, 2, 3]])}
PIXELS = {"pixel_values": votive.arange(768.0).reshape(1, 3, 16, 16) / 768}
LAYER = (
    "encoder",
    "encoder.layer.1",
    "encoder.layer.1.attention",
    "encoder.layer.1.intermediate",
    "encoder.layer.1.output",
    "encoder.layer.1.attention.output",
)


def t5() -> Any:
    return models.T5ForConditionalGeneration(
        models.T5Config(
            vocab_size=11,
            d_model=8,
            d_ff=16,
            d_kv=4,
            num_heads=2,
            num_layers=2,
            num_decoder_layers=2,
            decoder_start_token_id=0,
        )
    )


MODELS: dict[str, Any] = {
    "bert": lambda: models.BertModel(models.BertConfig(**TEXT)),
    "bert mlm": lambda: models.BertForMaskedLM(models.BertConfig(**TEXT)),
    "roberta": lambda: models.RobertaModel(models.RobertaConfig(**TEXT)),
    "roberta class": lambda: models.RobertaForSequenceClassification(models.RobertaConfig(**TEXT)),
    "distilbert": lambda: models.DistilBertModel(
        models.DistilBertConfig(vocab_size=11, dim=8, hidden_dim=16, n_layers=2, n_heads=2)
    ),
    "vit": lambda: models.ViTModel(models.ViTConfig(**PICTURE)),
    "deit": lambda: models.DeiTModel(models.DeiTConfig(**PICTURE)),
    "beit": lambda: models.BeitModel(models.BeitConfig(**PICTURE, use_shared_relative_position_bias=True)),
    "clip": lambda: models.CLIPVisionModel(models.CLIPVisionConfig(**PICTURE)),
    "t5": t5,
}
HOLDERS = {
    "bert": (*LAYER, "pooler"),
    "bert mlm": ("cls", "cls.predictions", "cls.predictions.transform"),
    "roberta": (*LAYER, "pooler"),
    "roberta class": ("classifier",),
    "distilbert": ("transformer", "transformer.layer.1.ffn"),
    "vit": LAYER,
    "deit": LAYER,
    "beit": LAYER,
    "clip": ("encoder", "encoder.layers.1.mlp"),
    "t5": ("encoder.block.1", "decoder.block.1"),
}
CASES = [(family, path) for family, paths in HOLDERS.items() for path in paths]


def run(family: str, model: Any) -> Any:
    if family == "t5":
        return model(**IDS, decoder_input_ids=IDS["input_ids"]).logits
    out = model(**(PIXELS if "pixel_values" in type(model).forward.__annotations__ else IDS))
    found = getattr(out, "logits", None)
    if found is not None:
        return found
    pooled = getattr(out, "pooler_output", None)
    last = out.last_hidden_state.flatten()
    return last if pooled is None else votive.cat([last, pooled.flatten()])


def scaled(module: Any, args: Any, out: Any) -> Any:
    if isinstance(out, votive.Tensor):
        return out * 3 + 0.5 * votive.arange(out.shape[-1])
    out.last_hidden_state = scaled(module, args, out.last_hidden_state)
    return out


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(("family", "path"), CASES)
def test_hooks_of_holders_are_called_and_take_effect(family: str, path: str, grad: bool) -> None:
    votive.manual_seed(0)
    model = MODELS[family]().eval()
    with votive.set_grad_enabled(grad):
        plain = run(family, model)
        calls = []
        with model.get_submodule(path).register_forward_hook(lambda m, *a: calls.append(m)):
            assert votive.allclose(run(family, model), plain)
        assert len(calls) == 1
        with model.get_submodule(path).register_forward_hook(scaled):
            changed = run(family, model)
        assert not votive.allclose(changed, plain)
        assert votive.equal(run(family, model), plain)


@pytest.mark.parametrize(("family", "path"), CASES)
def test_an_own_forward_of_holders_is_what_runs(family: str, path: str) -> None:
    votive.manual_seed(0)
    model = MODELS[family]().eval()
    plain = run(family, model)
    part = model.get_submodule(path)
    was = part.forward
    part.forward = lambda *args, **kwargs: scaled(part, args, was(*args, **kwargs))
    assert not votive.allclose(run(family, model), plain)


@pytest.mark.parametrize("family", HOLDERS)
def test_every_holder_but_lists_can_be_called(family: str) -> None:
    for name, module in MODELS[family]().named_modules():
        plain = type(module) in (nn.ModuleDict, nn.Module)
        assert not plain, f"{name} is never called"
