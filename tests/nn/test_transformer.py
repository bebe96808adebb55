"""Attention and transformer layers agree with torch given the same state, masks and mode."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import votive
from votive import nn

L, S, N, E, H = 5, 4, 3, 8, 2


def pair(build: Any) -> tuple[Any, Any]:
    """The same module in both libraries, with the same random weights."""
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = build(torch.nn).double(), build(nn).double()
    assert repr(ours) == repr(theirs)
    rng = np.random.default_rng(7)
    for p in theirs.parameters():
        p.data = torch.from_numpy(rng.normal(size=tuple(p.shape)) * 0.3)
    state = {k: votive.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)
    return ours, theirs


def both(*data: Any) -> tuple[list[Any], list[Any]]:
    """Arrays as tensors of both libraries; floats are differentiated."""
    torch = pytest.importorskip("torch")
    sides: tuple[list[Any], list[Any]] = ([], [])
    for d in data:
        for side, make in zip(sides, (votive.from_numpy, torch.from_numpy), strict=True):
            x = make(d.copy()) if isinstance(d, np.ndarray) else d
            is_float = isinstance(d, np.ndarray) and d.dtype.kind == "f"
            side.append(x.requires_grad_() if is_float and np.isfinite(d).all() else x)
    return sides


def close(got: Any, want: Any) -> None:
    assert tuple(got.shape) == tuple(want.shape)
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-8, atol=1e-10)


def compare(ours: Any, theirs: Any, data: list[Any], options: dict[str, Any], training: bool) -> None:
    """Results and gradients of inputs and parameters; all float inputs are differentiated."""
    torch = pytest.importorskip("torch")
    ours.train(training)
    theirs.train(training)
    a, b = both(*data)
    x, y = both(*options.values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = ours(*a, **dict(zip(options, x, strict=True)))
        want = theirs(*b, **dict(zip(options, y, strict=True)))
    pairs = [(got, want)] if not isinstance(want, tuple) else list(zip(got, want, strict=True))
    rng = np.random.default_rng(3)
    total: list[Any] = [0.0, 0.0]
    for g, w in pairs:
        assert (g is None) == (w is None)
        if w is None:
            continue
        close(g, w)
        weight = rng.normal(size=tuple(w.shape))
        total[0] = total[0] + (g * votive.from_numpy(weight.copy())).sum()
        total[1] = total[1] + (w * torch.from_numpy(weight)).sum()
    total[0].backward()
    total[1].backward()
    for g, w in [*zip(a, b, strict=True), *zip(x, y, strict=True)]:
        if getattr(w, "grad", None) is not None:
            close(g.grad, w.grad)
    theirs_named = dict(theirs.named_parameters())
    for key, p in ours.named_parameters():
        q = theirs_named[key]
        assert (p.grad is None) == (q.grad is None), key
        if q.grad is not None:
            close(p.grad, q.grad)


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape)


def causal(n: int) -> np.ndarray:
    return np.triu(np.full((n, n), -np.inf), 1)


PADDING = np.array([[False] * S, [False, False, False, True], [False, False, True, True]])
HIDDEN = np.random.default_rng(0).uniform(size=(L, S)) < 0.3
ATTENTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, {}),
    "no bias": ({"bias": False}, {}),
    "other widths": ({"kdim": 6, "vdim": 7}, {}),
    "extra key": ({"add_bias_kv": True}, {"key_padding_mask": PADDING}),
    "zero key": ({"add_zero_attn": True}, {"attn_mask": HIDDEN}),
    "no weights": ({}, {"need_weights": False}),
    "weights per head": ({}, {"average_attn_weights": False}),
    "padding": ({}, {"key_padding_mask": PADDING, "need_weights": False}),
    "bool mask": ({}, {"attn_mask": HIDDEN}),
    "float mask": ({}, {"attn_mask": normal(L, S), "need_weights": False}),
    "mask per head": ({}, {"attn_mask": normal(N * H, L, S)}),
    "both masks": ({}, {"attn_mask": HIDDEN, "key_padding_mask": PADDING}),
}


@pytest.mark.parity
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("batch_first", [False, True], ids=["steps first", "batch first"])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention_agrees_with_torch(name: str, batch_first: bool, training: bool) -> None:
    made, options = ATTENTIONS[name]
    build = lambda nn: nn.MultiheadAttention(E, H, batch_first=batch_first, **made)
    data = [normal(L, N, E), normal(S, N, made.get("kdim", E)), normal(S, N, made.get("vdim", E))]
    if batch_first:
        data = [d.swapaxes(0, 1) for d in data]
    compare(*pair(build), data, options, training)


@pytest.mark.parity
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"key_padding_mask": PADDING[1]},
        {"attn_mask": HIDDEN, "average_attn_weights": False},
        {"need_weights": False, "attn_mask": normal(H, L, S)},
    ],
    ids=str,
)
def test_attention_of_a_single_sequence_agrees_with_torch(options: dict[str, Any]) -> None:
    build = lambda nn: nn.MultiheadAttention(E, H, batch_first=True)
    compare(*pair(build), [normal(L, E), normal(S, E), normal(S, E)], options, True)


@pytest.mark.parity
@pytest.mark.parametrize("need_weights", [False, True])
def test_the_causal_hint_agrees_with_torch(need_weights: bool) -> None:
    x = normal(L, N, E)
    options = {"attn_mask": causal(L), "is_causal": True, "need_weights": need_weights}
    compare(*pair(lambda nn: nn.MultiheadAttention(E, H)), [x, x, x], options, True)


LAYER = {"dim_feedforward": 16, "dropout": 0.0}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "norm first": {"norm_first": True},
    "gelu": {"activation": "gelu"},
    "no bias": {"bias": False},
    "eps": {"layer_norm_eps": 1e-2},
    "batch first": {"batch_first": True},
}
ENCODINGS: dict[str, dict[str, Any]] = {
    "no mask": {},
    "mask": {"src_mask": causal(S)},
    "padding": {"src_key_padding_mask": PADDING},
    "causal": {"src_mask": causal(S), "is_causal": True},
}
DECODINGS: dict[str, dict[str, Any]] = {
    "no mask": {},
    "mask": {"tgt_mask": causal(L), "memory_mask": HIDDEN},
    "padding": {"memory_key_padding_mask": PADDING},
    "causal": {"tgt_mask": causal(L), "tgt_is_causal": True},
}


def sequence(length: int, kind: str) -> np.ndarray:
    return normal(N, length, E) if kind == "batch first" else normal(length, N, E)


@pytest.mark.parity
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("masks", ENCODINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_encoder_layer_agrees_with_torch(kind: str, masks: str, training: bool) -> None:
    build = lambda nn: nn.TransformerEncoderLayer(E, H, **LAYER, **KINDS[kind])
    compare(*pair(build), [sequence(S, kind)], ENCODINGS[masks], training)


@pytest.mark.parity
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("masks", DECODINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_decoder_layer_agrees_with_torch(kind: str, masks: str, training: bool) -> None:
    build = lambda nn: nn.TransformerDecoderLayer(E, H, **LAYER, **KINDS[kind])
    compare(*pair(build), [sequence(L, kind), sequence(S, kind)], DECODINGS[masks], training)


@pytest.mark.parity
def test_an_activation_given_as_a_module_is_one_of_the_layer() -> None:
    build = lambda nn: nn.TransformerEncoderLayer(E, H, 16, 0.0, activation=nn.PReLU())
    ours, theirs = pair(build)
    assert "activation.weight" in ours.state_dict()
    compare(ours, theirs, [normal(S, N, E)], {}, True)


def stack(nn: Any, norm: bool, **options: Any) -> Any:
    layer = nn.TransformerEncoderLayer(E, H, **LAYER, **options)
    return nn.TransformerEncoder(layer, 2, nn.LayerNorm(E) if norm else None)


@pytest.mark.parity
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mask": causal(S)},
        {"src_key_padding_mask": PADDING},
        {"mask": causal(S), "is_causal": True},
        {"mask": causal(S) < 0},
    ],
    ids=list,
)
@pytest.mark.parametrize("norm", [True, False], ids=["norm", "no norm"])
def test_an_encoder_agrees_with_torch(norm: bool, options: Any, training: bool) -> None:
    build = lambda nn: stack(nn, norm, batch_first=True)
    compare(*pair(build), [normal(N, S, E)], options, training)


@pytest.mark.parity
@pytest.mark.parametrize(
    "kind, side",
    [
        # Unchecked padding on the left is left out: torch then takes it to be on the right.
        *((kind, side) for kind in ("plain", "batch first", "nested off") for side in (1, -1)),
        ("unchecked", 1),
    ],
)
def test_evaluation_without_gradients_leaves_padding_as_torch_does(kind: str, side: int) -> None:
    torch = pytest.importorskip("torch")
    padding = PADDING[:, ::side].copy()
    nested = {"nested off": {"enable_nested_tensor": False}, "unchecked": {"mask_check": False}}

    def build(nn: Any) -> Any:
        layer = nn.TransformerEncoderLayer(E, H, **LAYER, batch_first=kind != "plain")
        return nn.TransformerEncoder(layer, 2, nn.LayerNorm(E), **nested.get(kind, {}))

    ours, theirs = (m.eval() for m in pair(build))
    x = normal(S, N, E) if kind == "plain" else normal(N, S, E)
    with votive.no_grad():
        got = ours(votive.from_numpy(x.copy()), src_key_padding_mask=votive.from_numpy(padding.copy()))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = theirs(torch.from_numpy(x), src_key_padding_mask=torch.from_numpy(padding))
    close(got, want)


WARNED: list[dict[str, Any]] = [
    {},
    {"norm_first": True, "batch_first": True},
    {"bias": False, "batch_first": True},
    {"activation": "gelu", "batch_first": True},
    {"nhead": 1, "batch_first": True},
    {"activation": abs, "batch_first": True},
]


@pytest.mark.parity
@pytest.mark.parametrize("options", WARNED, ids=str)
def test_an_encoder_warns_of_nesting_as_torch_does(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    seen = []
    for library in (torch.nn, nn):
        layer = library.TransformerEncoderLayer(**{"d_model": E, "nhead": H, **options}, dim_feedforward=4)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            encoder = library.TransformerEncoder(layer, 1)
        seen.append(([str(w.message) for w in caught], encoder.use_nested_tensor))
    assert seen[0] == seen[1]


@pytest.mark.parity
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tgt_mask": causal(L)},
        {"memory_mask": HIDDEN, "tgt_mask": causal(L) < 0},
        {"src_mask": causal(S), "tgt_mask": causal(L), "tgt_is_causal": True},
        {"src_key_padding_mask": PADDING, "memory_key_padding_mask": PADDING},
    ],
    ids=list,
)
@pytest.mark.parametrize("kind", ["plain", "norm first", "batch first"])
def test_a_transformer_agrees_with_torch(kind: str, options: Any, training: bool) -> None:
    build = lambda nn: nn.Transformer(E, H, 2, 2, **LAYER, **KINDS[kind])
    compare(*pair(build), [sequence(S, kind), sequence(L, kind)], options, training)


@pytest.mark.parity
def test_a_transformer_of_single_sequences_agrees_with_torch() -> None:
    build = lambda nn: nn.Transformer(E, H, 1, 1, **LAYER)
    compare(*pair(build), [normal(S, E), normal(L, E)], {"tgt_mask": causal(L)}, True)


REFUSALS: dict[str, Any] = {
    "no features": lambda t, nn: nn.MultiheadAttention(0, 1),
    "heads do not divide": lambda t, nn: nn.MultiheadAttention(5, 2),
    "unknown activation": lambda t, nn: nn.TransformerEncoderLayer(4, 2, activation="silu"),
    "batches differ": lambda t, nn: nn.Transformer(4, 2, 1, 1, 4, batch_first=True)(t.ones(2, 3, 4), t.ones(3, 3, 4)),
    "features differ": lambda t, nn: nn.Transformer(4, 2, 1, 1, 4, batch_first=True)(t.ones(2, 3, 4), t.ones(2, 3, 5)),
}


@pytest.mark.parity
@pytest.mark.parametrize("name", REFUSALS)
def test_what_torch_refuses_is_refused_in_its_words(name: str) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises((RuntimeError, ValueError, AssertionError)) as theirs:
        REFUSALS[name](torch, torch.nn)
    with pytest.raises(theirs.type) as ours:
        REFUSALS[name](votive, nn)
    assert str(theirs.value) in str(ours.value)


def test_integer_masks_are_refused() -> None:
    x = votive.ones(2, 3, 4)
    with pytest.raises(AssertionError, match="only bool and floating types"):
        nn.MultiheadAttention(4, 2)(x, x, x, attn_mask=votive.ones(2, 2).long())


def test_masks_of_different_types_are_warned_of() -> None:
    x = votive.ones(2, 3, 4)
    masks = {"attn_mask": votive.zeros(2, 2), "key_padding_mask": votive.zeros(3, 2).bool()}
    with pytest.warns(UserWarning, match="mismatched key_padding_mask and attn_mask"):
        nn.MultiheadAttention(4, 2)(x, x, x, **masks)


def test_layers_of_a_stack_are_copies() -> None:
    layer = nn.TransformerDecoderLayer(4, 2, 4)
    decoder = nn.TransformerDecoder(layer, 2)
    first, second = (m.linear1.weight for m in decoder.layers)
    assert votive.equal(first, second)
    assert len({id(first), id(second), id(layer.linear1.weight)}) == 3


def test_weights_begin_as_xavier_says() -> None:
    votive.manual_seed(0)
    attention = nn.MultiheadAttention(32, 4, add_bias_kv=True)
    bound = (6 / (32 + 96)) ** 0.5
    assert 0.98 * bound < attention.in_proj_weight.abs().max().item() <= bound
    assert not attention.in_proj_bias.any()
    assert not attention.out_proj.bias.any()
    assert attention.bias_k.std().item() > 0
    with pytest.warns(UserWarning, match="batch_first"):
        model = nn.Transformer(32, 4, 1, 1, 64)
    bound = (6 / (32 + 64)) ** 0.5
    assert 0.98 * bound < model.encoder.layers[0].linear1.weight.abs().max().item() <= bound


def test_dropout_acts_in_training_only() -> None:
    votive.manual_seed(0)
    layer = nn.TransformerEncoderLayer(E, H, 16, dropout=0.5)
    x = votive.ones(S, N, E)
    assert not votive.equal(layer(x), layer(x))
    assert votive.equal(layer.eval()(x), layer(x))
