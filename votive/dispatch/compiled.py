"""The functions that calls lead to when nothing was compiled: Python text per operator, made at its first call.

Binding arguments one by one would take longer than most kernels; here Python's own calls bind them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.mode import mode
from ..ops.operator import Form, Op
from ..ops.schema import REQUIRED
from ..ops.spellings import both_spellings
from .arguments import defaults_by_name, key_expressions, letter
from .execute import execute
from .failure import FAILURES, failed
from .forms import write
from .state import state

_ELEMENTWISE = """
    try:
        plan = plans[{tensors}]
    except AttributeError:  # a number on one side
        plan = plans.get({key})
        if plan is None:
            return {general}
        try:
            storage, data = plan.compute({data_or_number})
        except FAILURES as e:
            failed(plan, e)
        wants = {rg_or_number}
    except (KeyError, TypeError):
        return {general}
    else:
        try:
            storage, data = plan.compute({data})
        except FAILURES as e:
            failed(plan, e)
        wants = {rg}
    result = new(tensor)
    result._data, result._spec, result._rg = data, plan.out, False
    if storage is not None:
        result._storage = storage
    if wants and mode.grad and {differentiable}:
        state.graph.record(plan, ({values},), result)
    return result
"""
_OTHER = """
    try:
        plan = plans[{key}]
    except (KeyError, TypeError, AttributeError):
        return {general}
    return execute(plan, ({args},))
"""


def _parameters(op: Op, extra: bool = True) -> str:
    """The parameter list; `extra`: with `out` and other spellings."""
    parts, star = [], False
    respelt = op.spellings.values()
    for i, a in enumerate(op.schema.args):
        if a.keyword_only and not star and not op.name.startswith("_"):
            parts.append("*")
            star = True
        if a.default is not REQUIRED:
            parts.append(f"{a.name}=d{i}")
        else:
            parts.append(f"{a.name}=None" if a.name in respelt else a.name)
    more = (["out=None"] if op.out else []) + [f"{other}=None" for other in op.spellings] if extra else []
    return ", ".join(parts + (["*"] if more and not star else []) + more)


def _function(op: Op, lines: list[str], body: str, **more: Any) -> Callable[..., Any]:
    scope: dict[str, Any] = {**defaults_by_name(op), "plans": op.plans, "op": op, "run": Op.run, "state": state}
    scope["__name__"] = __name__
    scope |= {"write_out": Op.write_out, "execute": execute, "mode": mode, **more}
    scope |= {"new": object.__new__, "tensor": state.tensor, "failed": failed, "FAILURES": FAILURES, "write": write}
    # Under this name failures pass through, on their way to the function that was called (see `failure.called`).
    exec(compile("\n".join(lines) + body, f"{__file__}: {op.name}", "exec"), scope)
    function: Callable[..., Any] = scope["call"]
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.doc
    return function


def _body(op: Op, general: str, at_defaults: bool = False) -> str:
    """Finds the plan and runs it, or leaves that to `general`."""
    names = list(op.schema.names)
    plain, test, full = key_expressions(op.schema.args, names)
    letters = [letter(a) for a in op.schema.args]
    values = list(op.schema.runtime_names)
    specs = [f"{n}._spec" for n in values]
    if op.kind == "pointwise":  # what is no tensor has no such key, and the general way says so
        plain, test, full = key_expressions(op.schema.args, names, any_operand=True)
    elementwise = op.kind == "pointwise" and all(k in "tos" for k in letters)
    tensors = specs[0] if len(specs) == 1 else f"({', '.join(specs)})"

    def choice(plain: str) -> str:
        return f"{plain} if {test} else {full}" if test and not at_defaults else plain

    data_or_number = ", ".join(f"getattr({n}, '_data', {n})" for n in values)
    rg_or_number = " or ".join(f"getattr({n}, '_rg', False)" for n in values)
    # The key of arguments that are not at their defaults takes numbers too.
    only_tensors = not test or at_defaults
    return (_ELEMENTWISE if elementwise else _OTHER).format(
        tensors=choice(tensors) if elementwise else "",
        key=choice(plain),
        general=general,
        args=", ".join(names),
        values=", ".join(values),
        data=", ".join(f"{n}._data" for n in values) if only_tensors else data_or_number,
        rg=" or ".join(f"{n}._rg" for n in values) if only_tensors else rg_or_number,
        data_or_number=data_or_number,
        rg_or_number=rg_or_number,
        differentiable=op.differentiable,
    )


def compile_call(op: Op) -> Callable[..., Any]:
    """The function of one operator."""
    packed = f"({''.join(n + ', ' for n in op.schema.names)})"
    lines = [f"def call({_parameters(op)}):"]
    for other, name in op.spellings.items():
        i = op.schema.names.index(name)
        absent = "None" if op.schema.args[i].default is REQUIRED else f"d{i}"
        lines += [f"    if {other} is not None:", f"        if {name} is not {absent}:"]
        lines += [f"            raise TypeError({both_spellings(op.name, name, other)!r})", f"        {name} = {other}"]
    if op.out:
        lines += ["    if out is not None:", f"        return write_out(op, {packed}, out)"]
    lines += ["    if state.unusual:", f"        return op.general_values({packed})"]
    return _function(op, lines, _body(op, f"op.general_values({packed})"))


def compile_form(form: Form) -> Callable[..., Any]:
    """The function of another form: as Python's operator, reflected, or in place."""
    op = form.of
    if not isinstance(op, Op) or op.kind != "pointwise" or form.kind == "operator in place":
        return lambda *args, **kwargs: form.general(*args, **kwargs)
    names = op.schema.names
    if form.kind == "in place":
        head = f"def call({_parameters(op, extra=False)}):"
        given = f"({', '.join(names)},)"
        body = f"\n    return form.general_values({given}) if state.unusual else write(op, {given})"
        return _function(op, [head], body, form=form)
    a, b = names[:2]
    given = f"{b}, {a}" if form.kind == "reflected" else f"{a}, {b}"
    lines = [f"def call({given}):", "    if state.unusual:", f"        return form.general({given})"]
    return _function(op, lines, _body(op, f"form.general({given})", at_defaults=True), form=form)


Op.compile = staticmethod(compile_call)
Form.compile = staticmethod(compile_form)
