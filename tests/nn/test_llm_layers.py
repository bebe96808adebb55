"""Layers of language models: rotation, gates, grouped attention, caches, LoRA, adaptive softmax."""

from __future__ import annotations

import copy
import doctest
import inspect
import math
from typing import Any

import numpy as np
import pytest

import votive
import votive.nn.functional as F
from votive import nn


def normal(*shape: int, seed: int = 0) -> Any:
    return votive.from_numpy(np.random.default_rng(seed).normal(size=shape))


def close(got: Any, want: Any, rtol: float = 1e-10) -> None:
    want = want.detach().numpy() if isinstance(want, votive.Tensor) else np.asarray(want)
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=rtol, atol=1e-12)


EXAMPLES = [
    nn.apply_lora,
    nn.merge_lora,
    nn.lora_state_dict,
    nn.LoRALinear.to_linear,
    nn.AdaptiveLogSoftmaxWithLoss.log_prob,
    nn.AdaptiveLogSoftmaxWithLoss.predict,
    nn.Transformer.generate_square_subsequent_mask,
]


@pytest.mark.parametrize("function", EXAMPLES, ids=lambda f: f.__name__)
def test_the_example_of_a_function_runs_as_printed(function: Any) -> None:
    doc = inspect.cleandoc(function.__doc__)
    test = doctest.DocTestParser().get_doctest(doc, {"votive": votive}, "doc", None, 0)
    assert test.examples
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report: list[str] = []
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


# --- rotary embedding -------------------------------------------------------------------------


def turned(x: np.ndarray, angles: np.ndarray, interleaved: bool) -> np.ndarray:
    """Pairs as complex numbers, multiplied by e^(i angle)."""
    half = x.shape[-1] // 2
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    z = (a + 1j * b) * np.exp(1j * angles)
    if interleaved:
        return np.stack([z.real, z.imag], -1).reshape(x.shape)
    return np.concatenate([z.real, z.imag], -1)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotation_is_multiplication_by_a_unit_number(interleaved: bool) -> None:
    rope = nn.RotaryEmbedding(6, 32, base=100.0, interleaved=interleaved, dtype=votive.float64)
    x = normal(2, 3, 5, 6)
    angles = np.outer(np.arange(4, 9), 100.0 ** (-np.arange(3) / 3))
    close(rope(x, offset=4), turned(x.numpy(), angles, interleaved))


def test_positions_can_be_given_per_sample() -> None:
    rope = nn.RotaryEmbedding(4, 16, dtype=votive.float64)
    x = normal(2, 3, 2, 4)
    ids = votive.tensor([[3, 4], [9, 1]])
    got = rope(x, position_ids=ids)
    close(got[0], rope(x[0], offset=3))
    close(got[1, :, 0:1], rope(x[1, :, 0:1], offset=9))
    close(got[1, :, 1:2], rope(x[1, :, 1:2], offset=1))


def test_features_past_the_width_pass_through() -> None:
    rope = nn.RotaryEmbedding(4, 16, dtype=votive.float64)
    x = normal(1, 1, 3, 10)
    close(rope(x)[..., 4:], x[..., 4:])
    close(rope(x)[..., :4], rope(x[..., :4]))


def test_tables_grow_with_the_positions_and_are_no_state() -> None:
    rope = nn.RotaryEmbedding(4, 2, dtype=votive.float64)
    x = normal(1, 1, 1, 4)
    angles = 50 * 10000.0 ** (-np.arange(2) / 2)
    close(rope(x, offset=50), turned(x.numpy(), angles, False), rtol=1e-9)
    assert not rope.state_dict()
    assert sorted(n for n, _ in rope.named_buffers()) == ["cos", "inv_freq", "sin"]


def test_tables_stay_exact_when_a_model_is_cast_to_half() -> None:
    model = nn.Sequential(nn.RotaryEmbedding(4, 2048), nn.Linear(4, 4)).bfloat16()
    assert model[1].weight.dtype == votive.bfloat16
    assert model[0].cos.dtype == votive.float32
    assert votive.equal(model[0].cos, nn.RotaryEmbedding(4, 2048).cos)
    assert model[0](votive.ones(1, 3, 4).bfloat16()).dtype == votive.bfloat16
    assert model.double()[0].cos.dtype == votive.float64


def frequencies(scaling: dict[str, Any], dim: int = 8, trained: int = 16) -> np.ndarray:
    rope = nn.RotaryEmbedding(dim, trained, 100.0, scaling=scaling, dtype=votive.float64)
    return rope.inv_freq.numpy()


PLAIN = 100.0 ** (-np.arange(4) / 4)


def test_linear_scaling_divides_all_frequencies() -> None:
    got = frequencies({"rope_type": "linear", "factor": 4.0})
    np.testing.assert_allclose(got, PLAIN / 4, rtol=1e-12)
    np.testing.assert_allclose(frequencies({"type": "linear", "factor": 4.0}), got, rtol=0)


def test_dynamic_scaling_follows_the_longest_text_and_returns() -> None:
    scaling = {"rope_type": "dynamic", "factor": 2.0}
    rope = nn.RotaryEmbedding(8, 16, 100.0, scaling=scaling, dtype=votive.float64)
    x = votive.ones(1, 40, 8).double()
    close(rope.inv_freq, PLAIN)
    rope(x)
    base = 100.0 * (2.0 * 40 / 16 - 1.0) ** (8 / 6)
    close(rope.inv_freq, base ** (-np.arange(4) / 4))
    rope(x[:, :20])
    close(rope.inv_freq, base ** (-np.arange(4) / 4))
    rope(x[:, :16])
    close(rope.inv_freq, PLAIN)


def test_llama3_scaling_keeps_fast_turns_and_divides_slow_ones() -> None:
    scaling = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64,
    }
    got = frequencies(scaling)
    want = []
    for f in PLAIN:
        wavelength = 2 * math.pi / f
        if wavelength < 64 / 4.0:
            want.append(f)
        elif wavelength > 64 / 1.0:
            want.append(f / 8)
        else:
            smooth = (64 / wavelength - 1.0) / 3.0
            want.append((1 - smooth) * f / 8 + smooth * f)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert got[0] == PLAIN[0]
    np.testing.assert_allclose(got[3], PLAIN[3] / 8, rtol=1e-12)
    assert PLAIN[2] / 8 < got[2] < PLAIN[2]


def test_yarn_ramps_between_pairs_and_warms_the_attention() -> None:
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    rope = nn.RotaryEmbedding(8, 256, 100.0, scaling=scaling, dtype=votive.float64)
    pair = lambda turns: 8 * math.log(64 / (turns * 2 * math.pi)) / (2 * math.log(100.0))
    low, high = max(math.floor(pair(32)), 0), min(math.ceil(pair(1)), 7)
    assert (low, high) == (0, 3)
    share = np.array([0, 1 / 3, 2 / 3, 1])
    close(rope.inv_freq, PLAIN / 4 * share + PLAIN * (1 - share))
    warmth = 0.1 * math.log(4.0) + 1
    assert rope.attention_scaling == pytest.approx(warmth)
    close(rope.cos[0], np.full(4, warmth))
    one = {"mscale": 0.7, "mscale_all_dim": 1.0}
    other = nn.RotaryEmbedding(8, 256, 100.0, scaling=scaling | one)
    assert other.attention_scaling == pytest.approx((0.07 * math.log(4.0) + 1) / warmth)
    given = nn.RotaryEmbedding(8, 256, 100.0, scaling=scaling | {"attention_factor": 1.5})
    assert given.attention_scaling == 1.5


@pytest.mark.parametrize(
    "scaling, text",
    [
        ({"rope_type": "su"}, "unknown rope_type 'su'"),
        ({"rope_type": "linear"}, r"missing \['factor'\]"),
        ({"rope_type": "linear", "factor": 2.0, "beta": 1}, r"unknown \['beta'\]"),
        ({"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 4.0}, "must be below"),
    ],
)
def test_a_wrong_scaling_is_named(scaling: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        nn.RotaryEmbedding(4, 16, scaling=scaling)


def test_an_odd_width_is_refused() -> None:
    with pytest.raises(ValueError, match="even"):
        nn.RotaryEmbedding(5)


# --- gated nets -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made, function",
    [
        (lambda: nn.SwiGLU(4, 6), F.silu),
        (lambda: nn.GeGLU(4, 6), F.gelu),
        (lambda: nn.GeGLU(4, 6, approximate="tanh"), lambda x: F.gelu(x, approximate="tanh")),
        (lambda: nn.GatedMLP(4, 6, "relu", bias=True), F.relu),
        (lambda: nn.GatedMLP(4, 6, nn.Tanh()), votive.tanh),
    ],
)
def test_a_gated_net_multiplies_the_gate_with_the_values(made: Any, function: Any) -> None:
    net = made().double()
    x = normal(3, 4)
    close(net(x), net.down_proj(function(net.gate_proj(x)) * net.up_proj(x)))
    weights = [k for k in net.state_dict() if k.endswith("weight")]
    assert weights == ["gate_proj.weight", "up_proj.weight", "down_proj.weight"]


def test_an_unknown_activation_is_named() -> None:
    with pytest.raises(ValueError, match="swoosh"):
        nn.GatedMLP(4, 6, "swoosh")
    assert nn.GatedMLP(6).gate_proj.out_features == 16


# --- grouped attention ------------------------------------------------------------------------


def attention(**options: Any) -> nn.GroupedQueryAttention:
    votive.manual_seed(1)
    made = {"num_kv_heads": 2, "rope": nn.RotaryEmbedding(4, 32), "qk_norm": True, **options}
    return nn.GroupedQueryAttention(16, 4, **made).double()


def by_hand(layer: Any, x: Any, hidden: np.ndarray) -> np.ndarray:
    """The same in NumPy, head by head."""
    n, t, _ = x.shape
    heads = lambda p: p(x).view(n, t, -1, layer.head_dim).transpose(1, 2)
    q, k, v = (heads(p) for p in (layer.q_proj, layer.k_proj, layer.v_proj))
    if layer.q_norm is not None:
        q, k = layer.q_norm(q.contiguous()), layer.k_norm(k.contiguous())
    if layer.rope is not None:
        q, k = layer.rope(q.contiguous()), layer.rope(k.contiguous())
    q, k, v = (y.detach().numpy() for y in (q, k, v))
    shared = layer.num_heads // layer.num_kv_heads
    out = np.empty((n, t, layer.num_heads, layer.head_dim))
    for h in range(layer.num_heads):
        scores = q[:, h] @ k[:, h // shared].swapaxes(1, 2) / math.sqrt(layer.head_dim)
        scores = np.where(hidden, -np.inf, scores)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        out[:, :, h] = weights @ v[:, h // shared]
    merged = votive.from_numpy(out.reshape(n, t, -1))
    return layer.o_proj(merged).detach().numpy()


FUTURE = np.triu(np.ones((6, 6), bool), 1)
OLD = np.tril(np.ones((6, 6), bool), -3)


@pytest.mark.parametrize(
    "options, hidden",
    [
        ({}, FUTURE),
        ({"is_causal": False}, FUTURE & False),
        ({"window": 3}, FUTURE | OLD),
        ({"num_kv_heads": 4, "rope": None}, FUTURE),
        ({"num_kv_heads": 1, "qk_norm": False}, FUTURE),
        ({"head_dim": 6, "bias": True, "out_bias": False}, FUTURE),
    ],
)
def test_grouped_attention_is_what_it_says(options: dict[str, Any], hidden: np.ndarray) -> None:
    layer = attention(**options)
    x = normal(2, 6, 16)
    close(layer(x), by_hand(layer, x, hidden))


def test_a_given_mask_hides_besides_the_future() -> None:
    layer = attention()
    x = normal(2, 6, 16)
    keep = np.ones((6, 6), bool)
    keep[3:, 1] = False
    want = by_hand(layer, x, FUTURE | ~keep)
    close(layer(x, votive.from_numpy(keep)), want)
    additive = np.where(keep, 0.0, -np.inf)
    close(layer(x, votive.from_numpy(additive)), want)
    padding = np.zeros((2, 1, 1, 6))
    padding[1, ..., 0] = -3.0
    close(layer(x, votive.from_numpy(padding))[0], layer(x)[0])
    full = np.broadcast_to(padding, (2, 1, 6, 6)).copy()
    close(layer(x, votive.from_numpy(padding)), layer(x, votive.from_numpy(full)))
    assert not np.allclose(layer(x, votive.from_numpy(padding))[1].detach().numpy(), layer(x)[1].detach().numpy())


CACHES = {"dynamic": nn.DynamicCache, "static": lambda: nn.StaticCache(6), "sliding": lambda: nn.SlidingWindowCache(3)}


@pytest.mark.parametrize("pieces", [[1] * 6, [3, 1, 2], [4, 2], [6]], ids=str)
@pytest.mark.parametrize("kind", CACHES)
def test_a_cache_in_pieces_gives_what_the_whole_gives(kind: str, pieces: list[int]) -> None:
    layer = attention(window=3 if kind == "sliding" else None)
    x = normal(2, 6, 16)
    cache = CACHES[kind]()
    with votive.no_grad():
        parts = [layer(part, cache=cache, layer_idx=1) for part in x.split(pieces, 1)]
    close(votive.cat(parts, 1), layer(x))
    assert cache.get_seq_length(1) == 6
    assert cache.get_seq_length(0) == 0
    assert len(cache) == 2


def test_gradients_flow_through_a_growing_cache() -> None:
    layer = attention()
    x, y = normal(2, 6, 16).requires_grad_(), normal(2, 6, 16).requires_grad_()
    cache = nn.DynamicCache()
    votive.cat([layer(part, cache=cache) for part in x.split([2, 4], 1)], 1).square().sum().backward()
    first = {k: p.grad.clone() for k, p in layer.named_parameters()}
    layer.zero_grad()
    layer(y).square().sum().backward()
    close(x.grad, y.grad)
    for key, p in layer.named_parameters():
        close(first[key], p.grad, rtol=1e-8)


def test_heads_that_do_not_divide_are_refused() -> None:
    with pytest.raises(ValueError, match="give head_dim"):
        nn.GroupedQueryAttention(10, 4)
    with pytest.raises(ValueError, match="3 key heads do not divide 4"):
        nn.GroupedQueryAttention(16, 4, 3)


# --- caches -----------------------------------------------------------------------------------


def filled(cache: Any, n: int = 5, batch: int = 2) -> Any:
    x = normal(batch, 1, n, 2)
    cache.update(x, -x)
    return x


@pytest.mark.parametrize("make", [nn.DynamicCache, lambda: nn.StaticCache(9)])
@pytest.mark.parametrize("length, left", [(3, 3), (-1, 4), (9, 5), (0, 0), (-9, 0)])
def test_cropping_forgets_the_end(make: Any, length: int, left: int) -> None:
    cache = make()
    x = filled(cache)
    cache.crop(length)
    assert cache.get_seq_length() == left
    new = normal(2, 1, 1, 2, seed=5)
    key, value = cache.update(new, -new)
    close(key, votive.cat([x[:, :, :left], new], 2))
    close(value, -key)


@pytest.mark.parametrize("make", CACHES.values(), ids=list(CACHES))
def test_reset_forgets_everything(make: Any) -> None:
    cache = make()
    filled(cache)
    cache.reset()
    assert cache.get_seq_length() == 0
    new = normal(2, 1, 2, 2, seed=5)
    close(cache.update(new, new)[0], new)


@pytest.mark.parametrize("make", CACHES.values(), ids=list(CACHES))
def test_reorder_chooses_samples(make: Any) -> None:
    cache = make()
    x = filled(cache, 2)
    cache.reorder(votive.tensor([1, 1, 0]))
    new = normal(3, 1, 1, 2, seed=5)
    key, value = cache.update(new, -new)
    close(key, votive.cat([x[[1, 1, 0]], new], 2))
    close(value, -key)


def test_a_static_cache_takes_memory_once_and_says_when_it_is_full() -> None:
    cache = nn.StaticCache(6)
    filled(cache, 3)
    before = cache.update(votive.zeros(2, 1, 1, 2).double(), votive.zeros(2, 1, 1, 2).double())[0]
    cache.reset()
    after = cache.update(votive.ones(2, 1, 6, 2).double(), votive.ones(2, 1, 6, 2).double())[0]
    assert before.data_ptr() == after.data_ptr()
    with pytest.raises(IndexError, match="6 \\+ 1 positions do not fit into max_length=6"):
        filled(cache, 1)
    assert cache.get_max_length() == 6


def test_a_static_cache_refuses_to_lose_gradients() -> None:
    x = votive.ones(1, 1, 1, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="no_grad"):
        nn.StaticCache(6).update(x, x)
    with votive.no_grad():
        nn.StaticCache(6).update(x, x)


def test_a_sliding_cache_keeps_what_the_next_position_sees() -> None:
    cache = nn.SlidingWindowCache(3)
    x = filled(cache, 5)
    new = normal(2, 1, 1, 2, seed=5)
    close(cache.update(new, new)[0], votive.cat([x[:, :, 3:], new], 2))
    assert cache.get_seq_length() == 6
    with pytest.raises(ValueError, match="are gone"):
        cache.crop(4)
    cache.crop(6)
    short = nn.SlidingWindowCache(9)
    filled(short, 5)
    short.crop(2)
    assert short.get_seq_length() == 2
    alone = nn.SlidingWindowCache(1)
    filled(alone, 5)
    close(alone.update(new, new)[0], new)


@pytest.mark.parametrize("make", [nn.DynamicCache, lambda: nn.SlidingWindowCache(7)])
def test_what_a_growing_cache_gave_stays_as_it_was(make: Any) -> None:
    cache = make()
    whole: Any = None
    given = []
    with votive.no_grad():
        for i in range(90):
            new = normal(2, 1, 1 + i % 3, 2, seed=i)
            if i == 40 and isinstance(cache, nn.DynamicCache):
                cache.crop(-5)
                whole = whole[:, :, :-5]
            whole = new if whole is None else votive.cat([whole, new], 2)
            limit = cache.get_max_length()
            size = whole.shape[2] if limit is None else limit - 1 + new.shape[2]
            given.append((*cache.update(new, -new), whole[:, :, -size:]))
            if i == 60:
                whole = votive.cat([whole, whole], 0)[1:3]
                cache.reorder(votive.tensor([1, 0]))
    for key, value, want in given:
        close(key, want)
        close(value, -want)


def test_a_cache_of_inference_tensors_grows_outside() -> None:
    cache = nn.DynamicCache()
    with votive.inference_mode():
        a = [filled(cache, 2) for _ in range(3)]
    with votive.no_grad():
        x = normal(2, 1, 1, 2)
        close(cache.update(x, -x)[0], votive.cat([*a, x], 2))


def test_wrong_shapes_and_limits_are_refused() -> None:
    with pytest.raises(ValueError, match="positions, features"):
        nn.DynamicCache().update(votive.ones(1, 2, 3), votive.ones(1, 2, 3))
    for make in (nn.StaticCache, nn.SlidingWindowCache):
        with pytest.raises(ValueError, match="positive"):
            make(0)
    assert nn.DynamicCache()  # an empty cache is still one
    assert nn.DynamicCache().get_max_length() is None


# --- LoRA -------------------------------------------------------------------------------------


def adapted(**options: Any) -> nn.LoRALinear:
    layer = nn.LoRALinear(nn.Linear(6, 4).double(), r=2, alpha=3.0, **options)
    with votive.no_grad():
        layer.lora_B.copy_(normal(4, 2))
    return layer


def test_lora_adds_the_scaled_product() -> None:
    layer = adapted()
    x = normal(3, 6)
    want = layer.base(x) + 1.5 * (x @ layer.lora_A.T @ layer.lora_B.T)
    close(layer(x), want)
    close(x @ layer.weight.T + layer.bias, want)
    close(layer.to_linear()(x), want)
    assert adapted(rslora=True).scaling == pytest.approx(3 / math.sqrt(2))
    assert list(layer.state_dict()) == ["lora_A", "lora_B", "base.weight", "base.bias"]


def test_merging_changes_nothing_and_unmerging_is_exact() -> None:
    layer = adapted()
    x = normal(3, 6)
    before, weight = layer(x), layer.base.weight.detach().clone()
    close(layer.merge()(x), before)
    assert layer.merged
    assert "merged" in repr(layer)
    assert not votive.equal(layer.base.weight, weight)
    layer.merge()
    close(layer(x), before)
    with pytest.raises(RuntimeError, match="unmerge"):
        layer.state_dict()
    layer.unmerge().unmerge()
    assert votive.equal(layer.base.weight, weight)
    assert votive.equal(layer(x), before)


def test_dropout_acts_on_the_adaptation_only() -> None:
    layer = adapted(dropout=1.0)
    x = normal(3, 6)
    close(layer(x), layer.base(x))
    assert not np.allclose(layer.eval()(x).detach().numpy(), layer.base(x).detach().numpy())


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.GroupedQueryAttention(8, 2) for _ in range(2)])
        self.head = nn.Linear(8, 3)
        self.tied = self.head

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x) + self.tied(x)


def test_lora_goes_where_the_patterns_say_and_trains_alone() -> None:
    votive.manual_seed(0)
    net = Net().double()
    x = normal(2, 3, 8)
    want = net(x)
    names = nn.apply_lora(net, ["layers.*.q_proj", "v_proj", "head"], r=2)
    assert names == ["layers.0.q_proj", "layers.0.v_proj", "layers.1.q_proj", "layers.1.v_proj", "head"]
    assert net.head is net.tied
    assert isinstance(net.layers[0].k_proj, nn.Linear)
    close(net(x), want)
    net(x).square().sum().backward()
    trained = {k for k, p in net.named_parameters() if p.grad is not None}
    assert trained == {f"{n}.lora_{c}" for n in names for c in "AB"}
    with votive.no_grad():
        for k, p in net.named_parameters():
            if p.requires_grad:
                p.add_(normal(*p.shape, seed=len(k)), alpha=0.1)
    adapted, alone = net(x), nn.lora_state_dict(net)
    assert set(alone) >= trained
    fresh = Net().double()
    fresh.load_state_dict({k.replace(".base", ""): v for k, v in net.state_dict().items() if "lora" not in k})
    nn.apply_lora(fresh, ["q_proj", "v_proj", "head"], r=2)
    assert not fresh.load_state_dict(alone, strict=False).unexpected_keys
    close(fresh(x), adapted)
    assert nn.merge_lora(net) == names
    assert net.head is net.tied
    assert not any(isinstance(m, nn.LoRALinear) for m in net.modules())
    close(net(x), adapted)


def test_lora_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match=r"match none of the Linears head"):
        nn.apply_lora(nn.ModuleDict({"head": nn.Linear(2, 2)}), "q_proj")
    with pytest.raises(TypeError, match="Conv1d"):
        nn.LoRALinear(nn.Conv1d(1, 1, 1))
    with pytest.raises(ValueError, match="r must be positive"):
        nn.LoRALinear(nn.Linear(2, 2), r=0)


def test_a_second_adaptation_leaves_the_first_alone() -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    nn.apply_lora(net, "0")
    assert nn.apply_lora(net, "*") == ["1"]
    twin = copy.deepcopy(net)
    assert votive.equal(twin(votive.ones(1, 4)), net(votive.ones(1, 4)))


# --- adaptive softmax -------------------------------------------------------------------------


@pytest.mark.parity
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("target", [[0, 4, 5, 9, 19, 2], [1, 2, 3, 0, 4, 1], [15, 16, 17, 19, 18, 18]])
def test_adaptive_softmax_agrees_with_torch(target: list[int], bias: bool) -> None:
    torch = pytest.importorskip("torch")
    made = (8, 20, [5, 10]), {"div_value": 2.0, "head_bias": bias}
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(*made[0], **made[1]).double()
    ours = nn.AdaptiveLogSoftmaxWithLoss(*made[0], **made[1]).double()
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    ours.load_state_dict({k: votive.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    x = normal(6, 8).requires_grad_()
    y = torch.from_numpy(x.detach().numpy().copy()).requires_grad_()
    got, want = ours(x, votive.tensor(target)), theirs(y, torch.tensor(target))
    assert got._fields == want._fields
    close(got.output, want.output.detach().numpy())
    close(got.loss, want.loss.detach().numpy())
    got.loss.backward()
    want.loss.backward()
    close(x.grad, y.grad.numpy())
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert (p.grad is None) == (q.grad is None)
        if q.grad is not None:
            close(p.grad, q.grad.numpy())
    close(ours.log_prob(x), theirs.log_prob(y).detach().numpy())
    assert ours.predict(x * 5).tolist() == theirs.predict(y * 5).tolist()
    single = ours(x[0], votive.tensor(target[0])), theirs(y[0], torch.tensor(target[0]))
    close(single[0].output, single[1].output.detach().numpy())


@pytest.mark.parity
@pytest.mark.parametrize(
    "run",
    [
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, []),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [5, 3]),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3, 3]),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [9]),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [0.5, 3]),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3])(t.ones(2, 4), t.tensor([1, 9])),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3])(t.ones(2, 4), t.tensor([1])),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3])(t.ones(2, 4), t.tensor([[1]])),
        lambda t, nn: nn.AdaptiveLogSoftmaxWithLoss(4, 9, [3])(t.ones(2, 4), t.tensor(1)),
    ],
)
def test_adaptive_softmax_refuses_in_torchs_words(run: Any) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises((ValueError, RuntimeError)) as theirs:
        run(torch, torch.nn)
    with pytest.raises(theirs.type) as ours:
        run(votive, nn)
    assert str(theirs.value).replace("torch.", "votive.") in str(ours.value)
