"""Programs with reparametrised weights that must say the same with votive and with torch."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from .module_programs import make
from .transcript import Said
from .utils_programs import close, numbers

PROGRAMS: list[Any] = []


def program(fn: Any) -> Any:
    PROGRAMS.append(fn)
    return fn


@program
def older_weight_norm(lib: Any, say: Said) -> None:
    U = lib.nn.utils
    for dim in (0, 1, None, -1):
        m = make(lib).Lin(2, 3).double()
        m.weight.data = numbers(lib, 3, 2)
        say(U.weight_norm(m, dim=dim) is m, m, list(m.state_dict()), m.weight_g.shape)
        x = numbers(lib, 1, 2)
        say(close(m(x)))
        m(x).sum().backward()
        say(close(m.weight_g.grad), close(m.weight_v.grad))
        m.weight_g.data.mul_(2)
        say(close(m(x)))
        if dim == 0:
            say.attempt("twice", lambda m=m: U.weight_norm(m))
        U.remove_weight_norm(m)
        say(list(m.state_dict()), close(m(x)), len(m._forward_pre_hooks))
        say.attempt("remove twice", lambda m=m: U.remove_weight_norm(m))


@program
def older_spectral_norm(lib: Any, say: Said) -> None:
    U = lib.nn.utils
    m = make(lib).Lin(2, 3).double()
    m.weight.data = numbers(lib, 3, 2)
    say(U.spectral_norm(m, n_power_iterations=2) is m, sorted(m.state_dict()))
    say([n for n, _ in m.named_parameters()], [n for n, _ in m.named_buffers()])
    m.weight_u.copy_(lib.nn.functional.normalize(numbers(lib, 3), dim=0))
    m.weight_v.copy_(lib.nn.functional.normalize(numbers(lib, 2), dim=0))
    x = numbers(lib, 1, 2)
    (m(x) - m(2 * x)).sum().backward()
    say(close(m.weight), close(m.weight_orig.grad), close(m.weight_u), close(m.weight_v))
    m.eval()
    say(close(m(x)), close(m.weight_u), m.state_dict()._metadata)
    state = m.state_dict()
    say.attempt("copy of a weight with a history", lambda: copy.deepcopy(m))
    twin = U.spectral_norm(make(lib).Lin(2, 3).double()).eval()
    say(twin.load_state_dict(state), close(twin(x)))
    say.attempt("twice", lambda: U.spectral_norm(m))
    old = {k: v.clone() for k, v in state.items() if k != "weight_v"}
    say.attempt("missing", lambda: twin.load_state_dict(old))
    old["weight"] = m.weight.detach().clone()
    say(twin.load_state_dict(old), close(twin(x)))
    U.remove_spectral_norm(m)
    say(list(m.state_dict()), close(m(x)), len(m._state_dict_hooks))
    say.attempt("remove twice", lambda: U.remove_spectral_norm(m))
    say.attempt("iterations", lambda: U.spectral_norm(m, n_power_iterations=0))


def symmetric(lib: Any) -> Any:
    class Symmetric(lib.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, a: Any) -> Any:
            return a.triu()

    return Symmetric


@program
def parametrizations(lib: Any, say: Said) -> None:
    P = lib.nn.utils.parametrize
    Symmetric = symmetric(lib)
    m = make(lib).Lin(3, 3).double()
    original = m.weight
    m.weight.data = numbers(lib, 3, 3)
    say(P.register_parametrization(m, "weight", Symmetric()) is m)
    say(m, type(m).__name__, list(m.state_dict()), [n for n, _ in m.named_parameters()])
    say(m.parametrizations.weight.original is original, isinstance(m, make(lib).Lin) is False)
    say(close(m.weight), m.weight.requires_grad, type(m.weight).__name__)
    say(P.is_parametrized(m), P.is_parametrized(m, "weight"), P.is_parametrized(m, "bias"))
    say(P.type_before_parametrizations(m).__name__)
    m(numbers(lib, 1, 3)).sum().backward()
    say(close(original.grad))
    m.weight = numbers(lib, 3, 3) + 1
    say(close(m.weight), close(original))
    with P.cached():
        say(m.weight is m.weight)
    say(m.weight is m.weight)
    twin = copy.deepcopy(m)
    say(type(twin).__name__, close(twin.weight))
    say.attempt("pickle", lambda: pickle.dumps(m))
    P.remove_parametrizations(m, "weight")
    say(m, type(m).__name__, m.weight is original, close(m.weight), hasattr(m, "parametrizations"))
    say.attempt("not there", lambda: P.remove_parametrizations(m, "weight"))
    P.register_parametrization(m, "weight", Symmetric())
    P.remove_parametrizations(m, "weight", leave_parametrized=False)
    say(close(m.weight), m.weight is original)


@program
def parametrizations_one_after_the_other(lib: Any, say: Said) -> None:
    nn, P = lib.nn, lib.nn.utils.parametrize

    class Scale(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

    class Rank(nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return a.unsqueeze(-1) * b

        def right_inverse(self, w: Any) -> Any:
            return w[:, 0], w[0]

    m = make(lib).Lin(3, 3).double().eval()
    m.register_buffer("buf", numbers(lib, 2))
    P.register_parametrization(m, "weight", symmetric(lib)())
    P.register_parametrization(m, "weight", Scale())
    P.register_parametrization(m, "buf", Scale())
    say(m, close(m.weight), close(m.buf), list(m.state_dict()), m.parametrizations.training)
    say(m.parametrizations.weight[1].training, [n for n, _ in m.named_buffers()])
    say.attempt("no right inverse", lambda: setattr(m, "weight", numbers(lib, 3, 3)))
    P.remove_parametrizations(m, "buf")
    say(close(m.buf), list(m._buffers), type(m).__name__)
    P.remove_parametrizations(m, "weight")
    say(type(m).__name__)
    m.weight.data = numbers(lib, 3, 3)
    P.register_parametrization(m, "weight", Rank())
    say(m, list(m.state_dict()), close(m.weight), m.parametrizations.weight.ntensors)
    m.weight = numbers(lib, 3, 3) * 2
    say(close(m.weight))
    say.attempt("several", lambda: P.remove_parametrizations(m, "weight", leave_parametrized=False))
    P.remove_parametrizations(m, "weight")
    say(close(m.weight), type(m.weight).__name__, m.weight.requires_grad)


@program
def parametrizations_refused(lib: Any, say: Said) -> None:
    nn, P = lib.nn, lib.nn.utils.parametrize

    def giving(fn: Any, inverse: Any = None) -> Any:
        class Given(nn.Module):
            def forward(self, *x: Any) -> Any:
                return fn(*x)

        if inverse is not None:
            Given.right_inverse = lambda self, x: inverse(x)  # type: ignore[attr-defined]
        return Given()

    same = lambda x: x
    for what, p in {
        "shape": giving(lambda x: x[0]),
        "dtype": giving(lambda x: x.float()),
        "type": giving(lambda x: 3),
        "inverse type": giving(same, lambda x: 3),
        "inverse dtype": giving(same, lambda x: x.float()),
        "inverse parts": giving(same, lambda x: (x, 3)),
    }.items():
        m = make(lib).Lin(3, 3).double()
        say.attempt(what, lambda m=m, p=p: P.register_parametrization(m, "weight", p))
        say(type(m).__name__, list(m._parameters))
        P.register_parametrization(m, "weight", nn.Identity())
        say.attempt(f"second {what}", lambda m=m, p=p: P.register_parametrization(m, "weight", p))
    m = make(lib).Lin(3, 3)
    say.attempt("name", lambda: P.register_parametrization(m, "absent", nn.Identity()))
    P.register_parametrization(m, "weight", giving(lambda x: x[0]), unsafe=True)
    say(m.weight.shape)


@program
def weight_norm_as_parametrization(lib: Any, say: Said) -> None:
    Q = lib.nn.utils.parametrizations
    for dim in (0, 1, None):
        m = make(lib).Lin(2, 3).double()
        m.weight.data = numbers(lib, 3, 2)
        Q.weight_norm(m, dim=dim)
        say(m, list(m.state_dict()), m.parametrizations.weight.original0.shape, close(m.weight))
        m(numbers(lib, 1, 2)).sum().backward()
        say([close(p.grad) for p in m.parametrizations.parameters()])
    old = make(lib).Lin(2, 3).double()
    old.weight.data = numbers(lib, 3, 2) * 3
    lib.nn.utils.weight_norm(old, dim=None)
    say(m.load_state_dict(old.state_dict()), close(m.weight))


@program
def spectral_norm_as_parametrization(lib: Any, say: Said) -> None:
    Q = lib.nn.utils.parametrizations
    for dim in (0, 1, -1):
        m = make(lib).Lin(2, 3).double()
        m.weight.data = numbers(lib, 3, 2)
        Q.spectral_norm(m, dim=dim, n_power_iterations=30)
        say(m, sorted(m.state_dict()), close(m.weight))
        m(numbers(lib, 1, 2)).sum().backward()
        say(close(m.parametrizations.weight.original.grad))
        m.eval()
        say(close(m.weight))
    m = make(lib).Lin(2, 3).double()
    m.bias.data = numbers(lib, 3)
    Q.spectral_norm(m, "bias")
    say(m, close(m.bias), list(m.state_dict()))
    m = lib.nn.ConvTranspose1d(2, 3, 4).double()
    m.weight.data = numbers(lib, 2, 3, 4)
    Q.spectral_norm(m, n_power_iterations=30)
    say(m.parametrizations.weight[0]._u.shape, close(m.weight))
    for what, fn in {
        "name": lambda: Q.spectral_norm(make(lib).Lin(1, 1), "absent"),
        "dim": lambda: Q.spectral_norm(make(lib).Lin(1, 1), dim=2),
        "iterations": lambda: Q.spectral_norm(make(lib).Lin(1, 1), n_power_iterations=0),
    }.items():
        say.attempt(what, fn)


@program
def orthogonal_parametrization(lib: Any, say: Said) -> None:
    Q = lib.nn.utils.parametrizations
    for n, k in ((3, 3), (4, 2), (2, 4)):
        for kind in ("matrix_exp", "cayley", "householder"):
            for base in (True, False):
                m = make(lib).Lin(k, n).double()
                m.weight.data = numbers(lib, n, k)
                Q.orthogonal(m, orthogonal_map=kind, use_trivialization=base)
                w = m.weight
                gram = w.T @ w if n >= k else w @ w.T
                say(kind, close(gram), sorted(m.state_dict()), w.requires_grad)
                if n == k or not base:
                    say(close(w))
                    (w * numbers(lib, n, k).cos()).sum().backward()
                    say(close(m.parametrizations.weight.original.grad))
                say.attempt("assign", lambda m=m, w=w: setattr(m, "weight", w.detach().clone()))
                say.attempt("size", lambda m=m: setattr(m, "weight", lib.ones(7, 7)))
    m = Q.orthogonal(make(lib).Lin(3, 3).double())
    say(m)
    say.attempt("map", lambda: Q.orthogonal(make(lib).Lin(2, 2), orthogonal_map="x"))
    say.attempt("vector", lambda: Q.orthogonal(make(lib).Lin(2, 2), "bias"))
    say.attempt("name", lambda: Q.orthogonal(make(lib).Lin(2, 2), "absent"))
