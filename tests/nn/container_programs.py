"""Programs with containers that must say the same with votive and with torch."""

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

from .module_programs import make
from .transcript import Said

PROGRAMS: list[Any] = []


def program(fn: Any) -> Any:
    PROGRAMS.append(fn)
    return fn


def lins(lib: Any, *sizes: int) -> list[Any]:
    Lin = make(lib).Lin
    return [Lin(n, n) for n in sizes]


@program
def sequential_as_a_list(lib: Any, say: Said) -> None:
    nn = lib.nn
    Lin = make(lib).Lin
    s = nn.Sequential(*lins(lib, 2, 2, 2))
    say(s, len(s), s[0] is s[-3], s[1:], [type(m).__name__ for m in s])
    say(s(lib.ones(1, 2)))
    for bad in (3, -4, "a", 1.5):
        say.attempt(f"index {bad}", lambda b=bad: s[b])
    s[1] = Lin(2, 5)
    say(s)
    say.attempt("set beyond", lambda: s.__setitem__(7, Lin(1, 1)))
    say.attempt("set number", lambda: s.__setitem__(0, 3))
    del s[0]
    say(s, list(s.state_dict()))
    s.append(Lin(1, 1)).extend([Lin(2, 2), Lin(3, 3)])
    say(s)
    say(s.insert(0, Lin(9, 9)), s.insert(-1, Lin(8, 8)))
    for bad_index in (99, -99):
        say.attempt("insert", lambda b=bad_index: s.insert(b, Lin(1, 1)))
    say.attempt("insert number", lambda: s.insert(0, 3))
    say.attempt("append number", lambda: s.append(3))
    say(s.pop(0), s.pop(-1), len(s), s.pop(slice(0, 2)), s)
    del s[1:]
    say(s)
    say(s + nn.Sequential(Lin(7, 7)), s * 2, 2 * s)
    say.attempt("add", lambda: s + [Lin(1, 1)])
    say.attempt("iadd", lambda: s.__iadd__([Lin(1, 1)]))
    say.attempt("times", lambda: s * 0)
    say.attempt("times float", lambda: s * 1.5)
    t = s
    s += nn.Sequential(Lin(6, 6))
    say(s is t, s)
    s *= 2
    say(s is t, s, len(list(s.parameters())))
    say(nn.Sequential(), nn.Sequential()(3), len(nn.Sequential()))


@program
def sequential_with_names(lib: Any, say: Said) -> None:
    nn = lib.nn
    Lin = make(lib).Lin
    s = nn.Sequential(OrderedDict(a=Lin(1, 2), b=Lin(2, 3), c=Lin(3, 4)))
    say(s, s.b, s[1] is s.b, s[:2], list(s.state_dict()))
    s[1] = Lin(2, 3)
    say(s)
    s.append(Lin(4, 4))
    say(s)
    del s[0]
    say(s)
    say.attempt("plain dict", lambda: nn.Sequential({"a": Lin(1, 1)}))
    say.attempt("list", lambda: nn.Sequential([Lin(1, 1)]))
    say.attempt("none", lambda: len(nn.Sequential(None, Lin(1, 1))))

    class Mine(nn.Sequential):
        pass

    say(Mine(Lin(1, 1), Lin(1, 1))[:1], type(Mine() + Mine()).__name__, copy.deepcopy(s))


@program
def older_container(lib: Any, say: Said) -> None:
    say(lib.nn.Container(a=lins(lib, 2)[0], b=None))
    say.attempt("number", lambda: lib.nn.Container(a=3))


@program
def module_list(lib: Any, say: Said) -> None:
    nn = lib.nn
    Lin = make(lib).Lin
    m = nn.ModuleList(lins(lib, 2, 2, 3, 3, 3, 4))
    say(m, len(m), m[-1], m[1:3], m[::2], list(m.state_dict()))
    say(nn.ModuleList(), nn.ModuleList([nn.ModuleList(lins(lib, 1, 1))]))
    say.attempt("index", lambda: m[99])
    say.attempt("str", lambda: m["0"])
    m[0] = Lin(9, 9)
    m.insert(1, Lin(8, 8))
    m.insert(len(m), Lin(7, 7))
    say(m)
    del m[0]
    del m[1:3]
    say(m, list(m._modules))
    m += lins(lib, 5)
    m.extend(nn.ModuleList(lins(lib, 6)))
    say(m, m.append(Lin(1, 1)) is m, len(m))
    say(m + lins(lib, 1), type(m + []).__name__)
    say(m.pop(-1), m.pop(0), len(m))
    say.attempt("extend", lambda: m.extend(3))
    say.attempt("append", lambda: m.append(3))
    say.attempt("call", lambda: m(1))
    say(m[0] in m, [x is y for x, y in zip(m, reversed(m), strict=True)])
    say.attempt("none", lambda: repr(nn.ModuleList([None])))


@program
def module_dict(lib: Any, say: Said) -> None:
    nn = lib.nn
    a, b, c = lins(lib, 1, 2, 3)
    d = nn.ModuleDict({"b": b, "a": a})
    say(d, list(d), len(d), "a" in d, "z" in d, d["a"], list(d.keys()), list(d.items()))
    d["c"] = c
    d.update([("d", a), ["e", b]])
    d.update(nn.ModuleDict({"f": c}))
    d.update(OrderedDict(g=a))
    say(d, list(d.values()), list(d.state_dict()))
    say(d.pop("a"), list(d))
    del d["b"]
    say(list(d))
    say.attempt("pop", lambda: d.pop("zz"))
    say.attempt("get", lambda: d["zz"])
    say.attempt("delete", lambda: d.__delitem__("zz"))
    say.attempt("dot", lambda: d.__setitem__("a.b", a))
    say.attempt("taken", lambda: d.__setitem__("keys", a))
    say.attempt("taken training", lambda: d.__setitem__("training", a))
    say.attempt("number", lambda: d.__setitem__("n", 3))
    say.attempt("key", lambda: d.__setitem__(3, a))
    say.attempt("update number", lambda: d.update(3))
    say.attempt("update short", lambda: d.update([("a",)]))
    say.attempt("update plain", lambda: d.update([3]))
    say.attempt("call", lambda: d(1))
    d.clear()
    say(d, len(d))


@program
def parameter_list(lib: Any, say: Said) -> None:
    nn = lib.nn
    p = nn.ParameterList([lib.ones(2), nn.Parameter(lib.zeros(2, 3)), 3, "x", None])
    say(p, len(p), p[0], p[2], p[-1], list(p.state_dict()), [n for n, _ in p.named_parameters()])
    say(p[1:3], [type(v).__name__ for v in p])
    p[0] = lib.zeros(1)
    say(p[0])
    say(p.append(lib.ones(1)) is p, p.extend([lib.ones(1)]) is p, len(p))
    p += [lib.ones(3)]
    say(p)
    say.attempt("extend", lambda: p.extend(3))
    say.attempt("extend tensor", lambda: p.extend(lib.ones(3)))
    say.attempt("index", lambda: p[99])
    say.attempt("set", lambda: p.__setitem__(99, 1))
    say.attempt("call", lambda: p(1))
    say.attempt("set number over parameter", lambda: p.__setitem__(0, 3))
    say(nn.ParameterList(), copy.deepcopy(p), nn.ParameterList(p)[0] is p[0])
    say([d for d in dir(p) if d.isdigit()])


@program
def parameter_dict(lib: Any, say: Said) -> None:
    nn = lib.nn
    p = nn.ParameterDict({"b": lib.ones(2), "a": lib.zeros(1, 2), "n": 3})
    say(p, list(p), len(p), "a" in p, p["a"], list(p.state_dict()))
    p["z"] = lib.ones(1)
    p.update(OrderedDict(y=lib.ones(1), x=2))
    p.update([("w", lib.ones(1))])
    p.update(nn.ParameterDict({"v": lib.ones(1)}))
    say(p, list(reversed(p)), [n for n, _ in p.named_parameters()])
    say(p.pop("a"), p.popitem(), p.get("a"), p.get("a", 5), p.setdefault("a", 7), p["a"])
    say(p.setdefault("q"), list(p.fromkeys(["i", "j"], 3).items()))
    c = p.copy()
    say(c, c["b"] is p["b"], type(c).__name__)
    say(list(p.keys()), list(p.values()), [k for k, _ in p.items()])
    one, two = nn.ParameterDict({"a": 1, "b": 2}), nn.ParameterDict({"b": 3, "c": 4})
    say(list((one | two).items()), list((two | one).items()))
    one |= two
    say(list(one.items()))
    del p["b"]
    say(list(p))
    for what, fn in {
        "get": lambda: p["zz"],
        "delete": lambda: p.__delitem__("zz"),
        "pop": lambda: p.pop("zz"),
        "key": lambda: nn.ParameterDict().__setitem__(3, 1),
        "update": lambda: p.update(3),
        "short": lambda: p.update([("a",)]),
        "plain": lambda: p.update([3]),
        "call": lambda: p(1),
        "popitem": lambda: nn.ParameterDict().popitem(),
        "read key": lambda: p[3],
    }.items():
        say.attempt(what, fn)
    p.clear()
    say(p, len(p))
