"""cuSOLVER's and cuBLAS's functions on host memory, computed by NumPy from addresses alone, with
LAPACK's conventions: matrices in columns, pivots counted from 1, results in place.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from votive.backends.cpu.reference.linalg_lu import factor, row_order
from votive.backends.cpu.reference.linalg_triangular import substitute

from .fake_cufft import array

_DTYPE = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
_REAL = {"S": np.float32, "D": np.float64, "C": np.float32, "Z": np.float64}
WORK = 64


def _at(p: Any) -> int:
    assert p.value, "an address is missing"
    return int(p.value)


class _Functions:
    """Finds `<prefix><letter><name>` as a method `name(dtype, *args)`."""

    prefix = ""
    streams: Any = None

    def __init__(self) -> None:
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = re.fullmatch(rf"{self.prefix}([SDCZ])(.+?)(_v2)?", name)
        if found is None:
            raise AttributeError(name)
        letter, stem = found[1], found[2]
        self.called.append(f"{letter}{stem}")
        size = stem.endswith("_bufferSize")
        kind = re.sub(r"^(un|or)(gqr|mqr)", r"q\2", stem.removesuffix("_bufferSize"))
        kind = re.sub(r"^(he|sy)ev", "ev", kind)
        if letter in "SD":
            assert not stem.startswith(("un", "he")), name
        else:
            assert not stem.startswith(("or", "sy")), name
        fn = getattr(type(self), f"do_{kind}")

        def run(handle: Any, *args: Any) -> int:
            assert handle.value, "no handle"
            assert self.streams, "no stream was set"
            if size:
                next(a for a in args if hasattr(a, "_obj"))._obj.value = WORK
                return 0
            fn(self, letter, *args)
            return 0

        return run


def _matrix(letter: str, p: Any, rows: int, cols: int, lead: int) -> np.ndarray[Any, Any]:
    assert lead >= max(rows, 1)
    address = p if isinstance(p, int) else _at(p)
    return array(address, _DTYPE[letter], (rows, cols), (1, lead))


def _list(p: Any, count: int) -> list[int]:
    return array(_at(p), np.int64, (count,), (1,)).tolist()


def _work(letter: str, p: Any, size: int) -> None:
    assert size == WORK
    array(_at(p), _DTYPE[letter], (WORK,), (1,))[...] = np.nan  # must be memory of that size


def _turned(x: Any, op: int) -> Any:
    return (x, x.T, x.T.conj())[op]


def _factored(a: Any, pivots: Any, info: Any) -> None:
    lu, swaps, code = factor(np.array(a))
    a[...], pivots[...], info[...] = lu, swaps + 1, code


def _by_modulus(a: Any, pivots: Any, info: Any) -> None:
    """As cuBLAS factors complex matrices: the largest modulus is the pivot."""
    info[...] = 0
    for k in range(len(a)):
        p = k + int(np.abs(a[k:, k]).argmax())
        a[[k, p]], pivots[k] = a[[p, k]], p + 1
        if a[k, k] == 0:
            info[...] = info[0] or k + 1
            continue
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


def _substituted(lu: Any, pivots: Any, b: Any, op: int) -> None:
    n = len(lu)
    order = row_order(pivots.astype(np.int64) - 1, n)
    x = np.array(b)
    with np.errstate(all="ignore"):
        if op == 0:
            x = substitute(lu, substitute(lu, x[order], False, True), True, False)
            b[...] = x
            return
        turned = _turned(lu, op)
        x = substitute(turned, substitute(turned, x, False, False), True, True)
        b[order] = x


class FakeSolver(_Functions):
    prefix = "cusolverDn"

    def cusolverDnCreate(self, out: Any) -> int:
        out._obj.value = 1
        return 0

    cusolverDnCreateGesvdjInfo = cusolverDnCreateSyevjInfo = cusolverDnCreate

    def cusolverDnSetStream(self, handle: Any, stream: Any) -> int:
        self.streams = (stream,)
        return 0

    def _cholesky(self, letter: str, side: int, n: int, a: Any, lead: int, info: Any) -> None:
        m = _matrix(letter, a, n, n, lead)
        other = m.T.conj() if side else m
        low = np.tril(other)
        whole = low + np.tril(low, -1).T.conj()
        code = 0
        try:
            low = np.linalg.cholesky(whole)
        except np.linalg.LinAlgError:
            minors = (np.linalg.eigvalsh(whole[:k, :k])[0] for k in range(1, n + 1))
            code = next(k for k, v in enumerate(minors, 1) if v <= 0)
        keep = np.tri(n, dtype=bool)
        m[...] = np.where(keep.T, low.T.conj(), m) if side else np.where(keep, low, m)
        info[...] = code

    def do_potrf(self, letter: str, side: int, n: int, a: Any, lead: int, work: Any, size: int, info: Any) -> None:
        _work(letter, work, size)
        self._cholesky(letter, side, n, a, lead, array(_at(info), np.int32, (1,), (1,)))

    def do_potrfBatched(self, letter: str, side: int, n: int, a: Any, lead: int, info: Any, count: int) -> None:
        codes = array(_at(info), np.int32, (count,), (1,))
        for i, p in enumerate(_list(a, count)):
            self._cholesky(letter, side, n, p, lead, codes[i : i + 1])

    def do_getrf(self, letter: str, m: int, n: int, a: Any, lead: int, work: Any, pivots: Any, info: Any) -> None:
        _work(letter, work, WORK)
        where = array(_at(pivots), np.int32, (min(m, n),), (1,))
        _factored(_matrix(letter, a, m, n, lead), where, array(_at(info), np.int32, (), ()))

    def do_getrs(
        self, letter: str, op: int, n: int, k: int, a: Any, lead: int, pivots: Any, b: Any, lead_b: int, info: Any
    ) -> None:
        array(_at(info), np.int32, (1,), (1,))[...] = 0
        where = array(_at(pivots), np.int32, (n,), (1,))
        x = _matrix(letter, b, n, k, lead_b)
        _substituted(_matrix(letter, a, n, n, lead), where, x, op)

    def do_geqrf(
        self, letter: str, m: int, n: int, a: Any, lead: int, tau: Any, work: Any, size: int, info: Any
    ) -> None:
        _work(letter, work, size)
        x = _matrix(letter, a, m, n, lead)
        packed, t = np.linalg.qr(np.array(x), mode="raw")
        x[...] = packed.T
        array(_at(tau), _DTYPE[letter], t.shape, (1,))[...] = t

    def _product(self, letter: str, v: Any, tau: Any, m: int, k: int) -> Any:
        t = array(_at(tau), _DTYPE[letter], (k,), (1,))
        q = np.eye(m, dtype=_DTYPE[letter])
        for i in reversed(range(k)):
            w = np.concatenate([np.zeros(i), [1], v[i + 1 :, i]])[:, None]
            q = q - t[i] * (w @ (w.conj().T @ q))
        return q

    def do_qgqr(
        self, letter: str, m: int, n: int, k: int, a: Any, lead: int, tau: Any, work: Any, size: int, info: Any
    ) -> None:
        assert m >= n >= k
        _work(letter, work, size)
        x = _matrix(letter, a, m, n, lead)
        x[...] = self._product(letter, np.array(x), tau, m, k)[:, :n]

    def do_qmqr(
        self,
        letter: str,
        side: int,
        op: int,
        m: int,
        n: int,
        k: int,
        a: Any,
        lead: int,
        tau: Any,
        c: Any,
        lead_c: int,
        work: Any,
        size: int,
        info: Any,
    ) -> None:
        assert side == 0
        _work(letter, work, size)
        q = self._product(letter, _matrix(letter, a, m, k, lead), tau, m, k)
        x = _matrix(letter, c, m, n, lead_c)
        x[...] = _turned(q, op) @ x

    def _singular(
        self,
        letter: str,
        vectors: int,
        full: bool,
        m: int,
        n: int,
        a: Any,
        lead: int,
        s: int,
        u: int,
        lead_u: int,
        v: int,
        lead_v: int,
    ) -> int:
        x = _matrix(letter, a, m, n, lead)
        k = min(m, n)
        if not np.isfinite(x).all():
            array(s, _REAL[letter], (k,), (1,))[...] = np.nan
            return 0
        left, values, right = np.linalg.svd(np.array(x), full_matrices=full)
        array(s, _REAL[letter], (k,), (1,))[...] = values
        if vectors:
            _matrix(letter, u, *left.shape, lead_u)[...] = left
            _matrix(letter, v, *right.T.shape, lead_v)[...] = right.conj().T
        x[...] = np.nan
        return 0

    def do_gesvdj(
        self,
        letter: str,
        vectors: int,
        econ: int,
        m: int,
        n: int,
        a: Any,
        lead: int,
        s: Any,
        u: Any,
        lead_u: int,
        v: Any,
        lead_v: int,
        work: Any,
        size: int,
        info: Any,
        params: Any,
    ) -> None:
        _work(letter, work, size)
        assert params.value
        array(_at(info), np.int32, (1,), (1,))[...] = self._singular(
            letter, vectors, not econ, m, n, a, lead, _at(s), _at(u), lead_u, _at(v), lead_v
        )

    def do_gesvdjBatched(
        self,
        letter: str,
        vectors: int,
        m: int,
        n: int,
        a: Any,
        lead: int,
        s: Any,
        u: Any,
        lead_u: int,
        v: Any,
        lead_v: int,
        work: Any,
        size: int,
        info: Any,
        params: Any,
        count: int,
    ) -> None:
        _work(letter, work, size)
        assert max(m, n) <= 32
        z, r = np.dtype(_DTYPE[letter]).itemsize, np.dtype(_REAL[letter]).itemsize
        codes = array(_at(info), np.int32, (count,), (1,))
        for i in range(count):
            codes[i] = self._singular(
                letter,
                vectors,
                True,
                m,
                n,
                _at(a) + i * lead * n * z,
                lead,
                _at(s) + i * min(m, n) * r,
                _at(u) + i * lead_u * m * z,
                lead_u,
                _at(v) + i * lead_v * n * z,
                lead_v,
            )

    def _eigen(self, letter: str, vectors: int, side: int, n: int, a: int, lead: int, w: int) -> None:
        x = _matrix(letter, a, n, n, lead)
        values, found = np.linalg.eigh(np.array(x), UPLO="U" if side else "L")
        array(w, _REAL[letter], (n,), (1,))[...] = values
        x[...] = found if vectors else np.nan

    def do_evd(
        self, letter: str, vectors: int, side: int, n: int, a: Any, lead: int, w: Any, work: Any, size: int, info: Any
    ) -> None:
        _work(letter, work, size)
        self._eigen(letter, vectors, side, n, _at(a), lead, _at(w))
        array(_at(info), np.int32, (1,), (1,))[...] = 0

    def do_evjBatched(
        self,
        letter: str,
        vectors: int,
        side: int,
        n: int,
        a: Any,
        lead: int,
        w: Any,
        work: Any,
        size: int,
        info: Any,
        params: Any,
        count: int,
    ) -> None:
        _work(letter, work, size)
        z, r = np.dtype(_DTYPE[letter]).itemsize, np.dtype(_REAL[letter]).itemsize
        array(_at(info), np.int32, (count,), (1,))[...] = 0
        for i in range(count):
            self._eigen(letter, vectors, side, n, _at(a) + i * lead * n * z, lead, _at(w) + i * n * r)


class FakeBlas(_Functions):
    prefix = "cublas"

    def cublasCreate_v2(self, out: Any) -> int:
        out._obj.value = 2
        return 0

    def cublasSetStream_v2(self, handle: Any, stream: Any) -> int:
        self.streams = (stream,)
        return 0

    def do_trsm(
        self,
        letter: str,
        side: int,
        triangle: int,
        op: int,
        unit: int,
        m: int,
        n: int,
        alpha: Any,
        a: Any,
        lead: int,
        b: Any,
        lead_b: int,
    ) -> None:
        assert side == 1
        assert list(alpha._obj) == [1, 0]
        x, t = _matrix(letter, b, m, n, lead_b), np.array(_matrix(letter, a, n, n, lead))
        t = np.triu(t) if triangle else np.tril(t)
        if unit:
            np.fill_diagonal(t, 1)
        # X op(T) = B, hence op(T)' X' = B'.
        turned = _turned(t, op).T
        upper = bool(np.allclose(turned, np.triu(turned), equal_nan=True))
        with np.errstate(all="ignore"):
            x[...] = substitute(turned, np.array(x).T, upper, bool(unit)).T

    def do_trsmBatched(
        self,
        letter: str,
        side: int,
        triangle: int,
        op: int,
        unit: int,
        m: int,
        n: int,
        alpha: Any,
        a: Any,
        lead: int,
        b: Any,
        lead_b: int,
        count: int,
    ) -> None:
        for p, q in zip(_list(a, count), _list(b, count), strict=True):
            self.do_trsm(letter, side, triangle, op, unit, m, n, alpha, p, lead, q, lead_b)

    def do_getrfBatched(self, letter: str, n: int, a: Any, lead: int, pivots: Any, info: Any, count: int) -> None:
        where = array(_at(pivots), np.int32, (count, n), (n, 1))
        codes = array(_at(info), np.int32, (count,), (1,))
        for i, p in enumerate(_list(a, count)):
            a = _matrix(letter, p, n, n, lead)
            if letter in "CZ":
                _by_modulus(a, where[i], codes[i : i + 1])
            else:
                _factored(a, where[i], codes[i : i + 1])

    def do_getrsBatched(
        self,
        letter: str,
        op: int,
        n: int,
        k: int,
        a: Any,
        lead: int,
        pivots: Any,
        b: Any,
        lead_b: int,
        info: Any,
        count: int,
    ) -> None:
        where = array(_at(pivots), np.int32, (count, n), (n, 1))
        info._obj.value = 0
        for i, (p, q) in enumerate(zip(_list(a, count), _list(b, count), strict=True)):
            x = _matrix(letter, q, n, k, lead_b)
            _substituted(_matrix(letter, p, n, n, lead), where[i], x, op)
