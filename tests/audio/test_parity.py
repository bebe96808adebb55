"""Every functional and transform gives what torchaudio gives, and its gradients."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import votive

from . import cases_of_beamforming, cases_of_signals, cases_of_spectra, cases_of_transforms  # noqa: F401
from .cases import CASES, Case, Side
from .golden import GOLDEN, read, sampled

EACH = pytest.mark.parametrize("case", CASES, ids=[c.id for c in CASES])


def ours(dtype: str = "float64") -> Side:
    return Side(votive, votive.audio.functional, votive.audio.transforms, dtype)


def _feedback(signals: Any, flipped: Any, padded: Any) -> None:
    """The loop of torchaudio's lfilter, which in Python writes into what its gradient needs."""
    order = flipped.shape[1]
    x, a, y = signals.detach().numpy(), flipped.detach().numpy(), padded.detach().numpy()
    for n in range(x.shape[2]):
        past = y[:, :, n : n + order - 1] * a[:, :-1]
        y[:, :, n + order - 1] = x[:, :, n] - past.sum(2)


def theirs(dtype: str = "float64", rounded: bool = False) -> Side:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torchaudio = pytest.importorskip("torchaudio", reason="torchaudio is not installed")
    if not torchaudio._extension._IS_TORCHAUDIO_EXT_AVAILABLE:
        torchaudio.functional.filtering._lfilter_core_loop = _feedback
    return Side(torch, torchaudio.functional, torchaudio.transforms, dtype, rounded)


def array(tensor: Any) -> Any:
    """The values of a tensor; torch only marks what is conjugated."""
    tensor = tensor.detach()
    return (tensor.resolve_conj() if hasattr(tensor, "resolve_conj") else tensor).numpy()


def flat(value: Any) -> list[Any]:
    """The numbers of a result: tensors, tuples and lists of them, and plain numbers."""
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in flat(v)]
    if hasattr(value, "detach"):
        return [array(value)]
    return [] if value is None else [np.asarray(value)]


def hold(case: Case, got: list[Any], want: list[Any], tolerance: float) -> None:
    """The results agree, relative to the largest value."""
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert a.shape == b.shape
        assert a.dtype.kind == b.dtype.kind
        error = np.abs(a.astype(np.complex128) - b).max(initial=0.0)
        assert error <= tolerance * np.abs(b).max(initial=0.0), f"{case.id}: {error}"


@EACH
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_value_is_that_of_torchaudio(case: Case, dtype: str) -> None:
    precise = case.against64 and dtype == "float32"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = case.run(theirs("float64" if precise else dtype, rounded=precise))
    got = case.run(ours(dtype))
    for a, b in zip(flat(got), flat(want)):
        assert a.dtype == b.dtype or precise
    hold(case, flat(got), flat(want), case.fine if dtype == "float64" else case.tol)


def gradients(case: Case, side: Side) -> list[Any]:
    """The gradients of a weighted sum of the result, by every input."""
    out = case.run(side)
    out = out[0] if isinstance(out, tuple) else out
    if side.lib.is_complex(out):
        out = side.lib.view_as_real(out)
    weights = np.cos(np.arange(out.numel())).reshape(tuple(out.shape))
    (out * side.array(weights)).sum().backward()
    return [array(x.grad) for x in side.inputs]


@pytest.mark.parametrize("case", [c for c in CASES if c.grad], ids=lambda c: c.id)
def test_the_gradient_is_that_of_torchaudio(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = gradients(case, theirs())
    hold(case, gradients(case, ours()), want, max(case.fine, 1e-8))


@EACH
def test_the_value_is_the_stored_one(case: Case) -> None:
    assert GOLDEN.exists(), "run python -m tests.audio.golden where torchaudio is installed"
    stored = read()
    got = flat(case.run(ours()))
    for k, array in enumerate(got):
        shape, values = stored[f"{case.id}/{k}/shape"], stored[f"{case.id}/{k}"]
        assert array.shape == tuple(shape)
        # Stored with the digits of float32.
        hold(case, [sampled(array)], [values], max(case.fine, 1e-6))
    assert f"{case.id}/{len(got)}" not in stored


def test_every_public_name_has_a_case() -> None:
    # Checked by tests of their own: they need what torchaudio's compiled part would give.
    own = {"forced_align", "TokenSpan"}
    named = {c.name for c in CASES} | own
    public = {*votive.audio.functional.__all__, *votive.audio.transforms.__all__}
    assert public - named == set()
    assert named - public == set()
