"""What is said of operators by name is said in their declarations: a search for tables, and tries to fool it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import votive
from votive.ops.registry import COMPOSITES, OPS

ROOT = Path(votive.__file__).parent
# Kernels, formulas, files of other formats and torch's own calls have tables of names that operators bear too.
NAMES_OF_THEIR_OWN = {"backends", "formula", "onnx", "np", "torch"}
# A class of tensors that answers calls itself says by name which it answers, and how.
RULES = "distributed/tensor/"
# These declare operators in a loop over their names.
DECLARING = {"ops/copy.py", "ops/special_bessel.py"}
# What words mean in lists that are not of operators although many of them are names of operators too.
OTHER_MEANINGS = {
    "functions of votive.masked": "MaskedTensor amax amin argmax argmin as_masked_tensor cumprod cumsum "
    "is_masked_tensor log_softmax logaddexp logsumexp masked_tensor mean median norm normalize prod rules softmax "
    "softmin std sum var",
    "types": "bfloat16 bool cdouble cfloat char complex double float half int list long short str tuple type",
    "devices": "cpu cuda meta remote trace",
    "conversions that a tensor without a shape has": "to cpu cuda half bfloat16 float double char short int long type",
    "statistics of a value": "absmax count histogram inf l2 max mean min nan norm std zeros",
    "ways to keep a value": "keep copy cpu half stats",
    "reductions of what a request captures": "none mean max norm",
    "measures of a difference": "relative max cosine",
    "sizes of a window": "min max exact",
    "profiles of print options": "default short full",
    "activations in configuration files": "silu swish relu tanh mish gelu gelu_new gelu_pytorch_tanh gelu_fast "
    "quick_gelu relu2 sigmoid linear",
    "nonlinearities of nn.init.calculate_gain": "linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d sigmoid tanh relu selu",
    "fields of a configuration": "norm eps clip",
    "what pipelines make of scores": "sigmoid softmax none",
    "reductions of several processes": "sum avg product min max band bor bxor premul_sum",
    "addresses of calls in glass": "attention rope softmax layer_norm linear log_softmax rms_norm",
    "activations that products end with": "relu gelu gelu_tanh silu",
    "modes of bags": "sum mean max",
    "kinds of recurrent networks": "tanh relu lstm gru",
}
KNOWN = {n for key, item in [*OPS.items(), *COMPOSITES.items()] for n in (key, item.name, *item.aliases)}


def _text(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _members(node: ast.AST) -> list[ast.AST | None]:
    """The keys or members of a literal, of several that are joined, or of `dict(add=1)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.Add):
        return _members(node.left) + _members(node.right)
    if isinstance(node, ast.Starred):
        return _members(node.value)
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return [m for key, value in pairs for m in ([key] if key is not None else _members(value))]
    if isinstance(node, ast.Set | ast.List | ast.Tuple):
        return [m for e in node.elts for m in (_members(e) if isinstance(e, ast.Starred) else [e])]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return [ast.Constant(k.arg) for k in node.keywords] + [m for a in node.args for m in _members(a)]
    return []


def _compared(node: ast.If) -> Iterator[str | None]:
    """What a chain of `if` and `elif` compares with."""
    rest: ast.stmt | None = node
    while isinstance(rest, ast.If):
        for test in ast.walk(rest.test):
            if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq | ast.In):
                for side in (test.left, *test.comparators):
                    yield from (_text(m) for m in (side, *_members(side)))
        rest = rest.orelse[0] if len(rest.orelse) == 1 else None


def _words(node: ast.AST) -> list[str | None]:
    """The names that a table lists, in whatever form it is written."""
    if isinstance(node, ast.If):
        return list(_compared(node))
    if isinstance(node, ast.Match):
        patterns = (p for case in node.cases for p in ast.walk(case.pattern))
        return [_text(p.value) for p in patterns if isinstance(p, ast.MatchValue)]
    words = _text(node)
    if words is not None:
        return list(words.split()) if len(words.split()) > 4 else []
    pairs = [m.elts[0] if isinstance(m, ast.Tuple) and m.elts else m for m in _members(node)]
    return [_text(m) for m in pairs]


def tables(source: str) -> Iterator[tuple[int, list[str]]]:
    """(line, names) of what lists operators by name: three at least, and more of them than of other words."""
    others = [set(words.split()) for words in OTHER_MEANINGS.values()]
    for node in ast.walk(ast.parse(source)):
        words = [w for w in _words(node) if w is not None]
        named = [w for w in words if w in KNOWN or w.removesuffix("_") in KNOWN]
        if len(named) > 2 and len(named) > len(words) / 2 and not any(meant >= set(words) for meant in others):
            yield node.lineno, named  # type: ignore[attr-defined]


def _searched() -> list[Path]:
    modules = (p.relative_to(ROOT) for p in sorted(ROOT.rglob("*.py")))
    return [
        p
        for p in modules
        if p.parts[0].removesuffix(".py") not in NAMES_OF_THEIR_OWN
        and not p.as_posix().startswith(RULES)
        and p.as_posix() not in DECLARING
    ]


def test_what_is_said_of_operators_by_name_is_said_in_their_declarations() -> None:
    for path in _searched():
        for line, named in tables((ROOT / path).read_text()):
            raise AssertionError(f"{path}:{line} lists operators: {named}; make it an option in ops/registry.py.")


FOOLING = {
    "a dictionary": 'X = {"exp": 1, "sin": 2, "cos": 3}',
    "a set": 'X = frozenset({"exp", "sin", "cos"})',
    "words": 'X = set("exp sin cos tan tanh".split())',
    "keywords": "X = dict(exp=1, sin=2, cos=3)",
    "pairs": 'X = dict([("exp", 1), ("sin", 2), ("cos", 3)])',
    "tuples in a list": 'X = [("exp", rule), ("sin", rule), ("cos", rule)]',
    "a union": 'X = {"exp", "sin"} | {"cos"}',
    "a sum": 'X = ["exp", "sin"] + ["cos"]',
    "unpacked": 'X = {"exp": 1, **{"sin": 2, "cos": 3}}',
    "unpacked in a list": 'X = ["exp", *("sin", "cos")]',
    "in place": 'X = ("exp_", "sin_", "cos_")',
    "among others": 'X = {"exp": 1, "sin": 2, "cos": 3, "mine": 4, "yours": 5}',
    "comparisons": 'if n == "exp":\n  f()\nelif n == "sin":\n  g()\nelif "cos" == n:\n  h()',
    "membership": 'if op.name in ("exp", "sin", "cos"):\n  f()',
    "membership in turns": 'if n in ("exp", "sin"):\n  f()\nelif n == "cos" or n == "tan":\n  g()',
    "match": 'match n:\n  case "exp" | "sin":\n    f()\n  case "cos":\n    g()',
    "in a function": 'def f(n: str = "") -> bool:\n  return n in {"exp", "sin", "cos"}',
}


@pytest.mark.parametrize("source", FOOLING.values(), ids=FOOLING)
def test_a_table_is_found_in_whatever_form_it_is_written(source: str) -> None:
    assert [named for _, named in tables(source)]


@pytest.mark.parametrize(
    "source",
    [
        'X = {"exp": 1, "sin": 2}',
        'X = ["weight", "bias", "mean", "epoch", "exp", "sin"]',
        'X = {"relu", "silu", "gelu"}',
        'X = "The exponential, as in torch; see exp, sin and others."',
        "X = (exp, sin, cos)",
    ],
)
def test_other_words_are_no_table(source: str) -> None:
    assert not list(tables(source))
