"""What requests ask for inside of the model is what the laboratory finds, and nobody else's business."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

import votive
from votive import glass
from votive.serve.body import Fields
from votive.serve.glass_request import glass_of
from votive.serve.keys import Keys, Permissions
from votive.serve.server import Server

from .client import engine, language_model, parts, post, serving, tokenizer

PROMPT = "Once upon a time there was"
ALL = {"prompt": PROMPT, "temperature": 0, "max_tokens": 8, "ignore_eos": True, "logprobs": 0}
VECTOR = [float((i * 7) % 5 - 2) for i in range(32)]


def asked(one: Server, inside: Any, **more: Any) -> dict[str, Any]:
    """An answer, whose first choice and findings are looked at."""
    answer = post(one, "completions", {**ALL, **more, "glass": inside})
    assert answer.status == 200, answer.text
    return dict(answer.json)


def found(answer: dict[str, Any], choice: int = 0, capture: int = 0) -> Any:
    """The values of a capture."""
    one = answer["glass"]["choices"][choice]["captures"][capture]
    values = np.array(one["data"], np.float32)
    assert list(values.shape) == one["shape"]
    return values


def written(prompt: list[int], edits: list[glass.Edit], new: int = 8) -> list[int]:
    """What a model under edits writes, token by token."""
    model, ids, cache = language_model(), votive.tensor([prompt]), votive.nn.DynamicCache()
    out: list[int] = []
    with votive.no_grad(), glass.patch(model, edits, measure=False):
        for _ in range(new):
            logits = model(ids, past_key_values=cache, use_cache=True).logits[0, -1]
            out.append(int(logits.argmax()))
            ids = votive.tensor([[out[-1]]])
    return out


def text(tokens: list[int]) -> str:
    return str(tokenizer().decode(tokens, skip_special_tokens=True))


def test_captures_are_the_values_of_a_run(the_server: Server) -> None:
    inside = {
        "captures": [
            {"at": "layers.*.resid_post"},
            {"at": "layers.1.attn.z", "heads": [2, 0]},
            {"at": "ln_final.scale"},
        ]
    }
    answer = asked(the_server, inside)
    prompt = tokenizer().encode(PROMPT)
    tokens = written(prompt, [glass.Edit("layers.0", "scale", 1.0)])
    whole = votive.tensor([[*prompt, *tokens[:-1]]])
    with (
        votive.no_grad(),
        glass.capture(language_model(), ["layers.*.resid_post", "layers.1.attn.z", "ln_final.scale"]) as seen,
    ):
        seen.model(whole)
    assert answer["choices"][0]["text"] == text(tokens)
    for i, at in enumerate(("layers.0.resid_post", "layers.1.resid_post", "layers.1.attn.z", "ln_final.scale")):
        one = answer["glass"]["choices"][0]["captures"][i]
        assert (one["at"], one["positions"]) == (at, list(range(whole.shape[1])))
        expected = seen[at][0].numpy()
        expected = expected[:, [2, 0]] if "attn" in at else expected
        np.testing.assert_allclose(found(answer, 0, i), expected, rtol=2e-3, atol=2e-3)


def test_positions_reductions_and_forms(the_server: Server) -> None:
    at = {"at": "layers.0.resid_post"}
    every = found(asked(the_server, {"captures": [at]}))
    length = len(tokenizer().encode(PROMPT))
    inside = {
        "captures": [
            {**at, "positions": "prompt"},
            {**at, "positions": "generated"},
            {**at, "positions": -1},
            {**at, "positions": [0, -1, length]},
            {**at, "reduce": "mean"},
            {**at, "reduce": "max", "positions": "generated"},
            {**at, "reduce": "norm"},
        ]
    }
    expected = [
        every[:length],
        every[length:],
        every[length - 1 : length],
        every[[0, length - 1, length]],
        every.mean(0),
        every[length:].max(0),
        np.linalg.norm(every, axis=-1),
    ]
    plain = asked(the_server, inside)
    packed = asked(the_server, {**inside, "format": "base64"})
    for i, values in enumerate(expected):
        np.testing.assert_allclose(found(plain, 0, i), values, rtol=1e-4, atol=1e-4)
        one = packed["glass"]["choices"][0]["captures"][i]
        raw = np.frombuffer(base64.b64decode(one["data"]), "<f4").reshape(one["shape"])
        assert one["dtype"] == "float32"
        np.testing.assert_array_equal(raw, found(plain, 0, i))


def test_attention_patterns_have_a_row_for_each_position(the_server: Server) -> None:
    answer = asked(
        the_server, {"captures": [{"at": "layers.1.attn.pattern", "heads": [1]}]}, n=2, temperature=1, seed=2
    )
    length = len(tokenizer().encode(PROMPT)) + 7
    for i in range(2):
        values = found(answer, i)
        assert values.shape == (length, 1, length)
        np.testing.assert_allclose(values.sum(-1), 1, rtol=1e-4)
        assert np.all(values[:, 0][np.triu_indices(length, 1)] == 0)


@pytest.mark.parametrize(
    ("inside", "edits"),
    [
        (
            {"steer": [{"at": "layers.0.resid_post", "vector": VECTOR, "scale": 0.5}]},
            [glass.Edit("layers.0.resid_post", "add", votive.tensor(VECTOR) * 0.5)],
        ),
        (
            {"edits": [{"at": "layers.1.attn.z", "do": "zero", "heads": [1, 3]}]},
            [glass.Edit("layers.1.attn.z", "zero", heads=[1, 3])],
        ),
        (
            {
                "edits": [
                    {"at": "layers.0.mlp.post", "do": "replace", "value": 40, "features": [5, 9], "positions": [2, 4]}
                ]
            },
            [glass.Edit("layers.0.mlp.post", "replace", 40.0, features=[5, 9], positions=[2, 4])],
        ),
        (
            {"edits": [{"at": "layers.*.attn.v", "do": "scale", "value": -1.5, "positions": [3]}]},
            [glass.Edit("layers.*.attn.v", "scale", -1.5, positions=[3])],
        ),
        (
            {"edits": [{"at": "embed", "do": "replace", "value": VECTOR, "positions": [0]}]},
            [glass.Edit("embed", "replace", votive.tensor(VECTOR), positions=[0])],
        ),
        ({"skip": ["layers.1"]}, [glass.Edit("model.layers.1", "skip")]),
        ({"skip": ["layers.0.mlp"]}, [glass.Edit("layers.0.mlp_out", "zero")]),
        ({"skip": ["layers.1.attn"]}, [glass.Edit("layers.1.attn_out", "zero")]),
    ],
    ids=["steer", "heads", "features", "every layer", "embed", "layer", "mlp", "attention"],
)
def test_edits_do_what_those_of_the_laboratory_do(the_server: Server, inside: Any, edits: list[glass.Edit]) -> None:
    prompt = tokenizer().encode(PROMPT)
    expected = text(written(prompt, edits))
    plain = post(the_server, "completions", ALL).json["choices"][0]["text"]
    assert asked(the_server, inside)["choices"][0]["text"] == expected
    again = asked(the_server, inside)  # now with what is known of its beginning
    assert again["choices"][0]["text"] == expected
    assert expected != plain
    assert post(the_server, "completions", ALL).json["choices"][0]["text"] == plain


def test_a_receipt_tells_at_how_many_positions_an_edit_was_made(the_server: Server) -> None:
    length = len(tokenizer().encode(PROMPT))
    inside = {"edits": [{"at": "layers.0.resid_post", "do": "zero", "positions": "generated"}], "skip": ["layers.1"]}
    for _ in range(2):
        told = asked(the_server, inside)["glass"]["choices"][0]["edits"]
        assert told == [
            {"at": "layers.0.resid_post", "do": "zero", "positions": 7},
            {"at": "layers.1.resid_post", "do": "skip", "positions": length + 7},
        ]


def test_what_is_captured_is_what_edits_have_made_of_it(the_server: Server) -> None:
    inside = {
        "captures": [{"at": "layers.0.resid_post"}],
        "edits": [{"at": "layers.0.resid_post", "do": "replace", "value": 2.5, "features": [3]}],
    }
    values = found(asked(the_server, inside))
    assert np.all(values[:, 3] == 2.5)
    assert not np.any(values[:, 4] == 2.5)


def test_requests_of_one_batch_do_not_meet() -> None:
    """Each is what it is alone, whatever is asked for beside it, in any order and with what was kept of others."""
    from .engines import ask, run

    requests: list[dict[str, Any] | None] = [
        None,
        {"steer": [{"at": "layers.0.resid_post", "vector": VECTOR}], "captures": [{"at": "layers.1.resid_post"}]},
        {"skip": ["layers.1"], "captures": [{"at": "layers.0.resid_post", "positions": "generated"}]},
        {"edits": [{"at": "layers.0.resid_post", "do": "scale", "value": -2, "positions": "generated"}]},
        {"captures": [{"at": "layers.1.attn.pattern"}, {"at": "layers.0.resid_post", "reduce": "mean"}]},
        None,
    ]
    prompt = tokenizer().encode(PROMPT * 4)
    lengths = [len(prompt) - i for i in range(len(requests))]

    def outcome(one: Any, which: list[int]) -> dict[int, tuple[Any, Any]]:
        answers = {}
        for i in which:
            told = requests[i]
            made = None
            if told is not None:
                made = glass_of(Fields(told, "glass"), one.served, Permissions(), [lengths[i]], 10, 1)
            answers[i] = ask(one, prompt[: lengths[i]], new=10, eos_token_id=None, glass=made)
        run(one)
        return {i: (a.tokens(), a.done.glass) for i, a in answers.items()}

    alone = {i: outcome(engine(), [i])[i] for i in range(len(requests))}
    shared = engine()
    for which in ([0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 1], [4, 0, 3]):
        for i, (tokens, values) in outcome(shared, which).items():
            assert tokens == alone[i][0], (which, i)
            assert (values is None) == (requests[i] is None)
            for a, b in zip(
                [] if values is None else values["choices"][0].get("captures", []),
                [] if values is None else alone[i][1]["choices"][0].get("captures", []),
                strict=True,
            ):
                assert a["positions"] == b["positions"]
                np.testing.assert_allclose(np.array(a["data"]), np.array(b["data"]), rtol=2e-3, atol=2e-3)
    assert shared.counters.reused_tokens > 0
    assert len({tuple(tokens) for tokens, _ in alone.values()}) >= 4  # the edits did something


def test_a_deterministic_server_brings_back_the_same_bits() -> None:
    inside = {"captures": [{"at": "layers.*.resid_post"}], "steer": [{"at": "embed", "vector": VECTOR}]}
    with serving(engine(deterministic=True, chunk=4)) as one:
        first = asked(one, inside, n=2)
        assert first["glass"] == asked(one, inside, n=2)["glass"]
        assert first["glass"]["choices"][0]["captures"] == first["glass"]["choices"][1]["captures"]


def test_a_stream_ends_with_what_was_found(the_server: Server) -> None:
    inside = {"captures": [{"at": "layers.0.resid_post", "positions": [0]}]}
    talk = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3, "stream": True, "glass": inside}
    told = parts(post(the_server, "chat/completions", talk))
    assert told[-1]["choices"] == []
    assert told[-1]["glass"]["choices"][0]["captures"][0]["shape"] == [1, 32]
    assert all("glass" not in p for p in told[:-1])


@pytest.mark.parametrize(
    ("inside", "param", "says"),
    [
        ([], "glass", "an object"),
        ({"capture": []}, "glass.capture", "Did you mean 'captures'"),
        ({"captures": ["x"]}, "glass.captures", "a list of objects"),
        ({"captures": [{}]}, "glass.captures[0].at", "the name of a place"),
        ({"captures": [{"at": "layers.0.resid_pst"}]}, "glass.captures[0].at", "Did you mean 'layers.0.resid_post'"),
        ({"captures": [{"at": "layers.9.resid_post"}]}, "glass.captures[0].at", "there is no place"),
        ({"captures": [{"at": "logits"}]}, "glass.captures[0].at", "there is no place"),
        ({"captures": [{"at": "**"}]}, "glass.captures[0].at", "there is no place"),
        ({"captures": [{"at": "*" * 129}]}, "glass.captures[0].at", "128 characters"),
        ({"captures": [{"at": "embed", "reduce": "sum"}]}, "glass.captures[0].reduce", "one of none, mean, max, norm"),
        ({"captures": [{"at": "embed", "heads": [0]}]}, "glass.captures[0].heads", "has none"),
        ({"captures": [{"at": "layers.0.attn.z", "heads": [4]}]}, "glass.captures[0].heads", "from 0 to 3"),
        ({"captures": [{"at": "layers.0.attn.scores"}]}, "glass.captures[0].at", "attn.pattern"),
        ({"captures": [{"at": "embed", "positions": "last"}]}, "glass.captures[0].positions", "all, prompt, generated"),
        ({"captures": [{"at": "embed", "positions": []}]}, "glass.captures[0].positions", "all, prompt, generated"),
        ({"captures": [{"at": "embed", "positions": [500]}]}, "glass", "never read"),
        ({"captures": [{"at": "embed", "positions": [-99]}]}, "glass", "never read"),
        ({"captures": [{"at": "embed"}] * 257}, "glass.captures", "at most 256"),
        ({"edits": [{"at": "embed", "do": "swap"}]}, "glass.edits[0].do", "replace, add, scale, zero"),
        ({"edits": [{"at": "embed", "do": "add"}]}, "glass.edits[0].value", "a number or a list"),
        ({"edits": [{"at": "embed", "do": "zero", "value": 1}]}, "glass.edits[0].value", "left out"),
        ({"edits": [{"at": "embed", "do": "add", "value": [1, 2]}]}, "glass.edits[0].value", "a list of 32 numbers"),
        ({"edits": [{"at": "embed", "do": "add", "value": 1e300}]}, "glass.edits[0].value", "float32 holds"),
        ({"edits": [{"at": "embed", "do": "zero", "features": [32]}]}, "glass.edits[0].features", "from 0 to 31"),
        ({"edits": [{"at": "layers.0.attn.pattern", "do": "zero"}]}, "glass.edits[0].at", "attn.q"),
        ({"steer": [{"at": "embed", "vector": ["x"] * 32}]}, "glass.steer[0].vector", "a list of 32 numbers"),
        ({"steer": [{"at": "embed"}]}, "glass.steer[0].vector", "a list of 32 numbers"),
        ({"skip": ["layers.2"]}, "glass.skip", "layers.3.attn"),
        ({"skip": [1]}, "glass.skip", "layers.3.attn"),
        ({"format": "pickle"}, "glass.format", "one of json, base64"),
    ],
)
def test_what_cannot_be_done_inside_is_refused(the_server: Server, inside: Any, param: str, says: str) -> None:
    answer = post(the_server, "completions", {**ALL, "glass": inside})
    assert answer.status == 400, answer.text
    assert answer.error["param"] == param
    assert says in answer.error["message"]


def test_keys_say_what_may_be_looked_at_and_how_much() -> None:
    named = [
        {"name": "all", "key": "a"},
        {"name": "looks", "key": "b", "glass": ["captures"], "capture_bytes": 2000},
        {"name": "plain", "key": "c", "glass": False},
    ]
    capture: dict[str, Any] = {"captures": [{"at": "layers.0.resid_post", "positions": [0]}]}
    with serving(keys=Keys(named=named)) as one:

        def status(key: str, inside: Any) -> int:
            return post(one, "completions", {**ALL, "glass": inside}, authorization=f"Bearer {key}").status

        assert [status(k, capture) for k in "abc"] == [200, 200, 403]
        assert [status(k, {"skip": ["layers.0"]}) for k in "abc"] == [200, 403, 403]
        assert [status(k, {"captures": [{"at": "layers.0.resid_post"}]}) for k in "abc"] == [200, 400, 403]
        assert [status(k, {}) for k in "abc"] == [200, 200, 200]


def test_a_model_without_named_places_says_so() -> None:
    one = engine()
    one.served.sites = {}
    with serving(one) as server:
        answer = post(server, "completions", {**ALL, "glass": {"skip": ["layers.0"]}})
        assert (answer.status, answer.error["param"]) == (400, "glass")


def test_an_error_inside_of_one_request_is_not_that_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from votive.serve import glass_probe

    from .engines import ask, run

    edits: list[Any] = []
    change = glass_probe.changed

    def broken(x: Any, row: int, start: int, *rest: Any) -> None:
        edits.append(start)
        if start > 8:
            raise RuntimeError("broken")
        change(x, row, start, *rest)

    monkeypatch.setattr(glass_probe, "changed", broken)
    one = engine()
    told = Fields({"steer": [{"at": "layers.0.resid_post", "vector": VECTOR}]}, "glass")
    made = glass_of(told, one.served, Permissions(), [3], 20, 1)
    plain = ask(one, [1, 2, 3], new=20, eos_token_id=None)
    hit = ask(one, [1, 2, 3], new=20, eos_token_id=None, glass=made)
    run(one)
    assert str(hit.error) == "broken"
    assert len(hit.tokens()) > 3
    alone = engine()
    expected = ask(alone, [1, 2, 3], new=20, eos_token_id=None)
    run(alone)
    assert plain.tokens() == expected.tokens()
    assert max(edits) == 9
