"""The official client works as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .client import engine, serving, tokenizer
from .test_embeddings import encoder

openai = pytest.importorskip("openai", reason="it is about the official client")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    from votive.serve.keys import Keys

    with serving(engine(max_texts=4), encoder=encoder(), keys=Keys(["secret"])) as one:
        with openai.OpenAI(base_url=f"{one.url}/v1", api_key="secret", timeout=120, max_retries=0) as made:
            yield made


TALK: Any = [{"role": "user", "content": "Hi"}]


def test_chats(client: Any) -> None:
    answer = client.chat.completions.create(model="tiny", messages=TALK, max_tokens=6, n=2, logprobs=True, seed=1)
    assert [c.message.role for c in answer.choices] == ["assistant", "assistant"]
    assert answer.usage.completion_tokens <= 12
    assert answer.choices[0].logprobs.content[0].logprob <= 0


def test_streams(client: Any) -> None:
    asked = {"model": "tiny", "messages": TALK, "max_tokens": 6, "temperature": 0, "extra_body": {"ignore_eos": True}}
    whole = client.chat.completions.create(**asked).choices[0].message.content
    parts = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert "".join(p.choices[0].delta.content or "" for p in parts if p.choices) == whole
    assert parts[-1].usage.completion_tokens == 6
    with client.chat.completions.stream(model="tiny", messages=TALK, logit_bias={"0": 100}) as stream:
        assert stream.get_final_completion().choices[0].finish_reason == "stop"


def test_completions(client: Any) -> None:
    answer = client.completions.create(model="tiny", prompt=["Once", "The cat"], max_tokens=4, logprobs=2, echo=False)
    assert len(answer.choices) == 2
    assert len(answer.choices[0].logprobs.tokens) == len(answer.choices[0].logprobs.token_logprobs)


def test_vectors_and_models(client: Any) -> None:
    found = client.embeddings.create(model="vectors", input=["a cat", "a queen"])  # it asks for base64 by itself
    expected = encoder().encode(["a cat", "a queen"]).tolist()
    assert found.data[1].embedding == pytest.approx(expected[1], rel=1e-5)
    assert [m.id for m in client.models.list()] == ["tiny", "vectors"]
    assert client.models.retrieve("tiny").id == "tiny"


def test_tools_and_forms(client: Any) -> None:
    pytest.importorskip("llguidance", reason="forms of texts are found by llguidance")
    pydantic = pytest.importorskip("pydantic")

    class Person(pydantic.BaseModel):  # type: ignore[misc, name-defined]
        age: int = pydantic.Field(ge=0, le=99)
        ok: bool

    words = tokenizer()
    # Between the parts there may be any number of spaces, and a model with random weights would write them.
    spaces = {str(i): -100 for i in range(len(words)) if words.token_bytes(i).isspace()}
    answer = client.chat.completions.parse(
        model="tiny", messages=TALK, max_tokens=400, response_format=Person, logit_bias=spaces
    )
    assert 0 <= answer.choices[0].message.parsed.age <= 99
    function: Any = {
        "name": "f",
        "parameters": {"type": "object", "properties": {"x": {"enum": [1, 2]}}, "required": ["x"]},
    }
    function["parameters"]["additionalProperties"] = False
    answer = client.chat.completions.create(
        model="tiny",
        messages=TALK,
        max_tokens=200,
        tools=[{"type": "function", "function": function}],
        tool_choice={"type": "function", "function": {"name": "f"}},
    )
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "f"
    talk = [*TALK, answer.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "3"}]
    client.chat.completions.create(model="tiny", messages=talk, max_tokens=2)


def test_what_is_found_inside_comes_beside_the_text(client: Any) -> None:
    inside = {"captures": [{"at": "layers.1.resid_post", "positions": [-1]}]}
    answer = client.chat.completions.create(model="tiny", messages=TALK, max_tokens=2, extra_body={"glass": inside})
    assert answer.glass["choices"][0]["captures"][0]["shape"] == [1, 32]


def test_errors_are_those_that_clients_know(client: Any) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="tiny", messages=TALK, n=5)
    assert "this server writes 4" in str(refused.value)
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="gpt-4o", messages=TALK)
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").models.list()
    with pytest.raises(openai.BadRequestError) as long:
        client.completions.create(model="tiny", prompt="x", max_tokens=5000)
    assert long.value.code == "context_length_exceeded"


def test_transcriptions(tmp_path: Path) -> None:
    pytest.importorskip("soundfile", reason="sound files are read by soundfile")
    from votive.speech import Transcriber

    from .test_transcriptions import small, wav

    hearer = Transcriber.from_pretrained(small.written(tmp_path / "whisper"))
    with serving(hearer=hearer) as one, openai.OpenAI(base_url=f"{one.url}/v1", api_key="x", timeout=120) as client:
        file: Any = ("speech.wav", wav(0.4))
        plain = client.audio.transcriptions.create(model="whisper", file=file, language="en", temperature=0.1)
        assert isinstance(plain.text, str)
        told = client.audio.transcriptions.create(
            model="whisper", file=file, response_format="verbose_json", timestamp_granularities=["segment", "word"]
        )
        assert told.duration == pytest.approx(0.4, abs=0.01)
        assert told.segments is not None
        assert told.words is not None
