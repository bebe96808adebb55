"""Losses, random numbers, linear algebra, optimizers' steps and whole small modules."""

from __future__ import annotations

from typing import Any

from ..draw import Draw
from ..family import Drawn, family
from ..side import Side, Work
from ..spec import Layout

DENSE = [
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "kl_div",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
]


def _loss(d: Draw) -> Drawn:
    op = d.pick(["cross_entropy"] * 4 + ["nll_loss", "cosine_similarity", "soft_cross_entropy"] + DENSE)
    if op in ("cross_entropy", "nll_loss") and d.chance(0.3):
        return op, {"x": d.layout(d.shape(4), 0.7), "reduction": d.pick(("mean", "sum", "none"))}
    how = d.pick(("mean", "mean", "sum", "none")) if op != "kl_div" else d.pick(("batchmean", "sum", "none"))
    return op, {"x": d.layout(d.shape(2), 0.8), "reduction": how}


@family("loss", _loss, weight=2, gradient=0.6)
def _build_loss(s: Side) -> Work:
    op, F, text = s.spec.op, s.F, s.spec["x"]
    shape = Layout.parse(text).shape
    fill = "unit" if op == "binary_cross_entropy" else "normal"
    x = s(text, fill)
    how = s.spec["reduction"]
    if op in ("cross_entropy", "nll_loss"):
        target = s.plain(str(Layout((shape[0], *shape[2:]))), f"index:{shape[1]}")
        return lambda: getattr(F, op)(x, target, reduction=how)
    if op == "cosine_similarity":
        y = s(text)
        return lambda: F.cosine_similarity(x, y, dim=1)
    y = s.plain(text, "unit")
    if op == "soft_cross_entropy":
        y = F.softmax(y, 1)
        return lambda: F.cross_entropy(x, y, reduction=how)
    return lambda: getattr(F, op)(x, y, reduction=how)


def _random(d: Draw) -> Drawn:
    op = d.pick(
        [
            "dropout",
            "dropout",
            "dropout",
            "rand",
            "randn",
            "randint",
            "randperm",
            "bernoulli",
            "normal_",
            "uniform_",
            "multinomial",
        ]
    )
    if op == "multinomial":
        return op, {"x": d.layout(d.shape(2, d.elements // 8), 1.0)}
    return op, {"x": d.array(1, 4, d.elements // 2)}


@family("random", _random, compared=None)
def _build_random(s: Side) -> Work:
    op, m = s.spec.op, s.m
    shape = Layout.parse(s.spec["x"]).shape
    x = s(s.spec["x"], "unit")
    if op == "dropout" or s.spec.grad:
        return lambda: s.F.dropout(x, 0.2)
    same: dict[str, Any] = {"dtype": s.dtype, "device": s.device}
    rest: dict[str, Any] = {
        "rand": lambda: m.rand(*shape, **same),
        "randn": lambda: m.randn(*shape, **same),
        "randint": lambda: m.randint(0, 1000, shape, device=s.device),
        "randperm": lambda: m.randperm(max(shape), device=s.device),
        "bernoulli": lambda: m.bernoulli(x),
        "normal_": lambda: x.normal_(),
        "uniform_": lambda: x.uniform_(),
        "multinomial": lambda: m.multinomial(x, 1),
    }
    return rest[op]  # type: ignore[no-any-return]


LINALG = [
    "cholesky",
    "solve",
    "qr",
    "svdvals",
    "inv",
    "det",
    "eigh",
    "eigvalsh",
    "slogdet",
    "solve_triangular",
    "lu",
    "matrix_exp",
    "pinv",
]


def _linalg(d: Draw) -> Drawn:
    op = d.pick(LINALG)
    n = d.size(1, 128 if op in ("qr", "svdvals", "eigh", "eigvalsh", "pinv", "matrix_exp") else 256)
    batch = d.size(1, max(1, min(512, (d.work // 64) // n**3)))
    return op, {"n": n, "batch": batch, "right": d.size(1, 16)}


@family("linalg", _linalg, weight=2, gradient=0.3, dtypes=("float32",) * 3 + ("float64",))
def _build_linalg(s: Side) -> Work:
    op, m, n, batch = s.spec.op, s.m, s.spec["n"], s.spec["batch"]
    lead = f"{batch}x" if batch > 1 else ""
    a = s(f"{lead}{n}x{n}", scale=1 / n**0.5)
    eye = m.eye(n, dtype=s.dtype, device=s.device)
    L = m.linalg
    with m.no_grad():
        if op in ("cholesky", "eigh", "eigvalsh"):
            value = a @ a.mT + 0.5 * eye
        elif op == "solve_triangular":
            value = m.tril(a) + 2.0 * eye
        else:
            value = a + 2.0 * eye
    x = value.detach()
    if s.spec.grad:
        x = x.requires_grad_()
        s.leaves[:] = [x]
    if op == "eigh":  # vectors are known up to their sign
        return lambda: L.eigh(x)[0]
    if op == "qr":
        return lambda: L.qr(x)[1].abs()
    if op == "lu":
        return lambda: L.lu_factor(x)[0]
    if op in ("solve", "solve_triangular"):
        b = s(f"{lead}{n}x{s.spec['right']}")
        if op == "solve":
            return lambda: L.solve(x, b)
        return lambda: L.solve_triangular(x, b, upper=False)
    if op == "slogdet":
        return lambda: L.slogdet(x)[1]
    return lambda: getattr(L, op)(x)


OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.01},
    "momentum": {"lr": 0.01, "momentum": 0.9},
    "Adam": {"lr": 0.001},
    "AdamW": {"lr": 0.001},
    "RMSprop": {"lr": 0.001},
    "Adagrad": {"lr": 0.01},
}


def _optimizer(d: Draw) -> Drawn:
    count = d.size(1, 32)
    sizes = tuple(d.size(1, d.elements // 2 // count) for _ in range(count))
    return d.pick(("SGD", "momentum", "Adam", "Adam", "AdamW", "AdamW", "RMSprop", "Adagrad")), {"sizes": sizes}


@family("optimizer", _optimizer, gradient=0.0, dtypes=("float32",) * 4 + ("bfloat16",))
def _build_optimizer(s: Side) -> Work:
    op = s.spec.op
    parameters = [s.plain(str(n)).requires_grad_() for n in s.spec["sizes"]]
    for p in parameters:
        p.grad = s.plain(str(p.shape[0]))
    made = getattr(s.m.optim, "SGD" if op == "momentum" else op)(parameters, **OPTIMIZERS[op])

    def step() -> Any:
        made.step()
        return [p.detach() for p in parameters]

    return step


def _module(d: Draw) -> Drawn:
    op = d.pick(("mlp", "mlp", "encoder_layer", "cnn", "embedding_lstm", "residual", "multihead"))
    batch, steps = d.size(1, 32), d.size(1, 64)
    rows = batch * (steps if op not in ("mlp", "cnn", "residual") else 16)
    width = max(1, d.size(4, max(4, min(512, int((d.work / 32 / rows) ** 0.5)))) // 4) * 4
    return op, {"batch": batch, "steps": steps, "width": width}


@family("module", _module, weight=2, gradient=0.6, dtypes=("float32",) * 4 + ("bfloat16",))
def _build_module(s: Side) -> Work:
    p, nn = s.spec, s.m.nn
    batch, steps, width = p["batch"], p["steps"], p["width"]
    if p.op == "embedding_lstm":
        ids = s.plain(f"{batch}x{steps}", "index:100")
        table, lstm = s.module(nn.Embedding(100, width)), s.module(nn.LSTM(width, width, batch_first=True))
        return lambda: lstm(table(ids))[0]
    if p.op in ("encoder_layer", "multihead"):
        x = s(f"{batch}x{steps}x{width}")
        if p.op == "multihead":
            heads = s.module(nn.MultiheadAttention(width, 4, batch_first=True))
            return lambda: heads(x, x, x, need_weights=False)[0]
        layer = s.module(nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True))
        return lambda: layer(x)
    if p.op == "mlp":
        model = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width), nn.GELU())
        model = s.module(nn.Sequential(model, nn.Linear(width, 10)))
        x = s(f"{batch}x{width}")
        return lambda: model(x)
    channels, side = max(1, width // 8), max(8, min(32, steps))
    block = [nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU()]
    if p.op == "cnn":
        block += [nn.MaxPool2d(2), nn.Conv2d(channels, 2 * channels, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    net = s.module(nn.Sequential(*block, *([nn.Flatten()] if p.op == "cnn" else [])))
    x = s(f"{batch}x{channels}x{side}x{side}")
    if p.op == "cnn":
        return lambda: net(x)
    return lambda: s.m.relu(net(x) + x)
