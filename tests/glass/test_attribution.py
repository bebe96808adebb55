"""Direct logit attribution: parts that sum to the logit, each what its module wrote."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.glass.frozen_norm import freeze
from votive.glass.residual_stream import logits_of

from .decoders import ALL, CAUSAL, decoder
from .test_models import made


def head_logits(name: str, model: Any, ids: Any) -> Any:
    """The head's result, before a cap."""
    if name == "mine":
        return model(ids)
    with glass.capture(model, "lm_head") as seen:
        model(ids)
    return seen["lm_head"]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("heads", [True, False])
def test_components_sum_to_the_logit(name: str, heads: bool) -> None:
    model, ids = decoder(name)
    with votive.no_grad():
        logits = head_logits(name, model, ids)[:, 2]
    found = glass.logit_attribution(model, ids, target=votive.tensor([3, 4]), position=2, heads=heads)
    wanted = votive.stack([logits[0, 3], logits[1, 4]])
    assert votive.allclose(found.logit, wanted, atol=1e-6)
    assert votive.allclose(found.values.sum(0), wanted, rtol=1e-4, atol=1e-5)
    difference = glass.logit_attribution(model, ids, target=3, against=4, heads=heads)
    with votive.no_grad():
        logits = head_logits(name, model, ids)[:, -1]
    wanted = logits[:, 3] - logits[:, 4]
    assert votive.allclose(difference.values.sum(0), wanted, rtol=1e-4, atol=1e-5)
    assert "rest" not in found.names


@pytest.mark.parametrize("name", ALL)
def test_heads_sum_to_their_attention(name: str) -> None:
    model, ids = decoder(name)
    split = glass.logit_attribution(model, ids, target=3)
    whole = glass.logit_attribution(model, ids, target=3, heads=False)
    assert len(split.heads) == 2
    for address, names in split.heads.items():
        assert len(names) == (3 if name == "mine" else 2)
        assert all(n in split.names for n in names)
        together = split[address]
        if f"{address}.bias" not in split.names and name in ("gemma2", "gemma3_text"):
            assert votive.allclose(together, whole[address], atol=1e-5)
        assert votive.allclose(together, whole[address], rtol=1e-4, atol=1e-5)
    assert len(whole.names) < len(split.names)


@pytest.mark.parametrize("name", [n for n in CAUSAL if not n.startswith(("gemma", "mixtral"))])
def test_a_component_is_what_leaving_it_out_of_the_last_sum_changes(name: str) -> None:
    """The last layer's MLP reaches the logits directly only, but for the norm's scale."""
    model, ids = decoder(name)
    found = glass.logit_attribution(model, ids, target=3, against=4)
    mlp = next(n for n in found.names if n.endswith("1.mlp"))
    parts = glass.find_parts(model)
    with votive.no_grad(), glass.capture(model, [f"^{mlp}", f"^{parts.names[-1]}"]) as seen:
        model(ids)
        last = seen[parts.names[-1]]
        last = (last[0] if isinstance(last, tuple) else last)[:, -1]
        frozen = freeze(parts.norm, last)
        write = seen[mlp][:, -1]
        direction = (parts.head.weight[3] - parts.head.weight[4]).double()
        wanted = (frozen.part(write.double()) * direction).sum(-1).float()
    assert votive.allclose(found[mlp], wanted, atol=1e-5)
    assert float(wanted.abs().min()) > 1e-6


def test_zeroing_a_head_changes_its_component_to_zero() -> None:
    model, ids = decoder("qwen3")
    name = "model.layers.1.self_attn.head1"
    assert float(glass.logit_attribution(model, ids, target=3)[name].abs().min()) > 1e-5
    with votive.no_grad():
        model.model.layers[1].self_attn.o_proj.weight[:, 8:16] = 0.0
    assert glass.logit_attribution(model, ids, target=3)[name].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "norm", [nn.RMSNorm(7), nn.LayerNorm(7), nn.LayerNorm(8), nn.LayerNorm(7, bias=False), nn.RMSNorm(8)]
)
def test_a_frozen_norm_is_linear_and_sums_to_the_norm(norm: Any) -> None:
    votive.manual_seed(0)
    width = norm.normalized_shape[0]
    with votive.no_grad():
        for p in norm.parameters():
            p.copy_(votive.randn(width))
    x, y = votive.randn(2, 3, width).unbind(0)
    frozen = freeze(norm, x + y)
    assert frozen.centred == isinstance(norm, nn.LayerNorm)
    total = frozen.part(x.double()) + frozen.part(y.double()) + frozen.bias
    assert votive.allclose(total.float(), norm(x + y), atol=1e-5)


def test_a_gemma_norm_scales_by_one_and_its_weight() -> None:
    norm = votive.models.decoder.norms.GemmaRMSNorm(4)
    with votive.no_grad():
        norm.weight.copy_(votive.tensor([0.5, -1.0, 0.0, 2.0]))
    frozen = freeze(norm, votive.tensor([[1.0, 2.0, 3.0, 4.0]]))
    wanted = votive.tensor([1.5, 0.0, 1.0, 3.0], dtype=votive.float64)
    assert votive.allclose(frozen.weight, wanted, atol=1e-5)


def test_what_is_no_norm_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be frozen"):
        freeze(nn.Tanh(), votive.tensor([[0.1, 1.0, 3.0]]))


class Odd(nn.Module):
    """A layer that multiplies its stream."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return x * votive.sigmoid(self.lin(x))


class OddNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.layers = nn.ModuleList([Odd(), Odd()])
        self.head = nn.Linear(4, 9)

    def forward(self, ids: Any) -> Any:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x) + 1  # written between the layers
        return self.head(x)


def test_a_layer_that_does_not_add_is_one_component() -> None:
    votive.manual_seed(0)
    model, ids = OddNet(), votive.tensor([[1, 2, 3]])
    with pytest.raises(ValueError, match="heads=False"):
        glass.logit_attribution(model, ids, target=2)
    found = glass.logit_attribution(model, ids, target=2, heads=False)
    assert found.names == ["embedding", "layers.0", "layers.1", "rest", "bias"]
    with votive.no_grad():
        wanted = logits_of(model(ids))[:, -1, 2]
    assert votive.allclose(found.values.sum(0), wanted, atol=1e-6)


def test_attention_without_a_last_product_is_told() -> None:
    class Bare(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attn = nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, x: Any) -> Any:
            return x + self.attn(x, x, x, need_weights=False)[0]

    class Net(OddNet):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([Bare()])

    votive.manual_seed(0)
    with pytest.raises(ValueError, match="o_proj or c_proj"):
        glass.logit_attribution(Net(), votive.tensor([[1, 2, 3]]), target=2)


def test_targets_and_positions_are_checked() -> None:
    model, ids = decoder("llama")
    with pytest.raises(IndexError, match="outside"):
        glass.logit_attribution(model, ids, target=61)
    with pytest.raises(IndexError, match="position 5"):
        glass.logit_attribution(model, ids, target=1, position=5)
    with pytest.raises(ValueError, match="1 or 2 tokens"):
        glass.logit_attribution(model, ids, target=[1, 2, 3])
    likeliest = glass.logit_attribution(model, ids)
    with votive.no_grad():
        assert votive.equal(likeliest.target, model(ids).logits[:, -1].argmax(-1))
    with pytest.raises(KeyError, match="is not a component"):
        likeliest["model.layers.7"]


def test_a_wrong_norm_is_noticed() -> None:
    model, ids = decoder("llama")
    with pytest.raises(ValueError, match="name the last norm"):
        glass.logit_attribution(model, ids, target=3, parts={"norm": "layers.0.input_layernorm"})
    result = glass.logit_attribution(model, ids, target=3).to_dict()
    assert len(result["names"]) == len(result["values"])


class Held(nn.Module):
    """A model whose layers only hold others, and are never called."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.norm, self.head = nn.Embedding(9, 4), nn.LayerNorm(4), nn.Linear(4, 9)
        self.blocks = nn.ModuleList(nn.ModuleDict({"step": nn.Sequential(nn.Linear(4, 4))}) for _ in range(2))

    def forward(self, ids: Any) -> Any:
        x = self.table(ids)
        for block in self.blocks:
            x = block["step"](x)
        return self.head(self.norm(x))


def test_layers_that_only_hold_others_give_way_to_them() -> None:
    lens = glass.logit_lens(Held(), votive.tensor([[1, 2]]), target=3, parts={"layers": "blocks.*"})
    assert list(lens.names[1:]) == ["blocks.0.step", "blocks.1.step"]


@pytest.mark.parametrize("family", ["t5", "mt5"])
def test_the_steps_of_blocks_are_the_layers_of_t5(family: str) -> None:
    """And what its decoder says is scaled before the head."""
    model, given = made(family)
    found = glass.logit_attribution(model, **given, target=3)
    with votive.no_grad():
        logits = model(**given).logits
    assert votive.allclose(found.values.sum(0), logits[:, -1, 3], rtol=1e-4, atol=1e-5)
    assert any(n.startswith("decoder.block.0.layer.1.") and ".head" in n for n in found.names)
    lens = glass.logit_lens(model, **given, target=3)
    assert lens.names[1] == "decoder.block.0.layer.0"
    chances = votive.softmax(logits, -1)
    assert votive.allclose(lens.probability[-1], chances[..., 3], atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "distilbert", "roberta"])
def test_layers_that_norm_their_sum_are_refused(family: str) -> None:
    model, given = made(family)
    with pytest.raises(ValueError, match="heads=False"):
        glass.logit_attribution(model, **given, target=3)
    # And a head with layers of its own is no linear function of the stream.
    with pytest.raises(ValueError, match="lie between"):
        glass.logit_attribution(model, **given, target=3, heads=False)


def test_patches_are_in_what_is_attributed() -> None:
    model, ids = decoder("llama")
    with glass.patch(model, {"layers.1.mlp": 0.0, "layers.0.self_attn": lambda v: 2 * v}):
        with pytest.raises(ValueError, match="does not give what"):
            glass.logit_attribution(model, ids, target=3)
        found = glass.logit_attribution(model, ids, target=3, heads=False)
        with votive.no_grad():
            wanted = model(ids).logits[:, -1, 3]
    assert votive.allclose(found.values.sum(0), wanted, atol=1e-5)
    assert found["model.layers.1.mlp"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("dtype", "slack"), [(votive.bfloat16, 0.1), (votive.float64, 1e-5)])
def test_other_precisions_are_attributed(dtype: Any, slack: float) -> None:
    model, ids = decoder("qwen3")
    model.to(dtype)
    found = glass.logit_attribution(model, ids, target=3)
    with votive.no_grad():
        wanted = model(ids).logits[:, -1, 3].float()
    assert votive.allclose(found.values.sum(0), wanted, atol=slack)
    assert "model.layers.1.self_attn.head1" in found.names
