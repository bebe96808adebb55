"""Formulas: derivatives, simplification, what backward keeps, and the four printers."""

from __future__ import annotations

import math
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import votive
from votive.backends.common.primitives import FUNCTIONS
from votive.backends.cpu.reference.pointwise import function_of
from votive.formula import Expr, Formula, apply, const, derivative, to_cpp, to_text, to_triton, var, where
from votive.formula.derivative import PAIR_RULES, RULES
from votive.formula.expr import substitute, walk

X, Y = var("x"), var("y")


def evaluate(e: Expr, **values: Any) -> Any:
    f = Formula("f", tuple(values), e)
    with np.errstate(all="ignore"):
        return function_of(f, list(values))(*values.values())


DOMAIN = {
    "log": (0.2, 3),
    "log2": (0.2, 3),
    "log10": (0.2, 3),
    "log1p": (-0.8, 3),
    "sqrt": (0.2, 3),
    "rsqrt": (0.2, 3),
    "asin": (-0.9, 0.9),
    "acos": (-0.9, 0.9),
    "atanh": (-0.9, 0.9),
    "acosh": (1.2, 3),
    "erfinv": (-0.9, 0.9),
    "ndtri": (0.1, 0.9),
    "lgamma": (0.3, 4),
    "digamma": (0.3, 4),
    "pow": (0.3, 2),
    "xlogy": (0.3, 3),
    "zeta": (1.5, 4),
    "copysign": (0.3, 2),
    "i1": (0.3, 2),
    "i1e": (0.3, 2),
    "hypot": (0.3, 2),
    "polygamma": (0.5, 3),
}
STEPS = {"floor", "ceil", "trunc", "round", "floor_divide", "sign", "sgn", "nextafter"}
UNARY = [n for n, r in RULES.items() if r.__code__.co_argcount == 2 and n not in STEPS]
BINARY = [n for n, r in RULES.items() if r.__code__.co_argcount == 3 and n not in STEPS]


@pytest.mark.parametrize("name", UNARY)
def test_the_derivative_of_each_unary_primitive_is_its_slope(name: str) -> None:
    low, high = DOMAIN.get(name, (-1.5, 1.5))
    x = np.random.default_rng(0).uniform(low, high, 50)
    e = apply(name, X)
    h = 1e-6
    want = (evaluate(e, x=x + h) - evaluate(e, x=x - h)) / (2 * h)
    got = evaluate(derivative(e, X)[0], x=x) * np.ones_like(x)
    np.testing.assert_allclose(got, want, rtol=2e-7, atol=1e-7)


@pytest.mark.parametrize("by", ["x", "y"])
@pytest.mark.parametrize("name", BINARY)
def test_the_derivative_of_each_binary_primitive_is_its_slope(name: str, by: str) -> None:
    order_only = name == "polygamma" or (by == "x" and name in ("zeta", "gammainc", "gammaincc"))
    if order_only:
        pytest.skip("orders and shape parameters are not differentiated, as in torch")
    low, high = DOMAIN.get(name, (0.3, 2))
    rng = np.random.default_rng(0)
    at = {"x": rng.uniform(low, high, 50), "y": rng.uniform(low, high, 50)}
    e = apply(name, X, Y)
    h = 1e-6
    up, down = {**at, by: at[by] + h}, {**at, by: at[by] - h}
    want = (evaluate(e, **up) - evaluate(e, **down)) / (2 * h)
    got = evaluate(derivative(e, var(by))[0], **at) * np.ones(50)
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-7)


HOLOMORPHIC = ["exp", "sin", "cosh", "tanh", "log", "sqrt", "reciprocal", "sigmoid", "asin"]


@pytest.mark.parametrize("name", [*HOLOMORPHIC, *PAIR_RULES, "conj"])
def test_complex_derivatives_are_the_wirtinger_pair(name: str) -> None:
    rng = np.random.default_rng(1)
    z = rng.uniform(0.3, 0.9, 20) + 1j * rng.uniform(0.3, 0.9, 20)
    e = apply(name, X)
    h = 1e-6
    along_re = (evaluate(e, x=z + h) - evaluate(e, x=z - h)) / (2 * h)
    along_im = (evaluate(e, x=z + 1j * h) - evaluate(e, x=z - 1j * h)) / (2 * h)
    d, bar = derivative(e, X, is_complex=True)
    ones = np.ones_like(z)
    np.testing.assert_allclose(evaluate(d, x=z) * ones, (along_re - 1j * along_im) / 2, atol=1e-8)
    np.testing.assert_allclose(evaluate(bar, x=z) * ones, (along_re + 1j * along_im) / 2, atol=1e-8)


def test_equal_expressions_are_one_object() -> None:
    assert apply("exp", X) + 1 is apply("exp", X) + 1
    assert apply("exp", X) is not apply("exp", Y)
    assert const(1) is not const(1.0)
    assert const(True) is not const(1)


@pytest.mark.parametrize(
    ("built", "simple"),
    [
        (X + 0, X),
        (X * 1, X),
        (1 * X, X),
        (X - 0, X),
        (0 - X, -X),
        (-(X * -1), X),
        (X / 1, X),
        (X**1, X),
        (X**2, X * X),
        (X + -Y, X - Y),
        (2 * (3 * X), 6 * X),
        (-X * Y, -(X * Y)),
        (where(True, X, Y), X),
        (where(X > 0, Y, Y), Y),
        (const(2) + const(3), const(5)),
    ],
)
def test_building_simplifies(built: Expr, simple: Expr) -> None:
    assert built is simple


def test_a_formula_cannot_branch_in_python() -> None:
    with pytest.raises(TypeError, match="where"):
        bool(X > 0)


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "exp", "sqrt", "rsqrt", "reciprocal", "expm1"])
def test_backward_keeps_only_the_output_where_that_is_enough(name: str) -> None:
    assert Formula(name, ("x",), apply(name, X)).needs("x") == ("y",)


def test_backward_keeps_nothing_for_sums_and_the_other_factor_for_products() -> None:
    assert Formula("add", ("x", "y"), X + Y).needs("x") == ()
    assert Formula("mul", ("x", "y"), X * Y).needs("x") == ("y",)


def test_a_select_hides_the_infinite_slope_of_the_side_not_taken() -> None:
    f = Formula("f", ("x",), where(X > 0, apply("sqrt", X), 0.0))
    grad = f.gradient("x")
    assert grad is not None
    got = evaluate(grad.body, g=np.ones(3), x=np.array([-1.0, 0.0, 4.0]), y=np.array([0.0, 0.0, 2.0]))
    assert got.tolist() == [0.0, 0.0, 0.25]


def test_ties_of_maximum_split_evenly_and_nan_reaches_both() -> None:
    e = apply("maximum", X, Y)
    at = {"x": np.array([1.0, 2.0, 3.0, np.nan]), "y": np.array([1.0, 3.0, 2.0, 0.0])}
    assert evaluate(derivative(e, X)[0], **at).tolist() == [0.5, 0.0, 1.0, 1.0]
    assert evaluate(derivative(e, Y)[0], **at).tolist() == [0.5, 1.0, 0.0, 1.0]


def test_a_hand_given_gradient_is_used_also_inside_another_formula() -> None:
    from votive.formula import annotate

    inner = Formula("step", ("x",), apply("floor", X), grads={"x": var("g") * 7})
    outer = annotate(substitute(inner.body, {X: Y * 2}), inner, (Y * 2,))
    assert derivative(outer, Y)[0] is const(14.0)


def test_every_order_of_derivative_has_its_own_incoming_gradient() -> None:
    f = Formula("tanh", ("x",), apply("tanh", X))
    first = f.gradient("x")
    assert first is not None
    assert first.params == ("g", "y")
    second = first.gradient("g")
    assert second is not None
    assert second.params == ("g2", "y")


SAMPLES = {
    "gelu": 0.5 * X * (1 + apply("erf", X * math.sqrt(0.5))),
    "select": where(X > 0.5, apply("exp", X) * X, apply("expm1", X)),
    "shared": (apply("exp", X) + 1) / (apply("exp", X) - 2) - apply("exp", X),
    "power": X**3 + apply("rsqrt", 1 + X * X) - apply("maximum", X, 0.25),
    "logic": where((X > -1) & ~(X > 1), apply("sigmoid", X), apply("tanh", -X)),
}


def test_shared_parts_are_computed_once() -> None:
    assert sum(e.op == "exp" for e in walk(SAMPLES["shared"])) == 1
    text = to_cpp(SAMPLES["shared"], "f", ["x"])
    assert text.count("vt::exp") == 1


@pytest.mark.parametrize("name", SAMPLES)
def test_readable_text_means_the_same_in_python(name: str) -> None:
    text = to_text(SAMPLES[name]).replace("^", "**")
    names: dict[str, Any] = {
        "sqrt": math.sqrt,
        "exp": math.exp,
        "expm1": math.expm1,
        "erf": math.erf,
        "tanh": math.tanh,
        "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
        "rsqrt": lambda v: v**-0.5,
        "maximum": max,
        "where": lambda c, a, b: a if c else b,
        "logical_not": lambda c: not c,
        "pi": math.pi,
    }
    for x in (-1.7, -0.3, 0.4, 1.3):
        assert eval(text, {**names, "x": x}) == pytest.approx(float(evaluate(SAMPLES[name], x=np.array(x))))


@pytest.mark.parametrize("name", SAMPLES)
def test_triton_text_computes_the_same_on_a_stand_in_for_triton(name: str) -> None:
    def shaped(shape: Any, value: Any, kind: Any) -> Any:
        return np.full(shape, value, kind)

    tl = SimpleNamespace(full=shaped, where=np.where, constexpr=None)
    functions = {f"f_{n}": f for n, f in FUNCTIONS.items()}
    m = SimpleNamespace(**functions, as_number=lambda v, kind: np.asarray(v).astype(kind))
    scope: dict[str, Any] = {"tl": tl, "triton": SimpleNamespace(jit=lambda f: f), "m": m}
    exec(to_triton(SAMPLES[name], "f", ["x"]), scope)
    x = np.linspace(-2, 2, 41)
    np.testing.assert_allclose(scope["f"](x, np.float64), evaluate(SAMPLES[name], x=x), rtol=1e-12)


HEADERS = Path(votive.__file__).parent / "backends" / "cpu" / "native" / "src"
PRELUDE = '#include <cstdio>\n#include "vt/primitives.h"\n'


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_cpp_text_compiles_and_computes_the_same(tmp_path: Path) -> None:
    x = np.linspace(-2, 2, 41)
    body = "".join(to_cpp(e, f"f_{n}", ["x"]) for n, e in SAMPLES.items())
    prints = "".join(f'std::printf("%.17g\\n", double(f_{n}(x)));' for n in SAMPLES)
    main = f"int main() {{ for (int i = 0; i < 41; ++i) {{ double x = -2 + 0.1 * i; {prints} }} }}"
    source = tmp_path / "f.cpp"
    source.write_text(PRELUDE + body + main)
    command = ["g++", "-std=c++20", f"-I{HEADERS}", "-o", str(tmp_path / "f"), str(source)]
    subprocess.run(command, check=True)
    out = subprocess.run([str(tmp_path / "f")], check=True, capture_output=True, text=True).stdout
    got = np.array(out.split(), float).reshape(41, len(SAMPLES))
    want = np.stack([evaluate(e, x=np.array([-2 + 0.1 * i for i in range(41)])) for e in SAMPLES.values()], 1)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
    del x
