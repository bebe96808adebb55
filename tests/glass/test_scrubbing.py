"""Causal scrubbing: against the published recursion in plain torch, and on toys whose answer is known."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive.glass import circuits
from votive.glass.circuits import Claim
from votive.glass.circuits.scrub import Draws, readers_of

from .torch_decoder import TorchDecoder


def small(**more: Any) -> Any:
    votive.manual_seed(0)
    sizes = {"vocab_size": 16, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.4}
    return votive.models.LlamaForCausalLM(votive.models.LlamaConfig(**{**sizes, **heads, **more})).eval()


def texts(count: int = 12, seed: int = 0) -> Any:
    return votive.randint(0, 4, (count, 4), generator=votive.Generator().manual_seed(seed))


def metric(out: Any) -> Any:
    return out.logits[:, -1, 3] - out.logits[:, -1, 4]


def last(ids: Any) -> Any:
    return ids[:, -1]


def first(ids: Any) -> Any:
    return ids[:, 0]


HYPOTHESIS = (
    Claim(
        "layers.1.head.1",
        by=last,
        reads=[
            Claim("layers.0.mlp", by=first, into="qk", reads=[Claim("layers.0.head.2", by=lambda ids: ids[:, 1:3])]),
            Claim(["embed", "layers.0.head.3"], by=last, into="v", positions=[1, 2]),
        ],
    ),
    Claim(["layers.1.mlp", "layers.1.head.0"], by=lambda ids: ids.sum(1) % 2, reads=[Claim("embed", by=last)]),
)


@pytest.mark.parity
def test_scrubbing_is_the_published_recursion(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    model, ids = small(), texts()
    of, ref = circuits.graph(model), TorchDecoder(model, torch)
    drawn: list[Any] = []

    def recorded(plain: Any) -> Any:
        def draw(self: Draws, *args: Any) -> Any:
            drawn.append(plain(self, *args).tolist())
            return votive.tensor(drawn[-1])

        return draw

    for name in ("any", "agreeing"):
        monkeypatch.setattr(Draws, name, recorded(getattr(Draws, name)))
    found = circuits.scrub(model, ids, HYPOTHESIS, metric=metric, draws=2)
    assert len(drawn) == 2 * (4 + 6 + 1)  # other samples of each run, samples of each claim, and for `random`

    tokens = torch.tensor(ids.numpy())
    with torch.no_grad():
        logits, own, _ = ref.run(tokens)
    taken = iter(drawn)

    def run(claims: Any, writers: tuple[str, ...], samples: Any) -> tuple[Any, Any]:
        other = next(taken)
        readers = readers_of(of, writers)
        there = [(i, j) for i in range(len(of.writers)) for j in readers if of.allowed[i, j]]
        table = {(i, j): own[i][other] for i, j in there if of.writers[i] not in writers}
        for claim in claims:
            new = next(taken)
            labels = claim.by(ids).tolist()
            assert [labels[i] for i in new] == [labels[int(i)] for i in samples]
            values = own if claim.reads is None else run(claim.reads, claim.writers, new)[1]
            for w in claim.writers:
                i = of.writers.index(w)
                value = values[i][new] if claim.reads is None else values[i]
                if claim.positions is not None:
                    value, inside = own[i][other].clone(), value
                    value[:, list(claim.positions)] = inside[:, list(claim.positions)]
                for j in readers:
                    kind = of.readers[j].split(".")[2:3]
                    if (i, j) in table and (claim.into is None or kind[0] in claim.into):
                        table[i, j] = value
        cut = torch.zeros(len(of.writers), len(of.readers), dtype=torch.bool)
        for at in table:
            cut[at] = True
        with torch.no_grad():
            out, values, _ = ref.run(tokens, cut, lambda j: {i: v for (i, k), v in table.items() if k == j})
        return out, values

    scores = []
    for _ in range(2):
        scores += [run(c, (), range(12))[0] for c in (HYPOTHESIS, ())]
    scores = [float((s[:, -1, 3] - s[:, -1, 4]).mean()) for s in (logits, *scores)]
    assert found.clean == pytest.approx(scores[0], abs=1e-5)
    assert found.scrubbed == pytest.approx((scores[1] + scores[3]) / 2, abs=1e-5)
    assert found.random == pytest.approx((scores[2] + scores[4]) / 2, abs=1e-5)


@pytest.fixture(scope="module")
def parity() -> Any:
    """A model whose answer depends on nothing but whether the last token is even."""
    model = small(num_hidden_layers=1)
    with votive.no_grad():
        for name, p in model.named_parameters():
            if "o_proj" in name or "down_proj" in name:
                p.zero_()
        table = model.get_input_embeddings().weight
        table.copy_(table[:2].clone().repeat(8, 1))
    return model


def test_a_true_hypothesis_loses_nothing_and_a_wrong_one_what_it_must(parity: Any) -> None:
    ids = texts(16)
    even = [Claim("embed", by=lambda ids: ids[:, -1] % 2)]
    found = circuits.scrub(parity, ids, even, metric=metric, draws=3)
    assert found.scrubbed == pytest.approx(found.clean, abs=1e-6)

    # Chances are what a wrong claim leaves: the mean over all samples that agree on its label.
    with votive.no_grad():
        logits = parity(ids).logits[:, -1]
    right = (ids[:, -1] % 2).long()
    sample = votive.arange(16)

    def likely(out: Any) -> Any:
        return votive.log_softmax(out.logits[:, -1, :2], -1)[sample, right]

    table = votive.log_softmax(logits[:, :2], -1)
    expected = []
    for i in range(16):
        agree = [j for j in range(16) if int(ids[j, 0]) == int(ids[i, 0])]
        expected.append(sum(float(table[j, right[i]]) for j in agree) / len(agree))
    wrong = circuits.scrub(parity, ids, [Claim("embed", by=first)], metric=likely, draws=80)
    spread = float(table.max() - table.min()) / (80 * 16) ** 0.5
    assert wrong.scrubbed == pytest.approx(sum(expected) / 16, abs=5 * spread)
    true = circuits.scrub(parity, ids, even, metric=likely, draws=2)
    assert true.recovered == pytest.approx(1.0, abs=1e-5)
    assert wrong.recovered < 0.5


def test_what_is_open_is_the_sample_and_what_is_closed_is_not() -> None:
    model, ids = small(), texts()
    of = circuits.graph(model)

    def itself(ids: Any) -> Any:
        return votive.arange(len(ids))

    whole = circuits.scrub(model, ids, [Claim(of.writers, by=itself)], metric=metric)
    assert whole.scrubbed == pytest.approx(whole.clean, abs=1e-5)
    nested: Any = None
    for layer in (0, 1):
        writers = [w for w in of.writers if w == "embed" or int(w.split(".")[1]) < layer]
        below = [Claim(writers, by=itself, reads=nested)]
        heads = [Claim(f"layers.{layer}.head.{h}", by=itself, reads=below) for h in range(4)]
        nested = [*below, *heads, Claim(f"layers.{layer}.mlp", by=itself, reads=[*below, *heads])]
        if layer == 0:
            nested = None
    found = circuits.scrub(model, ids, nested, metric=metric)
    assert found.scrubbed == pytest.approx(found.clean, abs=1e-5)
    closed = circuits.scrub(model, ids, [Claim(of.writers, by=itself, positions=[3])], metric=metric)
    assert closed.scrubbed == pytest.approx(closed.clean, abs=1e-5)  # the metric reads the last position
    other = circuits.scrub(model, ids, [Claim(of.writers, by=itself, positions=[0, 1, 2])], metric=metric)
    assert other.scrubbed != pytest.approx(other.clean, abs=1e-3)
    again = circuits.scrub(model, ids, HYPOTHESIS, metric=metric, seed=3)
    assert again == circuits.scrub(model, ids, HYPOTHESIS, metric=metric, seed=3)
    assert again != circuits.scrub(model, ids, HYPOTHESIS, metric=metric, seed=4)


def test_a_circuit_is_measured_with_other_texts_outside_and_inside() -> None:
    model, ids = small(), texts()
    g = circuits.graph(model)
    edges = [e for e in g.edges() if e[1] == "logits" or e[0] == "embed"]
    circuit = circuits.Circuit(g, g.mask(edges))
    found = circuits.resample_ablation(model, ids, circuit, metric=metric, seed=1)
    other = Draws(12, 1).any()
    expected = circuits.faithfulness(model, ids, ids[other], circuit, metric=metric)
    for name in ("clean", "other", "circuit", "without"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-6)


def test_wrong_hypotheses_are_refused() -> None:
    model, ids = small(), texts()

    def refused(kind: type[Exception], match: str, *claims: Claim) -> None:
        with pytest.raises(kind, match=match):
            circuits.scrub(model, ids, claims, metric=metric)

    refused(KeyError, "none of", Claim("nobody", by=last))
    refused(ValueError, "cannot read", Claim("embed", by=last, into="q"))
    refused(ValueError, "cannot read", Claim("layers.0.mlp", by=last, reads=[Claim("layers.1.mlp", by=last)]))
    refused(ValueError, "two claims", Claim("embed", by=last), Claim(["embed", "layers.0.mlp"], by=last))
    refused(ValueError, "a label for each", Claim("embed", by=lambda ids: ids[:3]))
    with pytest.raises(ValueError, match="letters"):
        Claim("embed", by=last, into="x")
    with pytest.raises(ValueError, match="different writers"):
        Claim([], by=last)
    with pytest.raises(ValueError, match="two texts"):
        circuits.scrub(model, ids[:1], [], metric=metric)
    with pytest.raises(ValueError, match="a number for each"):
        circuits.scrub(model, ids, [], metric=lambda out: out.logits.sum())
    for call in (circuits.scrub, circuits.resample_ablation):
        what: Any = [] if call is circuits.scrub else circuits.Circuit(circuits.graph(model), None)
        with pytest.raises(ValueError, match="draws"):
            call(model, ids, what, metric=metric, draws=0)  # type: ignore[operator]
