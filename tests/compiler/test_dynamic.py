"""Sizes that change: a bounded number of versions, and eager's results and gradients at each size."""

from __future__ import annotations

import math
from typing import Any

import pytest

import votive
from votive import nn
from votive.compiler import explain

from .compare import close

F = nn.functional
pytestmark = pytest.mark.usefixtures("interpreted")


class Attention(nn.Module):
    """Attention with a cache that grows, in plain style."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any, cache: Any = None) -> Any:
        b, t, c = x.shape
        q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in self.qkv(x).split(c, dim=2))
        if cache is not None:
            k, v = votive.cat([cache[0], k], 2), votive.cat([cache[1], v], 2)
        s = k.shape[2]
        weights = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        weights = weights.masked_fill(~votive.ones(t, s, dtype=votive.bool).tril(s - t), float("-inf"))
        return self.out((weights.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c)), (k, v)


class Decoder(nn.Module):
    def __init__(self, vocabulary: int = 31, width: int = 16) -> None:
        super().__init__()
        self.embed, self.places = nn.Embedding(vocabulary, width), nn.Embedding(512, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.RMSNorm(width)])
        self.layers = nn.ModuleList(Attention(width, 2) for _ in range(2))
        self.up, self.head = nn.Linear(width, 3 * width), nn.Linear(3 * width, vocabulary)

    def forward(self, tokens: Any, caches: Any = None) -> Any:
        past = 0 if caches is None else caches[0][0].shape[2]
        x = self.embed(tokens) + self.places(votive.arange(past, past + tokens.shape[1]))
        new = []
        for i, (norm, layer) in enumerate(zip(self.norms, self.layers, strict=True)):
            y, kept = layer(norm(x), None if caches is None else caches[i])
            x = x + y
            new.append(kept)
        return self.head(F.gelu(self.up(x))), new


def versions(compiled: Any) -> int:
    return len(explain(compiled).versions)


def loss(model: Any, tokens: Any) -> tuple[Any, list[Any]]:
    for p in model.parameters():
        p.grad = None
    out = model(tokens)[0]
    F.cross_entropy(out.flatten(0, 1), tokens.flatten()).backward()
    return out.detach(), [p.grad for p in model.parameters()]


@pytest.mark.parametrize(("dynamic", "most"), [(None, 2), (True, 1)])
def test_a_growing_text_is_compiled_a_bounded_number_of_times(dynamic: Any, most: int) -> None:
    votive.manual_seed(0)
    model = Decoder()
    compiled = votive.compile(model, dynamic=dynamic)
    for n in (5, 6, 7, 8, 33, 64, 500):
        tokens = votive.randint(0, 31, (2, n))
        (out, grads), (want, wanted) = loss(compiled, tokens), loss(model, tokens)
        close(out, want)
        for a, b in zip(grads, wanted, strict=True):
            close(a, b, 10)
    assert versions(compiled) == most
    assert not explain(compiled).specialised


@pytest.mark.parametrize(("dynamic", "most"), [(None, 6), (True, 3)])
def test_a_growing_cache_is_compiled_a_bounded_number_of_times(dynamic: Any, most: int) -> None:
    votive.manual_seed(0)
    model = Decoder()
    compiled = votive.compile(model, dynamic=dynamic)
    with votive.no_grad():
        for rows in (3, 2, 5):
            tokens = votive.randint(0, 31, (rows, 4))
            (out, caches), (want, wanted) = compiled(tokens), model(tokens)
            for _ in range(12):
                close(out, want)
                tokens = votive.randint(0, 31, (rows, 1))
                (out, caches), (want, wanted) = compiled(tokens, caches), model(tokens, wanted)
    assert versions(compiled) <= most


def test_a_last_smaller_batch_and_changing_batches_share_a_version() -> None:
    votive.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))
    compiled = votive.compile(model)
    state = {k: v.clone() for k, v in model.state_dict().items()}
    for rows in (16, 16, 7, 9, 2, 30):
        x = votive.randn(rows, 5)
        found = []
        for program in (compiled, model):
            model.load_state_dict(state)
            votive.manual_seed(3)
            model.zero_grad()
            out = program(x)
            out.square().mean().backward()
            found.append([out, *[p.grad for p in model.parameters()], *model.state_dict().values()])
        for a, b in zip(*found, strict=True):
            close(a, b, 10)
    assert versions(compiled) == 2


def test_sizes_are_symbolic_from_the_first_call_on_request_and_never_against_it() -> None:
    def scaled(x: Any) -> Any:
        return (x / x.shape[0]).reshape(-1) * x.numel()

    always, never = votive.compile(scaled, dynamic=True), votive.compile(scaled, dynamic=False)
    for n in (3, 4, 5):
        x = votive.randn(n, 4)
        close(always(x), scaled(x))
        close(never(x), scaled(x))
    assert (versions(always), versions(never)) == (1, 3)
    (only,) = explain(always).versions
    assert only.symbols == ("s0 = x.shape[0], was 3", "s1 = x.shape[1], was 4")
    assert "s0*s1" in only.forward


def test_a_branch_on_a_size_guards_that_branch_only() -> None:
    @votive.compile(dynamic=True)
    def branching(x: Any) -> Any:
        return x * 2 if x.shape[0] > 10 else x + 1

    for n in (3, 5, 10, 11, 40, 7, 1000):
        x = votive.randn(n)
        close(branching(x), x * 2 if n > 10 else x + 1)
    found = explain(branching)
    assert len(found.versions) == 2
    assert "s0 <= 10 does not hold, where s0 = x.shape[0]" in found.recompilations[0]
    assert found.versions[0].conditions[0].startswith("s0 <= 10  # ")


def test_zero_and_one_are_programs_of_their_own() -> None:
    @votive.compile(dynamic=True)
    def summed(x: Any, y: Any) -> Any:
        return (x + y).sum(0)

    for shape in ((4, 3), (5, 3), (1, 3), (0, 3), (6, 3)):
        x, y = votive.randn(*shape), votive.randn(5 if shape[0] == 5 else 1, 3)
        close(summed(x, y), (x + y).sum(0))


@pytest.mark.parametrize(
    "use",
    [
        lambda x: x * hash(x.shape[0]),
        lambda x: x * {3: 0.5, 4: 0.25}.get(x.shape[0], 2.0),
        lambda x: x * len(str(x.shape[0])),
        lambda x: x * sum(range(x.shape[0])),
        lambda x: x * [1.0, 2.0, 3.0][x.shape[0] % 3],
        lambda x: x + votive.tensor([float(x.shape[0])]),
        lambda x: x + votive.tensor(x.shape[0]),
        lambda x: x * (x.shape[0] >> 1),
        lambda x: x * len([0] * x.shape[0]),
        lambda x: x * len("x" * x.shape[0]),
        lambda x: x * int("%d" % x.shape[0]),  # noqa: UP031
        lambda x: x * len(range(0, x.shape[0], 2)),
        lambda x: x * math.comb(x.shape[0], 2),
        lambda x: x * (x.shape[0] ^ 5),
        lambda x: x * float(x.shape[0]),
        lambda x: x * math.log2(x.shape[0]),
        lambda x: x * round(x.shape[0] / 3, 1),
        lambda x: x * (-7 // x.shape[0]) + (-7 % x.shape[0]),
        lambda x: x * x.shape[0] ** 2 + 2 ** x.shape[0],
        lambda x: x * divmod(x.shape[0], 3)[1] + abs(3 - x.shape[0]),
        lambda x: x * bool(x.shape[0] - 4),
        lambda x: x * sorted([4, x.shape[0], 6])[1],
        lambda x: x * isinstance(x.shape[0], int) + (type(x.shape[0]) is int),
        lambda x: x * x.shape[0].bit_length() + x.shape[0].__index__(),
    ],
)
def test_a_size_that_reaches_anything_gives_what_eager_gives(use: Any) -> None:
    compiled = [votive.compile(use, dynamic=d) for d in (True, None)]
    for n in (3, 4, 5, 6, 4, 3, 9):
        x = votive.randn(n, 2)
        for c in compiled:
            close(c(x), use(x))


def test_integers_among_arguments_become_symbolic_too() -> None:
    @votive.compile
    def windowed(x: Any, start: int) -> Any:
        return x[start : start + 2] * start

    x = votive.randn(30)
    for start in (3, 4, 5, 9, 20):
        close(windowed(x, start), x[start : start + 2] * start)
    assert versions(windowed) == 2


def test_results_and_their_numbers_belong_to_the_size() -> None:
    @votive.compile(dynamic=True)
    def told(x: Any) -> Any:
        return {"rows": x.shape[0], "half": (x.shape[0] // 2, x.T), "scale": 1 / x.shape[0]}

    for n in (4, 9, 6):
        x = votive.randn(n, 3)
        found = told(x)
        assert (found["rows"], found["half"][0], found["scale"]) == (n, n // 2, 1 / n)
        assert type(found["rows"]) is int
        assert type(found["scale"]) is float
        assert found["half"][1]._storage is x._storage
    assert versions(told) == 1


def test_memory_that_is_shared_is_seen_at_every_size() -> None:
    def written(x: Any, y: Any) -> Any:
        x.mul_(2)
        return x + y, x[1:]

    compiled = votive.compile(written, dynamic=True)
    for n in (4, 5, 6):
        for shared in (False, True):
            one, other = votive.arange(n) * 1.0, votive.arange(n) * 1.0
            a = compiled(one, one.view(n) if shared else votive.ones(n))
            b = written(other, other.view(n) if shared else votive.ones(n))
            for p, q in zip((one, *a), (other, *b), strict=True):
                close(p, q)
            assert a[1]._storage is one._storage


def test_the_first_call_for_any_size_leaves_nothing_behind() -> None:
    votive.manual_seed(1)

    @votive.compile(dynamic=True)
    def noisy(x: Any) -> Any:
        return x + votive.rand(x.shape) + F.dropout(x, 0.5)

    for n in (3, 5, 8):
        x = votive.randn(n, 2)
        votive.manual_seed(n)
        out, state = noisy(x), votive.get_rng_state().tolist()
        votive.manual_seed(n)
        want = noisy.fn(x)
        close(out, want)
        assert votive.get_rng_state().tolist() == state
    assert versions(noisy) == 1
    assert type(x.shape[0]) is int


def test_what_cannot_be_traced_for_any_size_says_why() -> None:
    @votive.compile(dynamic=True)
    def looked(x: Any) -> Any:
        return x * 2 if x.is_leaf else x

    for n in (3, 4):
        looked(votive.randn(n))
    assert explain(looked).specialised == ("it uses .is_leaf of a tensor",)


def test_marks_are_kept_or_raise() -> None:
    def fixed(x: Any) -> Any:
        return x * sum(range(x.shape[0]))

    x = votive.randn(4, 3)
    votive.compiler.mark_dynamic(x, 0)
    plain = votive.compile(lambda x: x * 2)
    plain(x)
    plain(votive.randn(9, 3))
    assert [len(v.symbols) for v in explain(plain).versions] == [1]
    with pytest.raises(RuntimeError, match="marked dynamic, but the program fixes its size to 4"):
        votive.compile(fixed)(x)
    y = votive.randn(4, 3)
    votive.compiler.maybe_mark_dynamic(y, 0)
    close(votive.compile(fixed)(y), fixed(y))
    votive.compiler.mark_static(y)
    kept = votive.compile(lambda x: x * 2, dynamic=True)
    kept(y)
    assert explain(kept).versions[0].symbols == ()
