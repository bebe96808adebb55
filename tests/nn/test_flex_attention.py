"""Attention by functions, biases and switches: the same as torch's, and as attention with the mask written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import votive
from tests import docstrings
from votive.dispatch.observe import Observer
from votive.nn import attention
from votive.nn.attention import SDPBackend, bias, block_mask, sdpa_kernel
from votive.nn.attention import flex_attention as flex
from votive.nn.functional import scaled_dot_product_attention as sdpa

DOCS = docstrings.examples([attention, bias, block_mask, flex])
INF = float("inf")


@pytest.mark.parametrize("name", sorted(DOCS))
def test_the_examples_run(name: str) -> None:
    docstrings.run(name, DOCS[name])


def arrays(b: int = 2, h: int = 4, q: int = 7, k: int = 9, d: int = 5, shared: int = 4) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [(b, h, q, d), (b, shared, k, d), (b, shared, k, d + 1)]
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


def mods(lib: Any) -> dict[str, Callable[..., Any]]:
    """Functions of scores as programs write them; `lib` is votive or torch."""
    rng = np.random.default_rng(1)
    slopes, table, prefix = (lib.tensor(rng.standard_normal(s).astype("f4")) for s in ((4,), (2, 4, 7, 9), (2,)))
    document = lib.tensor(rng.integers(0, 2, (2, 9)))
    rows = lib.tensor(rng.standard_normal((9, 3)).astype("f4"))
    slopes.requires_grad_()
    table.requires_grad_()
    return {
        "alibi": lambda s, b, h, q, k: s + slopes[h] * (k - q),
        "causal": lambda s, b, h, q, k: lib.where(q >= k, s, -INF),
        "table": lambda s, b, h, q, k: s + table[b, h, q, k],
        "soft cap": lambda s, b, h, q, k: 5 * lib.tanh(s / 5),
        "document": lambda s, b, h, q, k: lib.where(document[b, q] == document[b, k], s, -INF),
        "prefix": lambda s, b, h, q, k: s * prefix[b],
        "rows": lambda s, b, h, q, k: s + (rows[q] * rows[k]).sum(-1),
        "nothing seen": lambda s, b, h, q, k: lib.where(q < 3, -INF, s),
    }


def masks() -> dict[str, Callable[..., Any]]:
    return {
        "causal": lambda b, h, q, k: q >= k,
        "window": flex.and_masks(lambda b, h, q, k: q >= k, lambda b, h, q, k: q - k <= 2),
        "by head": lambda b, h, q, k: (q + k) % (h + 1) == 0,
        "by batch": lambda b, h, q, k: k < 3 + 2 * b,
        "none": lambda b, h, q, k: k < 0,
        "all": flex.noop_mask,
    }


@pytest.mark.parity
@pytest.mark.parametrize("shared", [4, 2])
@pytest.mark.parametrize("name", sorted(mods(votive)))
def test_functions_of_scores_give_what_torch_gives(name: str, shared: int) -> None:
    torch = pytest.importorskip("torch")
    theirs = pytest.importorskip("torch.nn.attention.flex_attention")
    results = []
    for lib, space in ((votive, flex), (torch, theirs)):
        q, k, v = (lib.tensor(x, requires_grad=True) for x in arrays(shared=shared))
        fn = mods(lib)[name]
        kept = [c.cell_contents for c in fn.__closure__ or () if getattr(c.cell_contents, "requires_grad", False)]
        if lib is torch:  # its flex_attention compiles, which takes seconds; its definition does not
            mask = space._create_empty_block_mask(q, k)
            from torch._higher_order_ops.flex_attention import math_attention

            out, lse, _ = math_attention(q, k, v, fn, mask.as_tuple(), 5**-0.5, {}, (), ())
            lse = lse * np.log(2)
        else:
            out, aux = space.flex_attention(q, k, v, fn, enable_gqa=True, return_aux=flex.AuxRequest(lse=True))
            lse = aux.lse
        (out * out + out).sum().backward()
        results.append([out, lse, *(x.grad for x in (q, k, v, *kept))])
    for mine, other in zip(*results, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", sorted(masks()))
def test_a_block_mask_hides_what_its_function_hides(name: str) -> None:
    q, k, v = (votive.tensor(x) for x in arrays())
    fn = masks()[name]
    blocks = flex.create_block_mask(fn, 2, 4, 7, 9, device="cpu", BLOCK_SIZE=(2, 4))
    plain = flex.create_mask(fn, 2, 4, 7, 9, device="cpu")
    np.testing.assert_allclose(flex.flex_attention(q, k, v, block_mask=blocks), sdpa(q, k, v, plain), atol=1e-6)
    score = lambda s, b, h, i, j: s * 2
    both = flex.flex_attention(q, k, v, score, block_mask=blocks)
    np.testing.assert_allclose(both, sdpa(q, k, v, plain, scale=2 * 5**-0.5), atol=1e-6)


@pytest.mark.parity
@pytest.mark.parametrize("name", sorted(masks()))
@pytest.mark.parametrize("separate", [True, False])
def test_block_masks_are_torchs(name: str, separate: bool) -> None:
    theirs = pytest.importorskip("torch.nn.attention.flex_attention")
    given: Any = {"device": "cpu", "BLOCK_SIZE": (2, 4), "separate_full_blocks": separate}
    fn = masks()[name] if name not in ("all", "window") else masks()["causal"]
    mine = flex.create_block_mask(fn, 2, 4, 7, 9, **given)
    other = theirs.create_block_mask(fn, 2, 4, 7, 9, **given)
    parts = [lambda m: m, lambda m: m[1], lambda m: m[:, 1:3]]
    if name != "by head":  # torch counts blocks that lie outside of the part
        parts.append(lambda m: m._adjust(5, 6))
    for a, b in ((part(mine), part(other)) for part in parts):
        assert (a.shape, a.sparsity(), str(a)) == (b.shape, b.sparsity(), str(b))
        assert repr(a).replace("votive", "torch").replace("sliced", "_sliced_mask_mod_error") == repr(b)
        for x, y in zip(a.as_tuple(), b.as_tuple(), strict=False):
            if hasattr(y, "numpy"):
                assert (x.numpy() == y.numpy()).all()
                assert x.numpy().dtype == y.numpy().dtype


def test_a_block_that_is_not_listed_is_not_seen() -> None:
    q, k, v = (votive.tensor(x) for x in arrays(q=4, k=4))
    rows, seen = votive.tensor([[[1, 1]]]), votive.tensor([[[[1, 0], [0, 1]]]])
    mask = flex.BlockMask.from_kv_blocks(rows, seen, BLOCK_SIZE=2)
    shown = votive.tensor([[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]]).bool()
    np.testing.assert_allclose(flex.flex_attention(q, k, v, block_mask=mask), sdpa(q, k, v, shown), atol=1e-6)


def test_what_does_not_fit_is_said() -> None:
    q, k, v = (votive.tensor(x) for x in arrays())
    mask = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, 8, 9, device="cpu", BLOCK_SIZE=4)
    with pytest.raises(ValueError, match=r"larger length.*_adjust"):
        flex.flex_attention(q, k, v, block_mask=mask)
    with pytest.raises(RuntimeError, match="sliced BlockMask"):
        flex.flex_attention(q, k, v, block_mask=mask[0])
    with pytest.raises(ValueError, match="enable_gqa=True"):
        flex.flex_attention(q, k[:, :2], v[:, :2])
    with pytest.raises(NotImplementedError, match="4D"):
        flex.flex_attention(q[0], k[0], v[0])
    with pytest.raises(AssertionError, match="mask_mod"):
        flex.create_block_mask(lambda s, b, h, i, j: s, 1, 1, 4, 4, device="cpu")
    with pytest.warns(FutureWarning, match="return_lse"):
        flex.flex_attention(q, k, v, return_lse=True)


class Seen(Observer):
    def __init__(self) -> None:
        self.names: list[str] = []

    def after(self, call: Any) -> None:
        self.names.append(call.op.name)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_sdpa_kernel_chooses_single_operators_or_the_fused_kernel(dropout: float) -> None:
    q, k, v = (votive.tensor(x) for x in arrays())
    with sdpa_kernel([SDPBackend.MATH]), Seen() as math:
        votive.manual_seed(0)
        a = sdpa(q, k, v, dropout_p=dropout)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION, set_priority=True), Seen() as fused:
        votive.manual_seed(0)
        b = sdpa(q, k, v, dropout_p=dropout)
    assert "_attention" not in math.names
    assert "_attention" in fused.names
    np.testing.assert_allclose(a, b, atol=1e-6)
    with sdpa_kernel([]), pytest.raises(RuntimeError, match="No available kernel"):
        sdpa(q, k, v)
    sdpa(q, k, v)
    with pytest.raises(AssertionError, match="SDPBackend"), sdpa_kernel("math"):  # type: ignore[arg-type]
        pass


@pytest.mark.parametrize("shape", [(2, 4, 7, 9), (2, 4, 9, 9)])
@pytest.mark.parametrize("make", [bias.causal_upper_left, bias.causal_lower_right])
def test_a_causal_bias_hides_what_its_matrix_hides(make: Any, shape: tuple[int, ...]) -> None:
    q, k, v = (votive.tensor(x) for x in arrays(*shape))
    one = make(*shape[2:])
    for lead in (slice(None), 0):
        with sdpa_kernel([SDPBackend.MATH]):
            plain = sdpa(q[lead], k[lead], v[lead], one)
        np.testing.assert_allclose(sdpa(q[lead], k[lead], v[lead], one), plain, atol=1e-6)
        np.testing.assert_allclose(plain, sdpa(q[lead], k[lead], v[lead], one._materialize()), atol=1e-6)
    with pytest.raises(ValueError, match="causal=True"):
        sdpa(q, k, v, one, is_causal=True)


def test_a_function_that_takes_single_numbers_only_is_mapped() -> None:
    q, k, v = (votive.tensor(x, requires_grad=True) for x in arrays(b=1, h=2, q=3, k=4, shared=2))
    table = votive.tensor(np.random.default_rng(3).standard_normal((1, 2, 3, 4)).astype("f4"), requires_grad=True)
    found = []
    for mod in (lambda s, b, h, i, j: s + table[b, h, i, j], lambda s, b, h, i, j: (s + table[b][h][i][j]).sum()):
        out = flex.flex_attention(q, k, v, mod)
        found.append([out, *votive.autograd.grad((out * out).sum(), [q, k, v, table])])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a.detach(), b.detach(), rtol=1e-5, atol=1e-6)
