"""Renders templates that are not trusted: no attribute tricks, bounded time, bounded memory.

Jinja's sandbox keeps templates away from Python's insides. Here, besides, every loop turn, call,
operator and filter is counted, and everything they make is charged against a budget. Knows jinja;
knows no tokenizer.
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from datetime import datetime
from functools import lru_cache
from typing import Any

MAX_SOURCE = 1_000_000  # characters of a template
MAX_VALUE = 1 << 24  # characters of one string
MAX_ITEMS = 1 << 20  # items of one list
MAX_WEIGHT = 1 << 27  # characters of a list written out, 64 for each item
MAX_TOTAL = 1 << 28  # characters and items made in one rendering
STEP = 256  # what an operation costs by itself: there are at most a million
MAX_SECONDS = 5.0


class TemplateError(ValueError):
    """A chat template cannot be compiled or rendered, or asks for more than it may."""


class Budget:
    """What one rendering has used."""

    def __init__(self) -> None:
        self.total = 0
        self.deadline = time.monotonic() + MAX_SECONDS

    def charge(self, size: int) -> None:
        self.total += size + STEP
        if self.total > MAX_TOTAL:
            raise TemplateError("the chat template does or writes more than a chat can need.")
        if time.monotonic() > self.deadline:
            raise TemplateError(f"the chat template runs longer than {MAX_SECONDS:g} seconds.")


_budget: ContextVar[Budget] = ContextVar("budget")
# What is put around the text of `{% generation %}` while somebody asks where it is.
_mark: ContextVar[str | None] = ContextVar("mark", default=None)


def _expect(size: int, limit: int = MAX_VALUE) -> None:
    if size > limit:
        raise TemplateError(f"the chat template makes a value of size {size:,}, which is too large.")


_SIZED = (str, list, tuple, dict, set)


def _weigh(value: Any) -> None:
    """Refuse a structure that is too large when written out.

    A list in itself small may hold others many times over; to print or compare it would then take
    forever.
    """
    weight = 0
    stack = [value]
    while stack:
        item = stack.pop()
        weight += len(item) * (1 if isinstance(item, str) else 64)
        if weight > MAX_WEIGHT:
            raise TemplateError("the chat template makes a list that is too large.")
        if isinstance(item, dict):
            stack.extend(v for v in (*item.keys(), *item.values()) if isinstance(v, _SIZED))
        elif not isinstance(item, str):
            stack.extend(v for v in item if isinstance(v, _SIZED))


def _made(value: object) -> Any:
    """A value that the template has made, charged."""
    if isinstance(value, str):
        _expect(len(value))
        _budget.get().charge(len(value))
    elif isinstance(value, (list, tuple, dict, set)):
        _expect(len(value), MAX_ITEMS)
        _weigh(value)
        # An item is a pointer of eight bytes.
        _budget.get().charge(8 * len(value))
    else:
        _budget.get().charge(0)
    return value


def _bits(value: object) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _check_width(text: str) -> None:
    """Refuse formats that pad to widths of six digits and more, or take the width from a value."""
    if re.search(r"\d{6,}|%[^a-zA-Z]*\*|\{[^{}]*\{", text):
        raise TemplateError(f"the chat template formats with an unreasonable width: {text!r:.60}.")


def _check_operator(operator: str, left: object, right: object) -> None:
    if operator == "**":
        _expect(_bits(left) * (right if isinstance(right, int) else 1), 1 << 16)
    elif operator == "*":
        for many, times in ((left, right), (right, left)):
            if isinstance(many, (str, list, tuple)) and isinstance(times, int):
                _expect(len(many) * times, MAX_VALUE if isinstance(many, str) else MAX_ITEMS)
        _expect(_bits(left) + _bits(right), 1 << 16)
    elif operator == "+" and isinstance(left, (str, list, tuple)) and hasattr(right, "__len__"):
        _expect(len(left) + len(right), MAX_VALUE if isinstance(left, str) else MAX_ITEMS)
    elif operator == "%" and isinstance(left, str):
        _check_width(left)


def _check_text_call(name: str, text: str, args: tuple[Any, ...]) -> None:
    """Sizes of what methods and filters of text would make, before they make it."""
    if name in ("format", "format_map"):
        _check_width(text)
    elif name == "replace" and len(args) >= 2:
        old, new = str(args[0]), str(args[1])
        _expect(len(text) + text.count(old) * len(new))
    elif name == "expandtabs":
        _expect(len(text) + text.count("\t") * int(args[0] if args else 8))
    elif name == "indent":
        width = args[0] if args else 4
        step = len(width) if isinstance(width, str) else int(width)
        _expect(len(text) + (text.count("\n") + 1) * step)
    elif name in ("ljust", "rjust", "center", "zfill") and args:
        _expect(int(args[0]))


def _check_join(separator: str, items: list[Any]) -> None:
    _expect(sum(len(str(i)) for i in items) + len(separator) * len(items))


# Not needed for chats, and each is slow or large in some case.
_REMOVED_FILTERS = ("pprint", "striptags", "urlize", "wordwrap", "xmlattr")


def _guarded(name: str, fn: Callable[..., Any]) -> Any:
    """A filter that charges what it makes."""
    from functools import wraps

    @wraps(fn)  # keeps the marks by which jinja passes the environment or context
    def guarded(*args: Any, **kwargs: Any) -> Any:
        passes = hasattr(fn, "jinja_pass_arg")
        rest = list(args[1:] if passes else args)
        value: Any = rest[0] if rest else None
        options = (*rest[1:], *kwargs.values())
        if name == "join" and not isinstance(value, str):
            rest[0] = value = list(value)
            _expect(len(value), MAX_ITEMS)
            separator = rest[1] if len(rest) > 1 else kwargs.get("d", "")
            if len(rest) < 3 and kwargs.get("attribute") is None:
                _check_join(str(separator), value)
            else:
                _expect(len(str(separator)) * len(value))
        elif name == "sum" and any(isinstance(o, (list, tuple)) for o in options):
            raise TemplateError("the chat template sums up lists; '+' joins two.")
        elif name == "tojson":
            if any(isinstance(o, int) and o > 64 for o in options):
                raise TemplateError("the chat template indents JSON by more than 64.")
        elif name in ("batch", "slice"):
            _expect(max((o for o in options if isinstance(o, int)), default=0), MAX_ITEMS)
        elif isinstance(value, str):
            _check_text_call(name, value, options)
        return _made(fn(*args[:1], *rest, **kwargs) if passes else fn(*rest, **kwargs))

    return guarded


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # Not jinja's own, which escapes what means something in HTML.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> None:
    raise TemplateError(str(message))


def _strftime_now(form: str) -> str:
    if len(form) > 100:
        raise TemplateError("the chat template formats the time with more than 100 characters.")
    return datetime.now().strftime(form)


class _Dict:
    """`dict` for templates; the type itself would lead to Python's insides."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        return dict(*args, **kwargs)

    def fromkeys(self, keys: Iterable[object], value: object = None) -> dict[Any, Any]:
        return dict.fromkeys(keys, value)


@lru_cache(maxsize=1)
def _environment() -> Any:
    from jinja2 import nodes
    from jinja2.exceptions import SecurityError
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import Namespace

    class Generation(Extension):
        """`{% generation %}` marks what the model says; the text stays as it is."""

        tags = {"generation"}

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            said = self.call_method("_said")
            return nodes.CallBlock(said, [], [], body).set_lineno(line)

        def _said(self, caller: Callable[[], object]) -> str:
            text, mark = str(caller()), _mark.get()
            return text if mark is None else f"{mark}{text}{mark}"

    class Names(Namespace):
        """A namespace without names of Python's own."""

        def __init__(*args: Any, **kwargs: Any) -> None:
            self, rest = args[0], args[1:]
            attrs = dict(*rest, **kwargs)
            for name in attrs:
                Names._check(name)
            Namespace.__init__(self, attrs)

        def __setitem__(self, name: str, value: object) -> None:
            Names._check(name)
            Namespace.__setitem__(self, name, value)

        def __repr__(self) -> str:
            return "<Namespace>"  # what is in it may hold it in turn

        @staticmethod
        def _check(name: object) -> None:
            if isinstance(name, str) and name.startswith("_"):
                raise SecurityError(f"a namespace has no names that begin with '_': {name!r}.")

    class Environment(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset(["+", "-", "*", "/", "//", "%", "**"])

        def call_binop(self, context: Any, operator: str, left: object, right: object) -> Any:
            _check_operator(operator, left, right)
            return _made(super().call_binop(context, operator, left, right))

        def call(__self, __context: Any, __obj: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            # Jinja puts a function of its own around `format`.
            method = getattr(__obj, "__wrapped__", __obj)
            owner, name = getattr(method, "__self__", None), getattr(method, "__name__", "")
            if isinstance(owner, str):
                if name == "join" and args:
                    args = (list(args[0]),)
                    _check_join(owner, args[0])
                else:
                    _check_text_call(name, owner, (*args, *kwargs.values()))
            return _made(super().call(__context, __obj, *args, **kwargs))

        def getitem(self, obj: Any, argument: object) -> Any:
            value = super().getitem(obj, argument)
            return _made(value) if isinstance(argument, slice) else value

        def tick(self, size: int) -> str:
            _budget.get().charge(size)
            return ""

        def literal(self, value: object) -> Any:
            return _made(value)

        def concat_values(self, *values: object) -> str:
            texts = [str(v) for v in values]
            _expect(sum(map(len, texts)))
            return "".join(texts)

    def shown(value: object) -> Any:
        _made(value if isinstance(value, str) else str(value))
        return value

    env = Environment(
        trim_blocks=True, lstrip_blocks=True, optimized=False, finalize=shown, extensions=[Generation, loopcontrols]
    )
    env.filters["tojson"] = _tojson
    for name in _REMOVED_FILTERS:
        env.filters.pop(name, None)
    for name, fn in list(env.filters.items()):
        env.filters[name] = _guarded(name, fn)
    env.globals.pop("lipsum", None)
    env.globals |= {
        "raise_exception": _raise_exception,
        "strftime_now": _strftime_now,
        "dict": _Dict(),
        "namespace": Names,
    }
    return env


def _count_turns(env: Any, tree: Any) -> Any:
    """Put a charge at the head of every loop and macro, and around every `~` and literal list."""
    from jinja2 import nodes
    from jinja2.visitor import NodeTransformer

    def charge(body: list[Any], line: int) -> list[Any]:
        # Text inside is added at every turn without any other count.
        size = sum(len(d.data) for n in body for d in _data(n))
        call = nodes.Call(nodes.EnvironmentAttribute("tick"), [nodes.Const(size)], [], None, None, lineno=line)
        return [nodes.ExprStmt(call, lineno=line), *body]

    def _data(node: Any) -> Any:
        return [node] if isinstance(node, nodes.TemplateData) else node.find_all(nodes.TemplateData)

    class Count(NodeTransformer):
        def visit_For(self, node: Any) -> Any:
            self.generic_visit(node)
            node.body = charge(node.body, node.lineno)
            return node

        visit_Macro = visit_CallBlock = visit_For

        def visit_Concat(self, node: Any) -> Any:
            self.generic_visit(node)
            return nodes.Call(
                nodes.EnvironmentAttribute("concat_values"), node.nodes, [], None, None, lineno=node.lineno
            )

        def visit_List(self, node: Any) -> Any:
            self.generic_visit(node)
            if getattr(node, "ctx", "load") != "load":
                return node
            return nodes.Call(nodes.EnvironmentAttribute("literal"), [node], [], None, None, lineno=node.lineno)

        visit_Tuple = visit_Dict = visit_List

    return Count().visit(tree)


@lru_cache(maxsize=64)
def _compiled(source: str) -> Any:
    if len(source) > MAX_SOURCE:
        raise TemplateError(f"the chat template has {len(source):,} characters, more than {MAX_SOURCE:,}.")
    env = _environment()
    tree = _count_turns(env, env.parse(source))
    code = env.compile(tree)
    return env.template_class.from_code(env, code, env.make_globals(None))


def render_marked(source: str, variables: Mapping[str, Any]) -> tuple[str, list[tuple[int, int]]]:
    """The text of a template, and from where to where it says `{% generation %}`.

    >>> from votive.text.sandbox import render_marked
    >>> render_marked("ab{% generation %}cd{% endgeneration %}e", {})
    ('abcde', [(2, 4)])
    """
    # Nobody can write what nobody knows.
    mark = f"\x00{secrets.token_hex(8)}\x00"
    token = _mark.set(mark)
    try:
        parts = render(source, variables).split(mark)
    finally:
        _mark.reset(token)
    ends = [0]
    for part in parts:
        ends.append(ends[-1] + len(part))
    # Every other part is inside.
    spans = [(ends[i], ends[i + 1]) for i in range(1, len(parts), 2)]
    return "".join(parts), spans


def render(source: str, variables: Mapping[str, Any]) -> str:
    """The text of a template; any failure is a `TemplateError` that says what the template did."""
    import jinja2

    token = _budget.set(Budget())
    try:
        return _compiled(source).render(**variables)
    except TemplateError as e:
        raise TemplateError(f"apply_chat_template: {e}") from None
    except jinja2.TemplateSyntaxError as e:
        raise TemplateError(f"apply_chat_template: line {e.lineno} of the template: {e}") from e
    except jinja2.TemplateError as e:
        raise TemplateError(f"apply_chat_template: {e}") from e
    except (RecursionError, MemoryError) as e:
        raise TemplateError("apply_chat_template: the template nests or repeats too deeply.") from e
    except Exception as e:
        raise TemplateError(f"apply_chat_template: the template failed with {type(e).__name__}: {e}") from e
    finally:
        _budget.reset(token)
