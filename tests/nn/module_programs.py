"""Programs with modules that must say the same with votive and with torch."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import Any

from .transcript import Said

PROGRAMS: list[Any] = []


def program(fn: Any) -> Any:
    PROGRAMS.append(fn)
    return fn


def make(lib: Any) -> Any:
    """A few classes over one library."""
    nn = lib.nn

    class Lin(nn.Module):
        def __init__(self, n: int, m: int, bias: bool = True) -> None:
            super().__init__()
            self.n, self.m = n, m
            self.weight = nn.Parameter(lib.arange(n * m).reshape(m, n) / 10)
            if bias:
                self.bias = nn.Parameter(lib.zeros(m))
            else:
                self.register_parameter("bias", None)

        def forward(self, x: Any) -> Any:
            y = x @ self.weight.T
            return y if self.bias is None else y + self.bias

        def extra_repr(self) -> str:
            return f"n={self.n}, m={self.m}"

    class Norm(nn.Module):
        _version = 3

        def __init__(self, n: int) -> None:
            super().__init__()
            self.register_buffer("mean", lib.zeros(n))
            self.register_buffer("scratch", lib.ones(n), persistent=False)
            self.register_buffer("nothing", None)

        def forward(self, x: Any) -> Any:
            return x - self.mean

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = Lin(2, 3)
            self.norm = Norm(3)
            self.blocks = nn.ModuleList([Lin(3, 3, bias=False) for _ in range(3)])
            self.head = nn.Sequential(OrderedDict(fc=Lin(3, 2), again=Norm(2)))
            self.scale = nn.Parameter(lib.ones(()))

        def forward(self, x: Any) -> Any:
            x = self.norm(self.first(x))
            for block in self.blocks:
                x = block(x)
            return self.head(x) * self.scale

    class Names:
        pass

    names = Names()
    names.Lin, names.Norm, names.Net = Lin, Norm, Net  # type: ignore[attr-defined]
    return names


@program
def tables_and_text(lib: Any, say: Said) -> None:
    net = make(lib).Net()
    say(net)
    say([n for n, _ in net.named_modules()])
    say([n for n, _ in net.named_children()])
    say([(n, tuple(p.shape)) for n, p in net.named_parameters()])
    say([n for n, _ in net.named_parameters(prefix="top", recurse=False)])
    say([n for n, _ in net.named_buffers()])
    say(list(net.state_dict()))
    say(net.state_dict()._metadata)
    say(list(net.state_dict(prefix="p.")))
    say(len(list(net.modules())), len(list(net.parameters())), len(list(net.buffers())))
    say([d for d in dir(net) if d in ("first", "blocks", "scale", "forward", "training")])
    say([d for d in dir(net.blocks) if d[0].isdigit()])
    say(net(lib.ones(1, 2)))


@program
def sharing(lib: Any, say: Said) -> None:
    names = make(lib)
    m = lib.nn.Module()
    m.a = names.Lin(2, 2)
    m.b = m.a
    m.c = names.Lin(2, 2)
    m.c.weight = m.a.weight
    say([n for n, _ in m.named_modules()])
    say([n for n, _ in m.named_modules(remove_duplicate=False)])
    say([n for n, _ in m.named_parameters()])
    say([n for n, _ in m.named_parameters(remove_duplicate=False)])
    say([n for n, _ in m.named_children()])
    say(list(m.state_dict()))
    calls: list[str] = []
    m.apply(lambda x: calls.append(type(x).__name__))
    say(calls)
    twin = copy.deepcopy(m)
    say(twin.a is twin.b, twin.a.weight is twin.c.weight, twin.a.weight is m.a.weight)
    m.double()
    say(m.c.weight is m.a.weight, m.a.weight.dtype)


@program
def errors_of_registering(lib: Any, say: Said) -> None:
    nn = lib.nn
    Lin = make(lib).Lin

    class Early(nn.Module):
        def __init__(self, what: str) -> None:
            if what == "parameter":
                self.p = nn.Parameter(lib.ones(1))
            elif what == "module":
                self.m = Lin(1, 1)
            elif what == "buffer":
                self.register_buffer("b", lib.ones(1))
            elif what == "register_parameter":
                self.register_parameter("b", nn.Parameter(lib.ones(1)))
            elif what == "number":
                self.number = 3

    for what in ("parameter", "module", "buffer", "register_parameter", "number"):
        say.attempt(what, lambda what=what: Early(what) and None, text=True)
    say.attempt("call before init", lambda: Early("number")(1))
    m = Lin(2, 2)
    m.n = 1
    x = lib.ones(1, requires_grad=True)
    tries = {
        "number as parameter": lambda: setattr(m, "weight", 3),
        "tensor as parameter": lambda: setattr(m, "weight", lib.ones(1)),
        "none as parameter": lambda: setattr(m, "weight", None),
        "parameter dot": lambda: m.register_parameter("a.b", None),
        "parameter empty": lambda: m.register_parameter("", None),
        "parameter name": lambda: m.register_parameter(3, None),
        "parameter taken": lambda: m.register_parameter("forward", None),
        "parameter type": lambda: m.register_parameter("q", lib.ones(1)),
        "parameter non-leaf": lambda: m.register_parameter("q", x * 2),
        "buffer dot": lambda: m.register_buffer("a.b", None),
        "buffer empty": lambda: m.register_buffer("", None),
        "buffer name": lambda: m.register_buffer(3, None),
        "buffer taken": lambda: m.register_buffer("n", None),
        "buffer type": lambda: m.register_buffer("q", 3),
        "module dot": lambda: m.add_module("a.b", None),
        "module empty": lambda: m.add_module("", None),
        "module name": lambda: m.add_module(3, None),
        "module taken": lambda: m.add_module("n", None),
        "module type": lambda: m.add_module("q", 3),
        "module class": lambda: m.register_module("q", Lin),
        "missing": lambda: m.absent,
        "delete missing": lambda: delattr(m, "absent"),
        "keyword": lambda: nn.Module(a=1),
        "positional": lambda: nn.Module(1),
        "forward": lambda: nn.Module()(1),
        "train": lambda: m.train(1),
        "int dtype": lambda: m.to(lib.int32),
        "int parameter": lambda: nn.Parameter(lib.ones(2, dtype=lib.int64)),
        "int parameter without grad": lambda: nn.Parameter(lib.ones(2, dtype=lib.int64), False),
    }
    for what, fn in tries.items():
        say.attempt(what, fn, text=not what.startswith("int param"))
    m.child, m.buf = Lin(1, 1), 3
    m.register_buffer("buf2", lib.ones(1))
    for name, value in (("child", 3), ("buf2", 3), ("child", lib.ones(1)), ("buf2", x)):
        say.attempt(f"{name}", lambda n=name, v=value: setattr(m, n, v), text=True)


@program
def attributes_change_kind(lib: Any, say: Said) -> None:
    nn = lib.nn
    m = nn.Module()

    def tables() -> Any:
        return (
            sorted(m._parameters),
            sorted(m._buffers),
            sorted(m._modules),
            sorted(m._non_persistent_buffers_set),
            "x" in m.__dict__,
        )

    m.x = 3
    say(tables())
    m.x = nn.Parameter(lib.ones(1))
    say(tables())
    say.attempt("module over parameter", lambda: setattr(m, "x", make(lib).Lin(1, 1)))
    say(tables())
    say.attempt("parameter over module", lambda: setattr(m, "x", nn.Parameter(lib.ones(1))))
    say(tables())
    del m.x
    say(tables())
    m.x = nn.Buffer(lib.ones(1), persistent=False)
    say(tables(), list(m.state_dict()))
    m.x = nn.Buffer(lib.ones(1))
    say(tables(), list(m.state_dict()))
    m.x = lib.zeros(2)
    say(tables(), m.x)
    m.x = nn.Parameter(lib.ones(1))
    say(tables())
    m.x = None
    say(tables(), m.x)
    del m.x
    m.register_buffer("x", None)
    m.x = lib.ones(1)
    say(tables())
    m.x = make(lib).Lin(1, 1)
    say(tables())
    say(isinstance(nn.Buffer(lib.ones(1)), nn.Buffer), isinstance(lib.ones(1), nn.Buffer))
    say(isinstance(nn.Parameter(), nn.Parameter), isinstance(nn.Parameter() * 1, nn.Parameter))


@program
def finding_by_path(lib: Any, say: Said) -> None:
    names = make(lib)
    net = names.Net()
    say(net.get_submodule("head.fc"), net.get_submodule("") is net)
    say(net.get_parameter("blocks.1.weight").shape, net.get_buffer("norm.mean"))
    for target in ("absent", "head.absent.x", "scale", "head.fc.weight", "forward"):
        say.attempt(f"submodule {target}", lambda t=target: net.get_submodule(t), text=True)
        say.attempt(f"parameter {target}", lambda t=target: net.get_parameter(t) is None, text=True)
        say.attempt(f"buffer {target}", lambda t=target: net.get_buffer(t), text=True)
    net.set_submodule("head.fc", names.Norm(2))
    net.set_submodule("blocks.3", names.Norm(2))
    say(net)
    for target, module, strict in (
        ("head.new", names.Norm(1), True),
        ("scale", names.Norm(1), False),
        ("", names.Norm(1), False),
        ("a.b", names.Norm(1), False),
        ("head.fc", 3, False),
    ):
        say.attempt(target, lambda a=(target, module, strict): net.set_submodule(*a), text=True)


@program
def conversions(lib: Any, say: Said) -> None:
    m = make(lib).Lin(2, 2)
    m.register_buffer("steps", lib.tensor(3))
    m.register_buffer("mean", lib.zeros(2))
    m(lib.ones(1, 2)).sum().backward()
    before = m.weight
    for step in (
        lambda: m.double(),
        lambda: m.half(),
        lambda: m.bfloat16(),
        lambda: m.float(),
        lambda: m.to(lib.float64),
        lambda: m.to("cpu"),
        lambda: m.to("cpu", lib.float16),
        lambda: m.to(dtype=lib.float32),
        lambda: m.to(lib.ones(1, dtype=lib.float64)),
        lambda: m.to(lib.float32, non_blocking=True),
        lambda: m.cpu(),
        lambda: m.type(lib.float64),
        lambda: m.to(device="cpu", dtype=lib.float32),
        lambda: m.to(None, lib.float64),
    ):
        say(step() is m, m.weight.dtype, m.weight.grad.dtype, m.steps.dtype, m.mean.dtype)
    say(m.weight is before, m.weight.is_leaf, m.weight.requires_grad, type(m.weight).__name__)
    say.attempt("unknown argument", lambda: m.to(copy=True))
    say.attempt("wrong type", lambda: m.to([1]))
    c = lib.nn.Module()
    c.w = lib.nn.Parameter(lib.ones(2, 3, 4, 5))
    c.to(memory_format=lib.channels_last)
    say(c.w.stride(), c.w.is_contiguous(memory_format=lib.channels_last))
    say(c.to_empty(device="cpu").w.shape)


@program
def modes_and_gradients(lib: Any, say: Said) -> None:
    net = make(lib).Net()
    say(net.eval().training, [m.training for m in net.modules()])
    net.head.train()
    say([m.training for m in net.modules()])
    net.train()
    net(lib.ones(1, 2)).sum().backward()
    say([p.grad is None for p in net.parameters()])
    kept = net.scale.grad
    net.zero_grad(set_to_none=False)
    say(net.scale.grad is kept, [float(p.grad.abs().sum()) for p in net.parameters()])
    net.zero_grad()
    say([p.grad is None for p in net.parameters()])
    net.requires_grad_(False)
    say([p.requires_grad for p in net.parameters()], net(lib.ones(1, 2)).requires_grad)


@program
def copies(lib: Any, say: Said) -> None:
    net = make(lib).Net()
    net(lib.ones(1, 2)).sum().backward()
    twin = copy.deepcopy(net)
    say(twin.scale is net.scale, twin.scale.grad, twin.scale.requires_grad, twin.scale.is_leaf)
    say(twin.state_dict().keys() == net.state_dict().keys(), twin)
    shallow = copy.copy(net)
    say(shallow.scale is net.scale, shallow._modules is net._modules)
    p = lib.nn.Parameter(lib.ones(2), requires_grad=False)
    q = pickle.loads(pickle.dumps(p))
    say(q, type(q).__name__, q.requires_grad)
    s = lib.nn.Sequential(lib.nn.ParameterList([lib.ones(1)]))
    s.register_buffer("b", lib.zeros(1))
    s.eval()
    t = pickle.loads(pickle.dumps(s))
    say(t, list(t.state_dict()), t.training, t[0][0], t.b)


@program
def parameters(lib: Any, say: Said) -> None:
    nn = lib.nn
    x = lib.ones(2)
    p = nn.Parameter(x)
    p.data[0] = 5
    say(p, x, p.is_leaf, p.data_ptr() == x.data_ptr())
    say(nn.Parameter(), nn.Parameter(x, requires_grad=False).requires_grad)
    y = lib.ones(2, requires_grad=True) * 2
    say(nn.Parameter(y).is_leaf, nn.Parameter(y).grad_fn)
    say(type(p * 2).__name__, type(p.detach()).__name__, type(p.data).__name__)
    say(type(p.clone()).__name__, type(p[0]).__name__, type(p.to(lib.float64)).__name__)
    with lib.no_grad():
        q = nn.Parameter(lib.ones(1))
    say(q.requires_grad, type(nn.Parameter(q)).__name__, nn.Parameter(q) is q)
    say(copy.copy(q), copy.deepcopy(q))
    p.add_note = 3
    say(hasattr(copy.deepcopy(p), "add_note"))
    say(nn.Parameter(lib.ones(2, dtype=lib.complex64)).requires_grad)


@program
def factory_arguments(lib: Any, say: Said) -> None:
    given = lib.nn.factory_kwargs
    say(given(None), given({}), given({"device": "cpu"}))
    say(sorted(given({"device": "cpu", "factory_kwargs": {"dtype": lib.int8}}).items()))
    say.attempt("unknown", lambda: given({"size": 3}))
    say.attempt("twice", lambda: given({"dtype": None, "factory_kwargs": {"dtype": None}}))


@program
def uninitialised(lib: Any, say: Said) -> None:
    nn = lib.nn
    p = nn.UninitializedParameter(dtype=lib.float16)
    say(p, p.dtype, p.device, p.requires_grad, isinstance(p, nn.Parameter))
    say.attempt("shape", lambda: p.shape)
    say.attempt("add", lambda: p + 1)
    say.attempt("sum", lambda: p.sum())
    say.attempt("function", lambda: lib.exp(p))
    say(copy.deepcopy(p), pickle.loads(pickle.dumps(p)))
    p.materialize((2, 3))
    say(type(p).__name__, p.shape, p.dtype, p.requires_grad)
    b = nn.UninitializedBuffer()
    m = nn.Module()
    m.b, m.p = b, nn.UninitializedParameter()
    say(list(m._buffers), list(m._parameters))
    m.double()
    say(m.b.dtype, m.p.dtype, m.state_dict().keys() if False else "")
    m.b.materialize((1,))
    say(type(m.b).__name__, m.b.dtype)
    say(nn.parameter.is_lazy(m.p), nn.parameter.is_lazy(m.b))
