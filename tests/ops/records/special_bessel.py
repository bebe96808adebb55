"""Records for Bessel functions and Airy's; their numerics are tested in tests/numerics."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

ONE: list[Any] = [(S(3, 4),), (S(),), (S(0, 3),)]
POSITIVE = (0.3, 6.0)
NODES = (np.arange(4000) + 0.5) * np.pi / 4000


def over_circle(kernel: Any) -> Any:
    """The mean over t in 0..pi: Bessel's integrals (DLMF 10.9.1, 10.32.1), exact by periodicity."""
    return lambda x: np.mean(kernel(np.asarray(x, float)[..., None], NODES), axis=-1)


i0 = over_circle(lambda x, t: np.exp(x * np.cos(t)))
i1 = over_circle(lambda x, t: np.exp(x * np.cos(t)) * np.cos(t))
j0 = over_circle(lambda x, t: np.cos(x * np.sin(t)))
j1 = over_circle(lambda x, t: np.cos(x * np.sin(t) - t))


def unary(name: str, reference: Any = None, **options: Any) -> Any:
    # torch=False: torch has no gradient for them; its values are compared in tests/numerics.
    return op(name, samples=ONE, reference=reference, dtypes="bif", **options)


RECORDS = [
    unary("i0", i0, errors=[((S(3, dtype="complex128"),), NotImplementedError)]),
    unary("special.i0", i0),
    unary("special.i0e", lambda x: i0(x) * np.exp(-np.abs(x + 0.0)), kinks=(0.0,)),
    unary("special.i1", i1),
    unary("special.i1e", lambda x: i1(x) * np.exp(-np.abs(x + 0.0)), kinks=(0.0,)),
    unary("special.bessel_j0", j0, torch=False, domain=(-8.0, 8.0)),
    unary("special.bessel_j1", j1, torch=False, domain=(-8.0, 8.0)),
    unary("special.bessel_y0", torch=False, domain=POSITIVE),
    unary("special.bessel_y1", torch=False, domain=POSITIVE),
    unary("special.modified_bessel_i0", i0, torch=False),
    unary("special.modified_bessel_i1", i1, torch=False),
    unary("special.modified_bessel_k0", torch=False, domain=POSITIVE),
    unary("special.modified_bessel_k1", torch=False, domain=POSITIVE),
    unary("special.scaled_modified_bessel_k0", torch=False, domain=POSITIVE),
    unary("special.scaled_modified_bessel_k1", torch=False, domain=POSITIVE),
    unary("special.spherical_bessel_j0", lambda x: np.sinc(x / np.pi), torch=False),
    unary("special.airy_ai", grad=False),
]
