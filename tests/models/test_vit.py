"""ViT, DeiT and BEiT give what transformers gives, from the same weights."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import votive
import votive.models as models

from .compare import BF16, agree, arrays, both, gradients_agree, pair, torch, transformers

pytestmark = pytest.mark.parity
SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "image_size": 32,
    "patch_size": 8,
}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("ViT", {}),
    "vit of other shapes": (
        "ViT",
        {"qkv_bias": False, "image_size": [24, 40], "num_channels": 2, "hidden_act": "gelu_new"},
    ),
    "deit": ("DeiT", {}),
    "beit": ("Beit", {"layer_scale_init_value": 0.7}),
    "beit with distances": ("Beit", {"use_relative_position_bias": True}),
    "beit with shared distances": (
        "Beit",
        {
            "use_shared_relative_position_bias": True,
            "use_absolute_position_embeddings": True,
            "use_mean_pooling": False,
            "layer_scale_init_value": 0.0,
            "use_mask_token": True,
        },
    ),
}
every = pytest.mark.parametrize("kind", KINDS)


@cache
def models_of(kind: str, use: str = "Model", dtype: Any = None) -> Any:
    return fresh(kind, use, dtype)


def fresh(kind: str, use: str, dtype: Any = None, train: bool = False, **other: Any) -> Any:
    family, more = KINDS[kind]
    config = getattr(transformers, f"{family}Config")(**{**SMALL, **more, **other})
    theirs = getattr(transformers, family + use)
    found = pair((theirs, config), getattr(models, family + use), dtype=dtype, train=train)
    if dtype is None and not train:
        shake(*found)
    return found


def shake(reference: Any, model: Any) -> None:
    """Give tokens, positions and tables, which start at zero, values; both get the same."""
    torch.manual_seed(1)
    with torch.no_grad():
        for name, p in reference.named_parameters():
            if "token" in name or "position" in name:
                p.copy_(torch.randn_like(p) * 0.5)
    model.load_weights(arrays(reference.state_dict()))


def pictures(kind: str, batch: int = 2, size: Any = None, seed: int = 0) -> tuple[Any, Any]:
    more = KINDS[kind][1]
    size = size or more.get("image_size", [32, 32])
    shape = (batch, more.get("num_channels", 3), *size)
    return both(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


@every
def test_all_states_and_weights_agree(kind: str) -> None:
    reference, model = models_of(kind)
    t, v = pictures(kind)
    asked = {"output_attentions": True, "output_hidden_states": True}
    with torch.no_grad(), votive.no_grad():
        expected, got = reference(t, **asked), model(v, **asked)
    agree(got.last_hidden_state, expected.last_hidden_state)
    agree(got.pooler_output, expected.pooler_output)
    assert len(got.hidden_states) == len(expected.hidden_states) == 4
    assert len(got.attentions) == len(expected.attentions) == 3
    for a, b in zip([*got.hidden_states, *got.attentions], [*expected.hidden_states, *expected.attentions]):
        agree(a, b)


@every
@pytest.mark.parametrize("size", [(40, 40), (32, 48)])
def test_pictures_of_another_size_agree(kind: str, size: tuple[int, int]) -> None:
    if kind == "vit of other shapes":
        pytest.skip("transformers stretches positions of square pictures only")
    reference, model = models_of(kind)
    t, v = pictures(kind, size=size)
    with torch.no_grad(), votive.no_grad():
        expected = reference(t, interpolate_pos_encoding=True)
        agree(model(v, interpolate_pos_encoding=True).last_hidden_state, expected[0])


@every
def test_patches_that_nobody_sees_agree(kind: str) -> None:
    reference, model = models_of(kind)
    t, v = pictures(kind)
    with torch.no_grad(), votive.no_grad():
        count = reference(t)[0].shape[1]
        mask = [[1] * count, [1] * (count - 6) + [0] * 6]
        tm, vm = both(mask)
        expected, got = reference(t, attention_mask=tm), model(v, attention_mask=vm)
    agree(got.last_hidden_state, expected.last_hidden_state, where=mask)


@every
def test_bfloat16_agrees_as_far_as_it_can_tell(kind: str) -> None:
    reference, model = models_of(kind, dtype="bfloat16")
    t, v = pictures(kind)
    with torch.no_grad(), votive.no_grad():
        agree(model(v.to(votive.bfloat16)).last_hidden_state, reference(t.to(torch.bfloat16)).last_hidden_state, BF16)


@every
@pytest.mark.parametrize("labels", [[2, 0], [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]])
def test_classes_losses_and_gradients_agree(kind: str, labels: Any) -> None:
    more = {"use_mask_token": False} if kind.startswith("beit") else {}  # nothing is masked
    reference, model = fresh(kind, "ForImageClassification", train=True, num_labels=3, **more)
    t, v = pictures(kind)
    tl, vl = both(np.asarray(labels, np.float32) if isinstance(labels[0], list) else labels)
    expected, got = reference(t, labels=tl), model(v, labels=vl)
    agree(got.logits, expected.logits)
    agree(got.loss.reshape(1), expected.loss.reshape(1))
    expected.loss.backward()
    got.loss.backward()
    gradients_agree(reference, model, 2e-4)


def test_both_heads_of_a_taught_deit_agree() -> None:
    reference, model = fresh("deit", "ForImageClassificationWithTeacher", num_labels=5)
    t, v = pictures("deit")
    with torch.no_grad(), votive.no_grad():
        expected, got = reference(t), model(v)
    for name in ("logits", "cls_logits", "distillation_logits"):
        agree(got[name], expected[name])


@pytest.mark.parametrize("kind", ["vit", "beit with shared distances"])
def test_hidden_patches_agree(kind: str) -> None:
    family, more = KINDS[kind]
    config = getattr(transformers, f"{family}Config")(**{**SMALL, **more})
    extra = {} if family == "Beit" else {"use_mask_token": True}
    reference = getattr(transformers, f"{family}Model")(config, **extra).eval()
    ours = getattr(models, f"{family}Model")
    model = ours(ours.config_class.from_dict(config.to_dict()), **extra).eval()
    shake(reference, model)
    t, v = pictures(kind)
    tm, vm = both(np.random.default_rng(1).random((2, 16)) < 0.4)
    with torch.no_grad(), votive.no_grad():
        agree(model(v, bool_masked_pos=vm)[0], reference(t, bool_masked_pos=tm)[0])


@every
@pytest.mark.parametrize("use", ["Model", "ForImageClassification"])
def test_folders_go_both_ways(kind: str, use: str, tmp_path: Any) -> None:
    reference, model = models_of(kind, use)
    t, v = pictures(kind)
    reference.save_pretrained(tmp_path / "theirs")
    auto = models.AutoModel if use == "Model" else models.AutoModelForImageClassification
    again = auto.from_pretrained(tmp_path / "theirs")
    assert type(again) is type(model)
    model.save_pretrained(tmp_path / "ours")
    theirs = type(reference).from_pretrained(tmp_path / "ours").eval()
    with torch.no_grad(), votive.no_grad():
        expected = reference(t)[0]
        agree(again(v)[0], expected)
        agree(votive.tensor(theirs(t)[0].numpy()), expected)


def test_a_file_says_which_of_two_heads_it_has(tmp_path: Any) -> None:
    reference, model = fresh("deit", "ForImageClassificationWithTeacher", num_labels=5)
    reference.save_pretrained(tmp_path)
    found = models.AutoModelForImageClassification.from_pretrained(tmp_path)
    assert type(found) is type(model)
    # Its file also serves the model with one head.
    alone = models.DeiTForImageClassification.from_pretrained(tmp_path)
    t, v = pictures("deit")
    with torch.no_grad(), votive.no_grad():
        agree(alone(v).logits, reference(t).cls_logits)


def test_an_encoder_is_read_from_the_file_of_a_classifier(tmp_path: Any) -> None:
    reference, _ = models_of("vit", "ForImageClassification")
    reference.save_pretrained(tmp_path)
    found = models.ViTModel.from_pretrained(tmp_path)
    assert found.pooler is None  # the file has none
    t, v = pictures("vit")
    with torch.no_grad(), votive.no_grad():
        agree(found(v)[0], reference.vit(t)[0])
