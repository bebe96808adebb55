"""Contractions: einsum and tensordot. Python over views and `matmul`.

An equation becomes one tuple of labels per operand. Operands are then contracted two at a time:
shared labels that nobody needs later are summed inside a matrix product, shared labels that stay
are its batch, all others are its rows and columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from string import ascii_letters, ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any

from ..core.errors import ShapeError, fail
from ..core.layout import wrap_dim
from ..core.remembered import remembered
from .matmul import check_dtypes
from .registry import F, composite

if TYPE_CHECKING:
    from .types import Tensor

# Letters are labels; the dimensions that an ellipsis stands for have the negative labels -1 (the
# last one), -2, ... so that ellipses of different lengths align at the right, as in broadcasting.
Label = Any
Labels = tuple[Label, ...]
Ints = tuple[int, ...]
# The order of an output that is not written out: capitals come first.
_SORTED = ascii_uppercase + ascii_lowercase


def _terms(text: str, term: str) -> list[str]:
    """One subscript string as letters and "..."."""
    found: list[str] = []
    rest = term.replace(" ", "")
    while rest:
        if rest.startswith("..."):
            if "..." in found:
                fail(RuntimeError, "einsum", f"{term!r} in {text!r} has two ellipses.")
            found.append("...")
            rest = rest[3:]
        elif rest[0] in ascii_letters:
            found.append(rest[0])
            rest = rest[1:]
        else:
            fail(RuntimeError, "einsum", f"invalid subscript {rest[0]!r} in {text!r}; use letters and '...'.")
    return found


@lru_cache(maxsize=1024)
def _parse(equation: str, ranks: tuple[int, ...]) -> tuple[tuple[Labels, ...], Labels]:
    """The labels of each operand's dimensions, and those of the output."""
    left, arrow, right = equation.partition("->")
    inputs = [_terms(equation, t) for t in left.split(",")]
    if len(inputs) != len(ranks):
        fail(RuntimeError, "einsum", f"{equation!r} names {len(inputs)} operands, got {len(ranks)}.")
    longest = 0
    operands: list[Labels] = []
    for i, (term, rank) in enumerate(zip(inputs, ranks, strict=True)):
        free = rank - sum(t != "..." for t in term)
        if free < 0 or (free and "..." not in term):
            fail(
                RuntimeError,
                "einsum",
                f"operand {i} has {rank} dimensions, {equation!r} names {rank - free}"
                f"{' and no ellipsis' if free > 0 else ''}.",
            )
        longest = max(longest, free)
        operands.append(_fill(term, free))
    if arrow:
        output = _fill(_terms(equation, right), longest)
    else:
        once = [x for x in _SORTED if sum(labels.count(x) for labels in operands) == 1]
        output = (*range(-longest, 0), *once)
    for label in output:
        if isinstance(label, str) and not any(label in labels for labels in operands):
            fail(RuntimeError, "einsum", f"output subscript {label!r} is in no operand.")
        if output.count(label) > 1:
            fail(RuntimeError, "einsum", f"output subscript {label!r} appears more than once.")
    return tuple(operands), output


def _fill(term: list[str], free: int) -> Labels:
    out: list[Label] = []
    for t in term:
        out.extend(range(-free, 0) if t == "..." else [t])
    return tuple(out)


def _from_sublists(args: Sequence[Any]) -> tuple[str, list[Any]]:
    """`einsum(a, [0, 1], b, [1, 2], [0, 2])` as an equation and its operands."""
    operands, terms = list(args[0::2]), [_letters(s) for s in args[1::2]]
    output = None
    if len(args) % 2:
        output = _letters(operands.pop())
    equation = ",".join(terms)
    return (equation if output is None else f"{equation}->{output}"), operands


def _letters(sublist: Any) -> str:
    out = []
    for s in sublist:
        if s is Ellipsis:
            out.append("...")
            continue
        if not 0 <= int(s) < len(_SORTED):
            raise ValueError(f"einsum: a subscript in a list must be in [0, 52), got {s}.")
        out.append(_SORTED[int(s)])
    return "".join(out)


class _Term:
    """An operand with the label of each dimension."""

    __slots__ = ("labels", "value")

    def __init__(self, value: Tensor, labels: Labels) -> None:
        self.value, self.labels = value, labels

    def size(self, label: Label) -> int:
        return self.value._spec.shape[self.labels.index(label)]

    def drop(self, labels: Sequence[Label]) -> _Term:
        """Without dimensions of size 1."""
        keep = [x for x in self.labels if x not in labels]
        shape = tuple(self.size(x) for x in keep)
        return _Term(F.reshape(self.value, shape), tuple(keep)) if labels else self

    def sum(self, labels: Sequence[Label]) -> _Term:
        """Summed over some dimensions."""
        if not labels:
            return self
        dims = [self.labels.index(x) for x in labels]
        return _Term(F.sum(self.value, dims), tuple(x for x in self.labels if x not in labels))

    def order(self, labels: Sequence[Label]) -> Tensor:
        """The value with its dimensions in another order."""
        dims = tuple(self.labels.index(x) for x in labels)
        return self.value if dims == tuple(range(len(dims))) else F.permute(self.value, dims)

    def matrices(self, *groups: Sequence[Label]) -> Tensor:
        """The value with groups of dimensions in another order, each group made one dimension."""
        shape = tuple(math.prod(self.size(x) for x in group) for group in groups)
        return F.reshape(self.order([x for group in groups for x in group]), shape)


def _diagonals(index: int, value: Tensor, labels: Labels) -> _Term:
    """A label that an operand repeats means the diagonal of those dimensions."""
    term = _Term(value, labels)
    for label in dict.fromkeys(labels):
        while term.labels.count(label) > 1:
            first = term.labels.index(label)
            second = term.labels.index(label, first + 1)
            shape = term.value._spec.shape
            if shape[first] != shape[second]:
                fail(
                    ShapeError,
                    "einsum",
                    f"subscript {label!r} is repeated for operand {index}, but the sizes differ, "
                    f"{shape[first]} != {shape[second]}.",
                )
            rest = tuple(x for i, x in enumerate(term.labels) if i not in (first, second))
            term = _Term(F.diagonal(term.value, 0, first, second), (*rest, label))
    return term


def _sizes(terms: Sequence[_Term]) -> dict[Label, int]:
    sizes: dict[Label, int] = {}
    for i, term in enumerate(terms):
        for label in term.labels:
            size, seen = term.size(label), sizes.get(label, 1)
            if 1 not in (size, seen) and size != seen:
                what = f"subscript {label!r}" if isinstance(label, str) else "an ellipsis dimension"
                fail(
                    ShapeError,
                    "einsum",
                    f"{what} has size {size} for operand {i} and {seen} before; only 1 broadcasts.",
                )
            sizes[label] = size if seen == 1 else seen
    return sizes


def _contract(a: _Term, b: _Term, needed: set[Label]) -> _Term:
    """Two operands into one that has only labels somebody needs."""
    shared = [x for x in a.labels if x in b.labels]
    # A size of 1 broadcasts: then the label belongs to the other operand alone.
    a_ones = [x for x in shared if a.size(x) == 1 != b.size(x)]
    b_ones = [x for x in shared if b.size(x) == 1 != a.size(x)]
    a, b = a.drop(a_ones), b.drop(b_ones)
    a = a.sum([x for x in a.labels if x not in b.labels and x not in needed])
    b = b.sum([x for x in b.labels if x not in a.labels and x not in needed])
    batch = [x for x in a.labels if x in b.labels and x in needed]
    inner = [x for x in a.labels if x in b.labels and x not in needed]
    rows = [x for x in a.labels if x not in b.labels]
    columns = [x for x in b.labels if x not in a.labels]
    labels = (*batch, *rows, *columns)
    if not inner:
        left = a.order([*batch, *rows])
        shape = left._spec.shape
        left = F.reshape(left, (*shape, *[1] * len(columns)))
        right = b.order([*batch, *columns])
        shape = right._spec.shape
        right = F.reshape(right, (*shape[: len(batch)], *[1] * len(rows), *shape[len(batch) :]))
        return _Term(left * right, labels)
    groups = [batch] if batch else []
    product = F.matmul(a.matrices(*groups, rows, inner), b.matrices(*groups, inner, columns))
    shape = tuple((b if x in columns else a).size(x) for x in labels)
    return _Term(F.reshape(product, shape), labels)


@remembered(1024)
def _next_pair(terms: tuple[Labels, ...], output: Labels, sizes: tuple[tuple[Label, int], ...]) -> tuple[int, int]:
    """The two operands whose contraction leaves least behind, then costs least."""
    size = dict(sizes)

    def price(i: int, j: int) -> tuple[int, int, int]:
        others = {x for k, t in enumerate(terms) if k not in (i, j) for x in t} | set(output)
        both = {*terms[i], *terms[j]}
        made = math.prod(size[x] for x in both & others)
        gone = sum(math.prod(size[x] for x in terms[k]) for k in (i, j))
        return made - gone, math.prod(size[x] for x in both), i

    pairs = [(i, j) for i in range(len(terms)) for j in range(i + 1, len(terms))]
    return min(pairs, key=lambda pair: price(*pair))


# (order of dimensions, shape) of both operands as matrices, shape of the result and order of its dimensions.
_Product = tuple[tuple[Ints, Ints], tuple[Ints, Ints], Ints, Ints]


@remembered(4096)
def _one_product(a: Labels, b: Labels, output: Labels, a_shape: Ints, b_shape: Ints) -> _Product | None:
    """How two operands are one matrix product; None where a label is repeated, broadcast or summed alone."""
    sizes: dict[Label, int] = {}
    for label, size in zip((*a, *b), (*a_shape, *b_shape), strict=True):
        if sizes.setdefault(label, size) != size:
            return None
    shared = [x for x in a if x in b]
    batch, inner = [x for x in shared if x in output], [x for x in shared if x not in output]
    rows, columns = [x for x in a if x not in b], [x for x in b if x not in a]
    alone = any(x not in output for x in (*rows, *columns))
    if not inner or alone or len(set(a)) < len(a) or len(set(b)) < len(b):
        return None

    def matrices(labels: Labels, *groups: list[Label]) -> tuple[Ints, Ints]:
        order = tuple(labels.index(x) for group in groups for x in group)
        return order, tuple(math.prod(sizes[x] for x in group) for group in groups)

    head = [batch] if batch else []
    made = [*batch, *rows, *columns]
    shape, order = tuple(sizes[x] for x in made), tuple(made.index(x) for x in output)
    return matrices(a, *head, rows, inner), matrices(b, *head, inner, columns), shape, order


def _arranged(x: Tensor, order: Ints, shape: Ints | None = None) -> Tensor:
    if order != tuple(range(len(order))):
        x = F.permute(x, order)
    return x if shape is None or x._spec.shape == shape else F.reshape(x, shape)


@composite(method=False, autocast={"cuda": "lower"})
def einsum(*args: Any) -> Tensor:
    """Sum of products over named dimensions; a name that an operand repeats is a diagonal.

    >>> a = votive.tensor([[1, 2], [3, 4]])
    >>> votive.einsum("ij,jk->ik", a, a)
    tensor([[ 7, 10],
            [15, 22]])
    >>> votive.einsum("ii", a)
    tensor(5)
    """
    if len(args) < 2:
        raise ValueError("einsum: give an equation and operands, or operands and their subscripts.")
    if hasattr(args[0], "_spec"):
        equation, operands = _from_sublists(args)
    else:
        equation, operands = args[0], list(args[1:])
        if not isinstance(equation, str):
            raise TypeError(f"einsum: equation must be a str, got {type(equation).__name__}.")
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    labels, output = _parse(equation, tuple(x.ndim for x in operands))
    if len(operands) == 2:
        left, right = operands
        product = _one_product(*labels, output, left._spec.shape, right._spec.shape)
        if product is not None:
            rows, columns, shape, order = product
            made = F.matmul(_arranged(left, *rows), _arranged(right, *columns))
            return _arranged(made if made._spec.shape == shape else F.reshape(made, shape), order)
    terms = [_diagonals(i, x, labels[i]) for i, x in enumerate(operands)]
    sizes = _sizes(terms)
    while len(terms) > 1:
        i, j = 0, 1
        if len(terms) > 2:
            i, j = _next_pair(tuple(t.labels for t in terms), output, tuple(sizes.items()))
        b, a = terms.pop(j), terms.pop(i)
        needed = {x for t in terms for x in t.labels} | set(output)
        terms.append(_contract(a, b, needed))
    (term,) = terms
    term = term.sum([x for x in term.labels if x not in output])
    return term.order(output)


def _dim_lists(dims: Any, a: Tensor, b: Tensor) -> tuple[list[int], list[int]]:
    if hasattr(dims, "_spec"):
        dims = dims.tolist()
    if isinstance(dims, (list, tuple)):
        if any(not isinstance(d, (list, tuple)) for d in dims):
            raise TypeError(f"tensordot: dims must be an int or two lists of ints, got {dims}.")
        first, second = dims
    elif isinstance(dims, int) and 0 <= dims <= min(a.ndim, b.ndim):
        first, second = range(-dims, 0), range(dims)
    else:
        fail(
            RuntimeError,
            "tensordot",
            f"dims must be two lists, or an int that is not negative and at most the number of dimensions, got {dims}.",
        )
    if len(first) != len(second):
        fail(RuntimeError, "tensordot", f"both lists must have the same length, got {dims}.")
    found = [[wrap_dim("tensordot", d, x.ndim) for d in f] for x, f in ((a, first), (b, second))]
    if any(len(set(f)) != len(f) for f in found):
        fail(RuntimeError, "tensordot", f"a dimension appears twice in dims={dims}.")
    return found[0], found[1]


@composite(method=False, out=True, autocast={"cuda": "widest"})
def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Products summed over dimensions: the last `dims` of a with the first of b, or two lists.

    >>> votive.tensordot(votive.ones(2, 3), votive.ones(3, 4), dims=1).shape
    votive.Size([2, 4])
    """
    check_dtypes("tensordot", a._spec, b._spec)
    first, second = _dim_lists(dims, a, b)
    for i, j in zip(first, second, strict=True):
        n, m = a.shape[i], b.shape[j]
        if n != m and 1 not in (n, m):
            fail(ShapeError, "tensordot", f"summed sizes must match, got {n} in dim {i} and {m} in dim {j}.")
        if n == 1 != m:
            b = F.sum(b, [j], True, dtype=b.dtype)
        elif m == 1 != n:
            a = F.sum(a, [i], True, dtype=a.dtype)
    summed = [f"s{k}" for k in range(len(first))]
    a_labels, b_labels = [f"a{k}" for k in range(a.ndim)], [f"b{k}" for k in range(b.ndim)]
    for i, j, label in zip(first, second, summed, strict=True):
        a_labels[i] = b_labels[j] = label
    kept = [x for x in (*a_labels, *b_labels) if x not in summed]
    x, y = _Term(a, tuple(a_labels)), _Term(b, tuple(b_labels))
    return _contract(x, y, set(kept)).order(kept)
