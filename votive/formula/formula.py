"""A formula: named inputs and one expression, with its derived gradients. Knows no tensors."""

from __future__ import annotations

from dataclasses import dataclass, field

from .derivative import NotDifferentiable, derivative, times
from .expr import Expr, add, conj, is_const, substitute, var, variables

__all__ = ["Formula", "NotDifferentiable"]


def _fresh(stem: str, taken: tuple[str, ...]) -> str:
    name, n = stem, 1
    while name in taken:
        n += 1
        name = f"{stem}{n}"
    return name


@dataclass(frozen=True, eq=False)
class Formula:
    """`body` over the inputs `params`; `grads` holds hand-given gradients by input."""

    name: str
    params: tuple[str, ...]
    body: Expr
    grads: dict[str, Expr] = field(default_factory=dict)
    _derived: dict[tuple[str, bool], Formula | None] = field(default_factory=dict)

    @property
    def incoming(self) -> str:
        """The name of the incoming gradient in this formula's own gradients."""
        return _fresh("g", self.params)

    @property
    def result(self) -> str:
        """The name of this formula's output in its own gradients."""
        return _fresh("y", self.params)

    def gradient(self, by: str, is_complex: bool = False) -> Formula | None:
        """The gradient by one input as a formula of g, the inputs it needs and y; None if zero.

        Real: g f'(x). Complex, in torch's convention: g conj(df/dx) + conj(g) df/dconj(x).
        """
        key = (by, is_complex)
        if key not in self._derived:
            self._derived[key] = self._derive(by, is_complex)
        return self._derived[key]

    def _derive(self, by: str, is_complex: bool) -> Formula | None:
        g = var(self.incoming)
        if by in self.grads:
            body = self.grads[by]
            if is_complex:
                # A hand-given gradient is g times a derivative; the convention conjugates that.
                body = conj(substitute(body, {g: conj(g)}))
        else:
            d, bar = derivative(self.body, var(by), is_complex)
            body = add(times(g, conj(d)), times(conj(g), bar)) if is_complex else times(g, d)
        if is_const(body, 0):
            return None
        if self.body.args and by not in self.grads:
            body = substitute(body, {self.body: var(self.result)})
        used = variables(body)
        order = [n for n in (self.incoming, *self.params, self.result) if n in used]
        return Formula(f"{self.name}_backward_{by}", tuple(order), body)

    def needs(self, by: str, is_complex: bool = False) -> tuple[str, ...]:
        """What backward must keep to give the gradient by `by` (inputs, or the output)."""
        grad = self.gradient(by, is_complex)
        return () if grad is None else tuple(p for p in grad.params if p != self.incoming)
