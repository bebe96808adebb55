"""Weights of modules become blocks: recipes, methods, reports, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import votive
from tests import tiny_sizes
from votive import nn
from votive.backends.common.blocks.encode import ENCODABLE
from votive.core.blocks import FORMATS as ALL
from votive.quant.encoding import rounded
from votive.quant.gptq import gptq
from votive.quant.grid import ASYMMETRIC, FORMATS, decoded, grid_of, put_codes, records_of
from votive.quant.hqq import hqq
from votive.surface.block_tensor import BlockTensor


def weight(rows: int = 8, columns: int = 512) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((rows, columns)).astype(np.float32)


def net() -> nn.Sequential:
    votive.manual_seed(0)
    return nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 32))


def inputs() -> list[votive.Tensor]:
    votive.manual_seed(1)
    # Neighbouring columns resemble each other, as activations do.
    base = votive.randn(512, 32)
    mixed = base.repeat_interleave(8, dim=1) + 0.3 * votive.randn(512, 256)
    return list((mixed * votive.linspace(0.1, 3.0, 256)).split(128))


@pytest.mark.parametrize("name", [n for n in FORMATS if n in ENCODABLE])
def test_codes_put_into_blocks_are_the_numbers_that_the_grid_says(name: str) -> None:
    format = ALL[name]
    w = weight()
    records = records_of(rounded(w, format), format).copy()
    x = w.reshape(len(records), -1)
    before = decoded(records, format)
    grid = grid_of(records, format)
    codes = grid.codes(x)
    put_codes(records, codes, format)
    after = decoded(records, format)
    assert np.abs(after - grid.values(codes)).max() <= 2e-6 * np.abs(x).max()
    # With the same scales no codes are nearer than the nearest ones.
    assert np.square(after - x).sum() <= np.square(before - x).sum() * (1 + 1e-5)


@pytest.mark.parametrize("name", ["q4_0", "q4_k", "q6_k", "mxfp4", "q8_0"])
def test_gptq_leaves_less_error_in_products_than_rounding(name: str) -> None:
    format = ALL[name]
    w = weight(16, 256)
    x = np.concatenate([t.numpy() for t in inputs()])
    gram = x.T @ x

    def error(raw: np.ndarray) -> float:
        change = decoded(records_of(raw, format), format).reshape(w.shape) - w
        return float(np.square(change @ x.T).mean())

    assert error(gptq(w, format, gram, len(x))) < 0.8 * error(rounded(w, format))


@pytest.mark.parametrize("name", ASYMMETRIC)
def test_hqq_has_no_more_p_norm_than_rounding_and_less_where_it_moves(name: str) -> None:
    format = ALL[name]
    w = weight()
    plain, moved = (decoded(records_of(f(w, format), format), format) for f in (rounded, hqq))
    x = w.reshape(plain.shape)
    before, after = (np.power(np.abs(y - x), 0.7).sum(axis=1) for y in (plain, moved))
    assert (after <= before).all()
    if name in ("q4_1", "q5_1"):
        assert after.sum() < before.sum()


@pytest.mark.parametrize("method", votive.quant.METHODS)
def test_a_quantized_module_computes_nearly_the_same(method: str) -> None:
    model, data = net(), inputs()
    expected = model(data[0])
    report = votive.quantize_(model, "q4_k", method=method, data=data)
    assert model[0].weight.dtype is votive.q4_k
    assert model[2].weight.dtype is votive.q5_0
    error = (model(data[0]) - expected).square().mean().sqrt() / expected.square().mean().sqrt()
    assert float(error) < 0.12
    assert [e.name for e in report] == ["0", "2"]
    assert report.nbytes == 64 * 144 + 32 * 44
    assert f"{report.bits_per_weight:.3f} bits each" in str(report)


def test_awq_scales_inputs_in_the_layer_or_in_the_norm_before_it() -> None:
    config = votive.models.LlamaConfig(**tiny_sizes.transformer(64, 96, layers=1, heads=2, vocab=40, kv_heads=2))
    votive.manual_seed(0)
    model = votive.models.LlamaForCausalLM(config)
    with votive.no_grad():
        model.model.layers[0].input_layernorm.weight.mul_(votive.linspace(0.05, 6.0, 64))
    tokens = votive.randint(0, 40, (4, 12))
    expected = model(tokens).logits
    before = model.model.layers[0].input_layernorm.weight.clone()
    votive.quantize_(model, "q4_0", method="awq", data=[tokens])
    assert not model.model.layers[0].input_layernorm.weight.equal(before)
    assert type(model.model.layers[0].self_attn.q_proj) is nn.Linear
    difference = (model(tokens).logits - expected).square().mean().sqrt() / expected.square().mean().sqrt()
    assert float(difference) < 0.3
    scaled = net()
    votive.quantize_(scaled, "q4_0", method="awq", data=inputs())
    assert isinstance(scaled[0], votive.quant.ScaledLinear)
    assert "0.input_scale" in scaled.state_dict()


def test_tied_weights_stay_tied_and_follow_the_output() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed_tokens = nn.Embedding(16, 256)
            self.lm_head = nn.Linear(256, 16, bias=False)
            self.lm_head.weight = self.embed_tokens.weight

        def forward(self, x: votive.Tensor) -> votive.Tensor:
            return self.lm_head(self.embed_tokens(x))

    model = Tied()
    report = votive.quantize_(model, "q4_k_m")
    assert model.lm_head.weight is model.embed_tokens.weight
    assert [(e.name, e.format) for e in report] == [("lm_head", "q6_k")]
    assert model(votive.tensor([1, 2])).shape == (2, 16)


def test_layers_with_transposed_weights_keep_their_shape() -> None:
    from votive.models.decoder.products import Conv1D

    votive.manual_seed(0)
    layer = nn.Sequential(Conv1D(8, 64))
    with votive.no_grad():
        layer[0].weight.normal_()
    x = votive.randn(3, 64)
    expected = layer(x)
    votive.quantize_(layer, "q8_0")
    assert isinstance(layer[0].weight, BlockTensor)
    assert tuple(layer[0].weight.shape) == (64, 8)
    assert float((layer(x) - expected).abs().max()) < 0.2


def test_importance_sums_squared_inputs_and_weighs_errors() -> None:
    model = nn.Sequential(nn.Linear(256, 64))
    data = [votive.randn(32, 256) * votive.linspace(0.0, 4.0, 256)]
    found = votive.quant.importance(model, data)
    values, count = found["0.weight"]
    assert count == 32
    assert np.allclose(values, data[0].square().sum(0).numpy(), rtol=1e-5)
    w = model[0].weight.detach().numpy()

    def error(**options: object) -> float:
        copy = nn.Sequential(nn.Linear(256, 64))
        copy.load_state_dict(model.state_dict())
        votive.quantize_(copy, "q4_k", **options)
        return float((np.square(copy[0].weight.dequantize().numpy() - w) * values).sum())

    assert error(imatrix=found) == error(data=data) < error()


def test_functions_choose_formats_and_skipped_layers_stay() -> None:
    model = net()
    report = votive.quantize_(model, lambda name, shape: votive.q8_0 if shape[1] > 64 else None)
    assert model[0].weight.dtype is votive.q8_0
    assert report.kept == ["2"]
    other = net()
    votive.quantize_(other, "q8_0", skip="0")
    assert other[0].weight.dtype is votive.float32
    assert other[2].weight.dtype is votive.q8_0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kind": "q9_z"}, "quantization"),
        ({"kind": lambda name, shape: votive.tq1_0 if shape[1] == 64 else votive.q8_0}, "multiple of 256"),
        ({"kind": "q8_0", "method": "magic"}, "method is one of rtn, gptq, awq, hqq"),
        ({"kind": "q8_0", "method": "gptq"}, "give data="),
        ({"kind": "q8_0", "method": "hqq"}, "have none"),
        ({"kind": "q8_0", "imatrix": {"none": np.ones(2)}}, "names no weight"),
        ({"kind": "q8_0", "imatrix": {"0.weight": np.ones(2)}}, "has 2 columns, the weight 256"),
        ({"kind": "q8_0", "skip": "*"}, "no weight of a linear layer"),
        ({"kind": "q8_0", "skip": ["0", "lm_head"]}, "names no module"),
        ({"kind": "int8_dynamic", "skip": "lm_head"}, "names no module"),
    ],
)
def test_what_is_wrong_is_said_before_anything_changes(options: dict[str, object], text: str) -> None:
    model = net()
    with pytest.raises(ValueError, match=text):
        votive.quantize_(model, **options)
    assert model[0].weight.dtype is votive.float32


def test_numbers_that_are_not_finite_are_refused() -> None:
    model = net()
    with votive.no_grad():
        model[2].weight[0, 0] = float("nan")
    with pytest.raises(ValueError, match="'2' holds infinities or NaN"):
        votive.quantize_(model, "q8_0")
    assert model[0].weight.dtype is votive.float32


def test_divergence_grows_as_bits_become_fewer() -> None:
    import copy

    config = votive.models.LlamaConfig(**tiny_sizes.transformer(256, 256, layers=1, heads=2, vocab=50, kv_heads=2))
    votive.manual_seed(0)
    model = votive.models.LlamaForCausalLM(config)
    with votive.no_grad():
        for p in model.parameters():
            if p.ndim == 2:
                p.mul_(8)
    tokens = [votive.randint(0, 50, (2, 16))]
    found = []
    for kind in ("q8_0", "q4_k", "q2_k"):
        small = copy.deepcopy(model)
        votive.quantize_(small, kind)
        found.append(votive.quant.divergence(model, small, tokens).kl_divergence)
    assert 0 < found[0] < found[1] < found[2]


def test_attention_that_reads_its_own_weights_keeps_them() -> None:
    votive.manual_seed(0)
    net = votive.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval()
    x = votive.randn(2, 5, 64)
    wanted = net(x).detach()
    report = votive.quantize_(net, "q8_0")
    assert [e.name for e in report.entries] == ["linear1", "linear2"]
    assert float((net(x) - wanted).abs().max()) < 0.05
    with votive.no_grad():
        assert float((net(x) - wanted).abs().max()) < 0.05


@pytest.mark.parametrize("given", [{"data": [votive.ones(2, 64)]}, {"imatrix": {"0.weight": np.ones(64)}}])
def test_importance_that_nothing_listens_to_is_refused(given: dict[str, object]) -> None:
    net = votive.nn.Sequential(votive.nn.Linear(64, 32))
    with pytest.raises(ValueError, match="q4_0 is rounded as it is; imatrix= and data= weigh errors in"):
        votive.quantize_(net, "q4_0", **given)
    assert net[0].weight.dtype is votive.float32
    votive.quantize_(net, "iq4_nl", **given)
