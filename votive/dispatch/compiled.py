"""The functions that calls lead to when nothing was compiled: Python text per operator, made at its first call.

Binding arguments one by one would take longer than most kernels; here Python's own calls bind them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.mode import mode
from ..ops.operator import Op
from ..ops.schema import REQUIRED
from .execute import execute
from .failure import FAILURES, failed
from .keys import defaults_by_name, key_expressions, letter
from .state import state


def _parameters(op: Op) -> str:
    parts, star = [], False
    respelt = op.spellings.values()
    for i, a in enumerate(op.schema.args):
        if a.keyword_only and not star:
            parts.append("*")
            star = True
        if a.default is not REQUIRED:
            parts.append(f"{a.name}=d{i}")
        else:
            parts.append(f"{a.name}=None" if a.name in respelt else a.name)
    extra = (["out=None"] if op.out else []) + [f"{other}=None" for other in op.spellings]
    return ", ".join(parts + (["*"] if extra and not star else []) + extra)


_ELEMENTWISE = """
    try:
        plan = plans[{key}]
        storage, data = plan.compute({data})
    except (KeyError, TypeError, AttributeError):
        return run(op, ({args},))
    except FAILURES as e:
        failed(plan, e)
    result = new(tensor)
    result._data = data  # before _storage, see dispatch.state.make
    if storage is not None:
        result._storage = storage
    result._spec = plan.out
    if ({rg}) and mode.grad and {differentiable}:
        state.graph.record(plan, ({values},), result)
    return result
"""
_GENERAL = """
    try:
        plan = plans[{key}]
    except (KeyError, TypeError, AttributeError):
        return run(op, ({args},))
    return execute(plan, ({args},))
"""


def compile_call(op: Op) -> Callable[..., Any]:
    """The function of one operator: finds the plan and runs it, or leaves that to the general way."""
    names = [a.name for a in op.schema.args]
    plain, test, full = key_expressions(op.schema.args, names)
    letters = [letter(a) for a in op.schema.args]
    values = [n for n, k in zip(names, letters, strict=True) if k != "s"]
    tensors = op.kind == "pointwise" and all(k in "tos" for k in letters)
    if tensors:
        # Where a number stands for a tensor, its missing attribute leads to the general way.
        parts = [f"{n}._spec" for n in values]
        plain = parts[0] if len(parts) == 1 else f"({', '.join(parts)})"
    key = f"{plain} if {test} else {full}" if test else plain
    body = (_ELEMENTWISE if tensors else _GENERAL).format(
        key=key,
        args=", ".join(names),
        values=", ".join(values),
        data=", ".join(f"{n}._data" for n in values),
        rg=" or ".join(f"{n}._rg" for n in values),
        differentiable=op.differentiable,
    )
    lines = [f"def call({_parameters(op)}):"]
    for other, name in op.spellings.items():
        lines += [f"    if {other} is not None:", f"        {name} = {other}"]
    if op.out:
        lines += ["    if out is not None:", f"        return write_out(op, ({', '.join(names)},), out)"]
    lines += ["    if state.unusual:", f"        return run(op, ({', '.join(names)},))"]
    scope: dict[str, Any] = {
        **defaults_by_name(op), "plans": op.plans, "op": op, "run": Op.run, "write_out": Op.write_out,
        "execute": execute, "state": state, "mode": mode, "new": object.__new__, "tensor": state.tensor,
        "failed": failed, "FAILURES": FAILURES,
    }  # fmt: skip
    exec("\n".join(lines) + body, scope)
    function: Callable[..., Any] = scope["call"]
    function.__name__ = function.__qualname__ = op.name
    return function


Op.compile = staticmethod(compile_call)
