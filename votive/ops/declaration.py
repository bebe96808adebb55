"""What a declaration says of an operator, and what a gradient rule is given. Knows no operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Union

from ..core.layout import Shape, Spec
from .autocast_policy import Policies

if TYPE_CHECKING:
    from .operator import Op


class Context(Protocol):
    """What a gradient rule is given: the recorded call, with its arguments and results as attributes.

    `c.input` and `c.dim` are arguments by their names in the schema, `c.out` is the result, or `c.out0`, `c.out1`.
    """

    def __getattr__(self, name: str) -> Any: ...

    def spec(self, name: str) -> Spec:
        """Shape and dtype of an argument, whether or not its value was kept."""

    def shape(self, name: str) -> Shape:
        """The shape of an argument."""

    def needs(self, name: str) -> bool:
        """Whether this argument's gradient is wanted."""


# What a call with plain arguments comes down to: an operator and its arguments, where the operator may be None for
# "the tensor itself"; None when the function has to run. Calls are known by the spec of a tensor, so no answer may
# depend on its values.
Resolved = Union["tuple[Op | None, tuple[Any, ...]]", None]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Declaration:
    """Everything that a declaration may say of an operator beside its schema and rules: the keyword options of
    `pointwise`, `structured`, `view` and `composite`. No other table speaks of operators by name.
    """

    # Where it appears. Given as `hidden=True`, and for names that begin with an underscore: nowhere.
    namespaces: tuple[str, ...] = ("",)  # as a function: "" is votive itself, "linalg", "nn.functional"
    method: bool = True  # as a method of Tensor
    aliases: tuple[str, ...] = ()  # other names, in the same places
    also: tuple[str, ...] = ()  # other places, as paths: "special.expit"
    operator: str = ""  # Python's operator: "add" makes `+`, where it has them also reflected and in place

    # Its in-place form, and `out=`.
    inplace: bool = False  # has one, named with an underscore
    inplace_function: bool = False  # that is a function too, not only a method
    inplace_casts: bool = False  # there, a result of any dtype is cast to the tensor's
    out: bool = True
    out_exact_dtype: bool = False  # `out` must have just the dtype of the result
    out_no_overlap: bool = False  # `out` must not share memory with an input: it is read at places given by data

    # Its results.
    n_out: int = 1
    result: str | None = None  # the named tuple that holds them
    reshapes: bool = False  # the tensor itself gets another shape
    returns_view: bool = False  # the result is, or may be, a view: which plan its arguments led to is remembered
    looks: bool = False  # a composite of views: its results share memory with the argument wherever they can
    indexes: bool = False  # it is x[index]

    # How it is called.
    autocast: Policies | None = None
    mutates: tuple[str, ...] = ()  # arguments that the kernel writes into
    across: bool = False  # its tensors may be on different devices
    own_process: bool = False  # moves values between devices, or takes objects of the program: no server runs it
    rounds_numbers: bool = False  # a number beside a half tensor is rounded first, as in torch, not taken in float32
    shortcut: Callable[..., Resolved] | None = None  # a composite: what it comes down to

    typical: tuple[tuple[Any, ...], ...] = ()  # static arguments that are common in programs, for kernels made ahead

    # How elements of its arguments get into its results, for those who follow values.
    elementwise: bool = False  # each element counts for one element, as in every formula
    moves: tuple[int, ...] = ()  # elements are only moved: those of the arguments at these positions
    skips_elements: bool = False  # some elements of an argument may count for nothing
    rowwise: bool = False  # computes row by row, along the dimension that is its second argument
    overwrites: bool = False  # of its first argument only shape and dtype count
    gate: bool = False  # an activation whose units are off where its first argument is not positive

    # How it carries one more dimension in front, of examples (`vmap`), where it has no formula: "same" as it is; all
    # dimensions "align", or those in front of matrices "broadcast"; its "dims" are then one further behind; "fold" them
    # into its own first dimension. None: one by one.
    batch: str | None = None

    # How its results lie on a mesh of ranks when its arguments do, which are cut along dimensions, whole, or parts of a
    # sum: the word of a rule in `distributed/tensor`. Formulas are elementwise; of others without a word, all is whole.
    placement: str = ""

    # Its gradient.
    differentiable: bool = True
    multilinear: tuple[str, ...] = ()  # linear in each of these arguments, where a bias is absent: so are tangents
    partial: bool = False  # its gradient rule takes None for results that nobody used


# To programs operators are functions: what walks through the fields of dataclasses shall not walk into these.
delattr(Declaration, "__dataclass_fields__")


def places(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options of a declaration, in which what is hidden appears nowhere."""
    if options.pop("hidden", name.startswith("_")):
        options.update(namespaces=(), method=False, inplace=False, out=False)
    return options
