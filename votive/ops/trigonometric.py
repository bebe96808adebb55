"""Circular and hyperbolic functions and their inverses. Formulas only."""

from __future__ import annotations

import math

from .registry import pointwise

pointwise(
    "sin(Tensor input)",
    dtypes="float",
    doc="""Sine of an angle in radians.

    >>> votive.sin(votive.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8415])
    """,
    inplace_function=True,
)

pointwise(
    "cos(Tensor input)",
    dtypes="float",
    doc="""Cosine of an angle in radians.

    >>> votive.cos(votive.tensor([0.0, 1.0]))
    tensor([1.0000, 0.5403])
    """,
    inplace_function=True,
)

pointwise(
    "tan(Tensor input)",
    dtypes="float",
    doc="""Tangent of an angle in radians.

    >>> votive.tan(votive.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5574])
    """,
    inplace_function=True,
    autocast={"cuda": "float32"},
)

pointwise(
    "asin(Tensor input)",
    dtypes="float",
    aliases=("arcsin",),
    doc="""The angle in -pi/2..pi/2 whose sine is input.

    >>> votive.asin(votive.tensor([0.0, 1.0]))
    tensor([0.0000, 1.5708])
    """,
    inplace_function=True,
    autocast={"cuda": "float32"},
)

pointwise(
    "acos(Tensor input)",
    dtypes="float",
    aliases=("arccos",),
    doc="""The angle in 0..pi whose cosine is input.

    >>> votive.acos(votive.tensor([1.0, -1.0]))
    tensor([0.0000, 3.1416])
    """,
    inplace_function=True,
    autocast={"cuda": "float32"},
)

pointwise(
    "atan(Tensor input)",
    dtypes="float",
    aliases=("arctan",),
    doc="""The angle in -pi/2..pi/2 whose tangent is input.

    >>> votive.atan(votive.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7854])
    """,
    inplace_function=True,
)

pointwise(
    "sinh(Tensor input)",
    dtypes="float",
    doc="""Hyperbolic sine, `(e^x - e^-x) / 2`.

    >>> votive.sinh(votive.tensor([0.0, 1.0]))
    tensor([0.0000, 1.1752])
    """,
    inplace_function=True,
    autocast={"cuda": "float32"},
)

pointwise(
    "cosh(Tensor input)",
    dtypes="float",
    doc="""Hyperbolic cosine, `(e^x + e^-x) / 2`.

    >>> votive.cosh(votive.tensor([0.0, 1.0]))
    tensor([1.0000, 1.5431])
    """,
    inplace_function=True,
    autocast={"cuda": "float32"},
)

pointwise(
    "tanh(Tensor input)",
    dtypes="float",
    also=("nn.functional.tanh",),
    doc="""Hyperbolic tangent, `sinh(x) / cosh(x)`.

    >>> votive.tanh(votive.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """,
    inplace_function=True,
)

pointwise(
    "asinh(Tensor input)",
    dtypes="float",
    aliases=("arcsinh",),
    doc="""The number whose hyperbolic sine is input.

    >>> votive.asinh(votive.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8814])
    """,
    inplace_function=True,
)

pointwise(
    "acosh(Tensor input)",
    dtypes="float",
    aliases=("arccosh",),
    doc="""The number, not negative, whose hyperbolic cosine is input.

    >>> votive.acosh(votive.tensor([1.0, 2.0]))
    tensor([0.0000, 1.3170])
    """,
    inplace_function=True,
)

pointwise(
    "atanh(Tensor input)",
    dtypes="float",
    aliases=("arctanh",),
    doc="""The number whose hyperbolic tangent is input.

    >>> votive.atanh(votive.tensor([0.0, 0.5]))
    tensor([0.0000, 0.5493])
    """,
    inplace_function=True,
)

pointwise(
    "atan2(Tensor input, Tensor other)",
    dtypes="float",
    allow="bif",
    aliases=("arctan2",),
    doc="""The angle of the point (other, input), in -pi..pi.

    >>> votive.atan2(votive.tensor([1.0, 0.0]), votive.tensor([0.0, -1.0]))
    tensor([1.5708, 3.1416])
    """,
    autocast={"cuda": "widest"},
)

pointwise(
    "sinc(Tensor input)",
    dtypes="float",
    also=("special.sinc",),
    doc="""`sin(pi x) / (pi x)`, and 1 at 0.

    >>> votive.sinc(votive.tensor([0.0, 0.5]))
    tensor([1.0000, 0.6366])
    """,
    inplace_function=True,
)

pointwise(
    "deg2rad(Tensor input)",
    lambda x: x * (math.pi / 180),
    dtypes="float",
    allow="bif",
    doc="""Degrees to radians.

    >>> votive.deg2rad(votive.tensor([180.0]))
    tensor([3.1416])
    """,
    inplace_function=True,
)

pointwise(
    "rad2deg(Tensor input)",
    lambda x: x * (180 / math.pi),
    dtypes="float",
    allow="bif",
    doc="""Radians to degrees.

    >>> votive.rad2deg(votive.tensor([3.141592653589793]))
    tensor([180.])
    """,
    inplace_function=True,
)
