"""Programs with nn.utils and nn.init that must say the same with votive and with torch."""

from __future__ import annotations

import pickle
from typing import Any

from .module_programs import make
from .transcript import Said

PROGRAMS: list[Any] = []


def program(fn: Any) -> Any:
    PROGRAMS.append(fn)
    return fn


def numbers(lib: Any, *shape: int, dtype: Any = None) -> Any:
    """Values without a pattern, the same in both libraries."""
    n = 1
    for s in shape:
        n *= s
    x = lib.arange(n, dtype=lib.float64)
    return ((x * 0.7547 + 0.3).sin() * 2).reshape(shape).to(dtype or lib.float64)


def close(value: Any) -> Any:
    """Rounded, since sums may differ in their last digits."""
    if isinstance(value, (list, tuple)):
        return [close(v) for v in value]
    if hasattr(value, "tolist"):
        return close(value.detach().tolist())
    return round(value, 6) + 0.0 if isinstance(value, float) else value


@program
def clipping(lib: Any, say: Said) -> None:
    U = lib.nn.utils

    def params() -> list[Any]:
        out = []
        for shape in ((2, 3), (4,), ()):
            p = lib.nn.Parameter(numbers(lib, *shape))
            p.grad = numbers(lib, *shape) * 3
            out.append(p)
        return [*out, lib.nn.Parameter(lib.ones(2))]

    for norm in (2, 1, 3.0, 0.5, float("inf"), "inf", 0):
        for most in (0.5, 1000):
            ps = params()
            total = U.clip_grad_norm_(ps, most, norm_type=norm)
            say(close(total), [None if p.grad is None else close(p.grad) for p in ps])
    ps = params()
    say(close(U.clip_grad_norm_(ps[0], 1.0, foreach=False)), close(ps[0].grad))
    say(U.clip_grad_norm_([], 1.0), U.clip_grad_norm_((p for p in ()), 1.0))
    ps = params()
    U.clip_grad_value_(ps, 0.7)
    say([None if p.grad is None else close(p.grad) for p in ps])
    U.clip_grad_value_(ps[0], 0.1)
    say(close(ps[0].grad))
    ps[0].grad.fill_(float("inf"))
    say(U.clip_grad_norm_(ps, 1.0), close(ps[1].grad))
    ps = params()
    ps[0].grad.fill_(float("nan"))
    say.attempt("not finite", lambda: U.clip_grad_norm_(ps, 1.0, error_if_nonfinite=True))
    say(U.get_total_norm([lib.ones(3), lib.ones(1)]), U.get_total_norm(lib.ones(4)))
    half = lib.nn.Parameter(lib.ones(4, dtype=lib.float16))
    half.grad = lib.ones(4, dtype=lib.float16)
    say(U.clip_grad_norm_([half], 1.0), half.grad)


@program
def vectors(lib: Any, say: Said) -> None:
    U = lib.nn.utils
    m = make(lib).Lin(2, 3)
    v = U.parameters_to_vector(m.parameters())
    say(v)
    before = m.weight
    U.vector_to_parameters(lib.arange(9.0), m.parameters())
    say(m.weight, m.bias, m.weight is before)
    say.attempt("type", lambda: U.vector_to_parameters([1.0], m.parameters()))


@program
def fusing(lib: Any, say: Said) -> None:
    U = lib.nn.utils
    w, b = numbers(lib, 3, 2, 2), numbers(lib, 3)
    mean, var = numbers(lib, 3), numbers(lib, 3).abs()
    for bias in (b, None):
        for gamma, beta in ((b + 1, b), (None, None)):
            got = U.fuse_conv_bn_weights(w, bias, mean, var, 1e-3, gamma, beta)
            say(close(got), got[0].requires_grad, type(got[0]).__name__)
    got = U.fuse_conv_bn_weights(lib.nn.Parameter(numbers(lib, 2, 3, 2)), b, mean, var, 1e-3, b, b, transpose=True)
    say(close(got), got[0].requires_grad, got[1].requires_grad)
    say(close(U.fuse_linear_bn_weights(w[:, :, 0], None, mean, var, 1e-3, b, b)))
    say(close(U.fuse_linear_bn_weights(w[:, :, 0], b, mean, var, 1e-3, b, b)))


@program
def fusing_layers(lib: Any, say: Said) -> None:
    nn, U = lib.nn, lib.nn.utils
    conv, bn = nn.Conv2d(2, 3, 2, bias=False).double(), nn.BatchNorm2d(3).double()
    lin, bn1 = nn.Linear(2, 3).double(), nn.BatchNorm1d(3).double()
    with lib.no_grad():
        for p in [*conv.parameters(), *lin.parameters(), *bn.parameters(), *bn1.parameters()]:
            p.copy_(numbers(lib, *p.shape))
        for b in (bn, bn1):
            b.running_mean.copy_(numbers(lib, 3))
            b.running_var.copy_(numbers(lib, 3).abs() + 0.5)
    say.attempt("train", lambda: U.fuse_conv_bn_eval(conv, bn))
    for m in (conv, bn, lin, bn1):
        m.eval()
    x, y = numbers(lib, 2, 2, 3, 3), numbers(lib, 4, 2)
    fused = U.fuse_conv_bn_eval(conv, bn)
    say(fused, close(fused(x)), close(bn(conv(x))))
    fused = U.fuse_linear_bn_eval(lin, bn1)
    say(fused, close(fused(y)), close(bn1(lin(y))))
    say.attempt("size", lambda: U.fuse_linear_bn_eval(lin, nn.BatchNorm1d(2).eval()))


@program
def packing(lib: Any, say: Said) -> None:
    R = lib.nn.utils.rnn
    x = numbers(lib, 4, 3, 2).requires_grad_()  # (T, B, *)
    for given, kind in (
        ([4, 2, 1], {}),
        (lib.tensor([4, 2, 1]), {}),
        ([3, 3, 2], {}),
        ([2, 4, 1], {"enforce_sorted": False}),
    ):
        p = R.pack_padded_sequence(x, given, **kind)
        say(close(p.data), p.batch_sizes, p.sorted_indices, p.unsorted_indices)
        for extra in ({}, {"batch_first": True}, {"padding_value": -1.0}, {"total_length": 6}):
            y, n = R.pad_packed_sequence(p, **extra)
            say(close(y), n, y.is_contiguous())
        x.grad = None
        (y * numbers(lib, *y.shape)).sum().backward()
        say(close(x.grad))
    b = lib.arange(6).reshape(2, 3)
    say(R.pack_padded_sequence(b, [3, 1], batch_first=True))
    say(R.pack_padded_sequence(b, lib.tensor([1, 3]), True, False))
    for what, fn in {
        "order": lambda: R.pack_padded_sequence(b, [1, 3], True),
        "zero": lambda: R.pack_padded_sequence(b, [3, 0], True),
        "number": lambda: R.pack_padded_sequence(b, [3], True),
        "total": lambda: R.pad_packed_sequence(R.pack_padded_sequence(b, [3, 1], True), total_length=2),
        "manual": lambda: R.PackedSequence(3),
    }.items():
        say.attempt(what, fn)


@program
def packed_sequences(lib: Any, say: Said) -> None:
    R = lib.nn.utils.rnn
    a, b, c = lib.tensor([1, 2, 3]), lib.tensor([4, 5]), lib.tensor([6])
    p = R.pack_sequence([a, b, c])
    say(p, R.unpack_sequence(p), isinstance(p, tuple), len(p))
    q = R.pack_sequence([c, a, b], enforce_sorted=False)
    say(q, R.unpack_sequence(q), R.invert_permutation(q.sorted_indices))
    say(p.float().data, p.double().data.dtype, p.to(lib.int64) is p, p.cpu() is p, p.is_cuda)
    say(q.half().sorted_indices, p.long() is p, p.int().data.dtype, p.byte().data.dtype)
    say(R.PackedSequence((p.data, p.batch_sizes)), R.PackedSequence(p.data, p.batch_sizes))
    say(R.invert_permutation(None))
    say(pickle.loads(pickle.dumps(R.PackedSequence(p.data, p.batch_sizes))).batch_sizes)


@program
def padding(lib: Any, say: Said) -> None:
    R = lib.nn.utils.rnn
    xs = [numbers(lib, n, 2).requires_grad_() for n in (2, 3, 1)]
    for kind in (
        {},
        {"batch_first": True},
        {"padding_value": 7.0},
        {"padding_side": "left"},
        {"batch_first": True, "padding_side": "left"},
    ):
        y = R.pad_sequence(xs, **kind)
        say(close(y), y.shape, y.dtype)
        y.cos().sum().backward()
        say([close(x.grad) for x in xs])
    say(R.pad_sequence([lib.tensor([1, 2]), lib.tensor([3])], batch_first=True))
    say(R.pad_sequence((lib.ones(0), lib.ones(2)), True), R.pad_sequence(lib.ones(2, 3)).shape)
    y = R.pad_sequence(xs, batch_first=True)
    say([close(v) for v in R.unpad_sequence(y, lib.tensor([2, 3, 1]), batch_first=True)])
    say([close(v) for v in R.unpad_sequence(R.pad_sequence(xs), lib.tensor([2, 3, 1]))])
    for what, fn in {
        "not iterable": lambda: R.pad_sequence(3),
        "empty": lambda: R.pad_sequence([]),
        "side": lambda: R.pad_sequence([lib.ones(1)], padding_side="top"),
        "sizes": lambda: R.pad_sequence([lib.ones(1, 2), lib.ones(1, 3)]),
    }.items():
        say.attempt(what, fn)


@program
def calling_with_other_parameters(lib: Any, say: Said) -> None:
    call = lib.nn.utils.stateless.functional_call
    Lin = make(lib).Lin

    class Tied(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = Lin(2, 2), Lin(2, 2)
            self.b.weight = self.a.weight
            self.register_buffer("n", lib.tensor(0))

        def forward(self, x: Any, k: int = 1) -> Any:
            self.n = self.n + 1
            return self.b(self.a(x)) * k

    m = Tied()
    x = lib.ones(1, 2)
    w = {"a.weight": lib.eye(2).requires_grad_(), "n": lib.tensor(5)}
    say(call(m, w, (x,)), call(m, w, x, {"k": 3}), w["n"], m.n)
    say(call(m, w, x, tie_weights=False), type(m.a.weight).__name__)
    say.attempt("strict", lambda: call(m, w, x, strict=True))
    full = {k: v.clone() for k, v in [*m.named_parameters(), *m.named_buffers()]}
    say(call(m, full, x, strict=True))
    say.attempt("unknown strict", lambda: call(m, {**full, "z": x}, x, strict=True))
    two = {"a.weight": lib.eye(2), "b.weight": lib.ones(2, 2)}
    say.attempt("two values", lambda: call(m, two, x))
    say(call(m, two, x, tie_weights=False))
    (g,) = lib.autograd.grad(call(m, w, x).sum(), w["a.weight"])
    say(g)
    say.attempt("error", lambda: call(m, w, lib.ones(1, 5)))
    say(m(x), m.b.weight is m.a.weight)


@program
def exact_start_values(lib: Any, say: Said) -> None:
    I = lib.nn.init
    e = lib.empty
    say(I.constant_(e(2), 0.5), I.ones_(e(2)), I.zeros_(e(2)), I.eye_(e(2, 3)))
    for shape, groups in (((3, 3, 3), 1), ((4, 2, 3, 3), 2), ((2, 3, 2, 3, 3), 1), ((4, 2, 1), 4)):
        say(I.dirac_(e(*shape), groups))
    for name, value in (
        ("linear", None),
        ("conv2d", None),
        ("sigmoid", None),
        ("tanh", None),
        ("relu", None),
        ("leaky_relu", None),
        ("leaky_relu", 0.2),
        ("leaky_relu", 1),
        ("selu", None),
    ):
        say(I.calculate_gain(name, value))
    p = lib.nn.Parameter(e(2, 2))
    say(I.ones_(p) is p, p.requires_grad, p.grad_fn)
    say(I._calculate_fan_in_and_fan_out(e(2, 3, 4, 5)), I._calculate_fan_in_and_fan_out(e(2, 3)))
    for what, fn in {
        "gain": lambda: I.calculate_gain("x"),
        "slope": lambda: I.calculate_gain("leaky_relu", "x"),
        "bool": lambda: I.calculate_gain("leaky_relu", True),
        "eye": lambda: I.eye_(e(2)),
        "dirac": lambda: I.dirac_(e(2, 2)),
        "groups": lambda: I.dirac_(e(3, 2, 1), 2),
        "fan": lambda: I.xavier_uniform_(e(3)),
        "fan mode": lambda: I.kaiming_normal_(e(2, 2), mode="x"),
        "kaiming": lambda: I.kaiming_uniform_(e(2)),
        "orthogonal": lambda: I.orthogonal_(e(2)),
        "sparse": lambda: I.sparse_(e(2), 0.1),
        "uniform": lambda: I.uniform_(e(2), 3, 1),
        "normal": lambda: I.normal_(e(2), 0, -1),
    }.items():
        say.attempt(what, fn)
    say(I.kaiming_uniform_(e(0, 3)).shape, I.normal_(e(2), 5.0, 0.0), I.orthogonal_(e(0, 2)).shape)
    say(I.constant(e(1), 2.0), I.eye(e(2, 2)))


@program
def without_start_values(lib: Any, say: Said) -> None:
    U = lib.nn.utils
    m = U.skip_init(lib.nn.Linear, 3, out_features=2)
    say(m, m.weight.shape, m.weight.requires_grad, type(m.weight).__name__)
    say.attempt("no module", lambda: U.skip_init(dict))
    say.attempt("no device", lambda: U.skip_init(lib.nn.Identity) and None)
    say.attempt("no device argument", lambda: U.skip_init(make(lib).Lin, 2, 2))
