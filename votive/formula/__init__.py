"""Scalar expressions that define elementwise operators: values, derivatives, source text."""

from .derivative import derivative
from .expr import Expr, annotate, apply, conj, const, lift, substitute, var, where
from .formula import Formula, NotDifferentiable
from .printers import to_cpp, to_numpy, to_text, to_triton

__all__ = [
    "Expr",
    "Formula",
    "NotDifferentiable",
    "annotate",
    "apply",
    "conj",
    "const",
    "derivative",
    "lift",
    "substitute",
    "to_cpp",
    "to_numpy",
    "to_text",
    "to_triton",
    "var",
    "where",
]
