"""Chat templates render as transformers renders them, and hostile ones do no harm."""

from __future__ import annotations

import pickle
import time
import tracemalloc
import warnings
from typing import Any, Literal

import pytest

from votive.text import TemplateError, Tokenizer, sandbox, train_bpe
from votive.text.tools import schema

from .templates import CHATML, STYLES
from .vocabularies import byte_level


def chatting(template: str | dict[str, str]) -> Tokenizer:
    tok = pickle.loads(pickle.dumps(byte_level()))
    tok.bos_token = "<s>"
    tok.chat_template = template
    return tok


def weather(city: str, unit: Literal["c", "f"] = "c", days: int | None = None) -> str:
    """The weather of a city & its <surroundings>.

    Args:
        city: The city,
            with its country.
        unit: The unit of the temperature.
        days: How many days ahead.

    Returns:
        What the sky will do.
    """
    return city + unit + str(days)


USER = {"role": "user", "content": " Grüß <dich> 🎉 "}
CALL = {"function": {"name": "weather", "arguments": {"city": "Köln <am> Rhein", "days": 2}}}
CHATS: dict[str, list[dict[str, Any]]] = {
    "one": [USER],
    "system": [{"role": "system", "content": "Be brief."}, USER],
    "turns": [
        {"role": "system", "content": "Be brief."},
        USER,
        {"role": "assistant", "content": "Hello. "},
        {"role": "user", "content": "And?"},
    ],
    "thinking": [
        USER,
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nSo."},
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": "Because.", "reasoning_content": "long\nthoughts"},
    ],
    "tool": [
        USER,
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": "rain"},
        {"role": "assistant", "content": "It rains."},
        {"role": "user", "content": "Thanks"},
    ],
}


# No other template reads what switches thinking off, and it is said so.
@pytest.mark.filterwarnings("ignore:apply_chat_template. the template never reads")
@pytest.mark.parity
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("chat", CHATS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"add_generation_prompt": True},
        {"add_generation_prompt": True, "enable_thinking": False},
        {"tools": [weather]},
        {"tools": [schema(weather), {"type": "function", "function": {"name": "é<&>"}}]},
        {"continue_final_message": True},
    ],
    ids=["plain", "prompt", "no-thinking", "function", "schemas", "continue"],
)
def test_templates_render_as_in_transformers(style: str, chat: str, options: dict[str, Any], tmp_path: Any) -> None:
    transformers = pytest.importorskip("transformers")
    tok = chatting(STYLES[style])
    other = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tok.backend, bos_token="<s>", eos_token="<|endoftext|>"
    )
    other.chat_template = STYLES[style]
    try:
        want = other.apply_chat_template(CHATS[chat], tokenize=False, **options)
    except Exception:
        with pytest.raises(ValueError, match="apply_chat_template"):
            tok.apply_chat_template(CHATS[chat], tokenize=False, **options)
        return
    assert tok.apply_chat_template(CHATS[chat], tokenize=False, **options) == want
    ids = other.apply_chat_template(CHATS[chat], **options)["input_ids"]
    assert tok.apply_chat_template(CHATS[chat], **options)["input_ids"] == ids


def test_a_conversation_becomes_text_and_ids() -> None:
    tok = chatting(CHATML)
    chat = [{"role": "user", "content": "Hi"}]
    text = tok.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    assert text == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    enc = tok.apply_chat_template(chat, add_generation_prompt=True, return_tensors="np")
    assert enc["input_ids"].tolist() == [tok.encode(text)]
    ids = tok.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
    assert ids == tok.encode(text)


def test_several_conversations_are_a_batch() -> None:
    tok = chatting(CHATML)
    chats = [[{"role": "user", "content": c}] for c in ("a", "bcd")]
    assert tok.apply_chat_template(chats, tokenize=False)[1] == ("<|im_start|>user\nbcd<|im_end|>\n")
    batch = tok.apply_chat_template(chats, padding=True, return_tensors="vt")
    assert batch.input_ids.shape[0] == 2


def test_a_message_can_be_continued() -> None:
    tok = chatting(CHATML)
    chat = [USER, {"role": "assistant", "content": "The answer is "}]
    text = tok.apply_chat_template(chat, continue_final_message=True, tokenize=False)
    assert text.endswith("<|im_start|>assistant\nThe answer is ")
    assert chat[1]["content"] == "The answer is "
    with pytest.raises(ValueError, match="pass one of them"):
        tok.apply_chat_template(chat, continue_final_message=True, add_generation_prompt=True)
    with pytest.raises(ValueError, match="needs a last message"):
        tok.apply_chat_template([{"role": "assistant"}], continue_final_message=True)


def test_templates_are_chosen_by_name() -> None:
    tok = chatting({"default": "D", "tool_use": "T", "rag": "R"})
    assert tok.apply_chat_template([], tokenize=False) == "D"
    assert tok.apply_chat_template([], tools=[weather], tokenize=False) == "T"
    assert tok.apply_chat_template([], chat_template="rag", tokenize=False) == "R"
    assert tok.apply_chat_template([], chat_template="{{ 1 + 1 }}", tokenize=False) == "2"
    with pytest.raises(ValueError, match="none of the templates is the default"):
        chatting({"rag": "R"}).apply_chat_template([])
    with pytest.raises(ValueError, match="has no chat template"):
        byte_level().apply_chat_template([])


def test_templates_are_saved_and_found_again(tmp_path: Any) -> None:
    tok = chatting({"default": CHATML + "\n", "tool_use": "T"})
    tok.save_pretrained(tmp_path)
    assert Tokenizer.from_pretrained(tmp_path).chat_template == tok.chat_template


@pytest.mark.parametrize("bad", ["hi", {"role": "user"}, 3])
def test_what_is_no_conversation_is_a_type_error(bad: Any) -> None:
    with pytest.raises(TypeError, match="a conversation is a list of messages"):
        chatting(CHATML).apply_chat_template(bad)
    with pytest.raises(TypeError, match="a message is a dict"):
        chatting(CHATML).apply_chat_template(["hi"])


def test_the_template_sees_no_methods_of_other_objects() -> None:
    class Sneaky:
        def burn(self) -> str:
            raise AssertionError("called")

    tok = chatting("{{ messages[0].content }}{{ messages[0].content.burn is defined }}")
    message = {"role": "user", "content": Sneaky()}
    assert tok.apply_chat_template([message], tokenize=False) == "<Sneaky>False"


def test_time_and_json_are_there() -> None:
    tok = chatting("{{ strftime_now('%Y')|length }}{{ {'a': '<é>'}|tojson }}{{ [1]|tojson(indent=2) }}")
    assert tok.apply_chat_template([], tokenize=False) == '4{"a": "<é>"}[\n  1\n]'


def test_loops_can_be_left() -> None:
    tok = chatting("{% for i in range(9) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}")
    assert tok.apply_chat_template([], tokenize=False) == "012"


def test_a_failing_template_says_what_failed() -> None:
    with pytest.raises(TemplateError, match="apply_chat_template: only users"):
        chatting("{{ raise_exception('only users') }}").apply_chat_template([])
    with pytest.raises(TemplateError, match="line 2"):
        chatting("a\n{% if %}").apply_chat_template([])
    with pytest.raises(TemplateError, match="'nothing' is undefined"):
        chatting("{{ nothing.at.all }}").apply_chat_template([])


ESCAPES = [
    "{{ ''.__class__.__mro__ }}",
    "{{ messages.__class__.__base__.__subclasses__() }}",
    "{{ (messages|attr('__class__')).__base__ }}",
    "{{ cycler.__init__.__globals__.os.system('true') }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ raise_exception.__globals__ }}",
    "{{ self.__init__.__globals__ }}",
    "{{ self._TemplateReference__context.environment }}",
    "{{ dict.__class__.__mro__[1] }}",
    "{{ '{0.__class__.__mro__}'.format(messages) }}",
    "{{ '{a.__class__}'.format_map({'a': 1}) }}",
    "{% set ns = namespace(__class__=1) %}",
    "{% set ns = namespace() %}{% set ns.__dict__ = 1 %}",
    "{{ messages.append(1) }}",
    "{{ messages|map('attr', '__class__')|list }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
    "{{ lipsum(1) }}",
]
HUGE = [
    "{{ 'a' * 10**10 }}",
    "{{ [0] * 10**9 }}",
    "{{ 10**(10**10) }}",
    *(
        f"{{% set n = namespace(x={x}) %}}{{% for i in range(99) %}}{{% set n.x = {more} %}}{{% endfor %}}{{{{ n.x }}}}"
        for x, more in [
            ("3", "n.x * n.x"),
            ("'ab'", "n.x ~ n.x"),
            ("'ab'", "n.x + n.x"),
            ("[1]", "n.x + n.x"),
            ("[]", "[n.x, n.x]"),
            ("[]", "(n.x, n.x)"),
            ("[]", "{1: n.x, 2: n.x}"),
            ("[]", "dict(a=n.x, b=n.x)"),
            ("[]", "[n.x]|list + [n.x]"),
        ]
    ),
    "{% set n = namespace() %}{% set n.x = n %}{{ n }}" + "{{ 'x' * 10**10 }}",
    "{{ range(10**9)|list }}",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}{% for j in range(99999) %}abc{% endfor %}{% endfor %}",
    "{% set big = 'x' * 9999999 %}{% for i in range(9999) %}{{ big }}{% endfor %}",
    "{% set big = 'x' * 9999999 %}{% macro m() %}{% for i in range(9999) %}{{ big }}{% endfor %}"
    "{% endmacro %}{{ m() }}",
    "{% set big %}{% for i in range(99999) %}{% for j in range(99) %}" + "x" * 999 + "{% endfor %}"
    "{% endfor %}{% endset %}{{ big }}",
    "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "{{ 'x'.ljust(10**10) }}",
    "{{ 'x'|center(10**10) }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '%*d' % (1000000000, 1) }}",
    "{{ '{:>1000000000}'.format(1) }}",
    "{{ '{:>{w}}'.format(1, w=1000000000) }}",
    "{{ '%1000000000d'|format(1) }}",
    "{{ ('a' * 9999999).replace('a', 'b' * 9999999) }}",
    "{{ ('a' * 9999999)|replace('a', 'b' * 9999999) }}",
    "{{ ('b' * 9999999).join('a' * 9999999) }}",
    "{{ ('a' * 9999999)|list|join('b' * 9999999) }}",
    "{{ ('\\n' * 9999999)|indent(9999999) }}",
    "{{ ('\\t' * 9999999).expandtabs(9999999) }}",
    "{{ [[1]]|tojson(indent=1000000000) }}",
    "{{ [1]|batch(10**10, 0)|list }}",
    "{{ [1]|slice(10**10)|list }}",
    "{{ ([range(99999)|list] * 99999)|sum(start=[]) }}",
    "{{ ([range(99999)|list] * 99999)|map('list')|list|length }}",
    "{{ (['x' * 9999999] * 99999)|map('upper')|list|length }}",
    "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "x" * 2_000_000,
]


@pytest.mark.parametrize("template", ESCAPES)
def test_a_template_cannot_reach_out(template: str) -> None:
    tok = chatting(template)
    try:
        text = tok.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False)
    except TemplateError:
        return
    # Jinja renders what may not be read as nothing, or refuses.
    assert "<class" not in text
    assert "built-in" not in text
    assert "root:" not in text


@pytest.mark.parametrize("template", HUGE, ids=range(len(HUGE)))
def test_a_template_cannot_take_much_time_or_memory(template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "MAX_SECONDS", 1.0)
    tok = chatting(template)
    tracemalloc.start()
    start = time.monotonic()
    try:
        with pytest.raises(TemplateError, match="apply_chat_template"):
            tok.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False)
        # Single operations go on after the second is over, and tracing memory slows all.
        assert time.monotonic() - start < 20
        assert tracemalloc.get_traced_memory()[1] < 1 << 29
    finally:
        tracemalloc.stop()


def test_a_long_chat_is_rendered() -> None:
    tok = chatting(CHATML)
    chat = [{"role": "user", "content": "word " * 200}] * 5000
    assert len(tok.apply_chat_template(chat, tokenize=False)) > 5_000_000


@pytest.mark.parity
def test_functions_are_described_as_in_transformers() -> None:
    utils = pytest.importorskip("transformers.utils")

    def mixed(a: str, b: list[float], c: dict[str, int], d: int | str = 1, e: bool = True) -> float:
        """Do it.

        More text.

        Args:
            a: a thing (choices: ["x", "y"])
            b: numbers
            c: a map
            d: either
            e: flag

        Returns:
            A number.
        """
        return 0.0

    def plain() -> None:
        """The time now."""

    for fn in (weather, mixed, plain):
        assert schema(fn) == utils.get_json_schema(fn)


def test_a_function_without_hints_or_description_is_no_tool() -> None:
    def silent(a: int) -> None: ...

    def untyped(a) -> None:  # type: ignore[no-untyped-def]
        """Do."""

    def undescribed(a: int) -> None:
        """Do."""

    for fn, message in ((silent, "docstring"), (untyped, "type hint"), (undescribed, "'a'")):
        with pytest.raises(ValueError, match=message):
            schema(fn)


@pytest.mark.parametrize("name", ["tools", "documents"])
def test_what_a_template_never_reads_is_warned_of(name: str) -> None:
    tok = train_bpe(["hi"], vocab_size=257, progress=False)
    tok.chat_template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    chat = [{"role": "user", "content": "Hi"}]
    with pytest.warns(UserWarning, match=f"never reads '{name}'"):
        assert tok.apply_chat_template(chat, tokenize=False, **{name: [{"a": 1}]}) == "Hi"
    tok.chat_template = "{{ " + name + " | length }}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tok.apply_chat_template(chat, tokenize=False, **{name: [{"a": 1}]}) == "1"


@pytest.mark.parametrize(
    "option",
    [
        {"padding": True},
        {"truncation": True},
        {"max_length": 3},
        {"return_tensors": "np"},
        {"tokenizer_kwargs": {"padding": True}},
    ],
)
def test_what_is_about_tokens_is_refused_for_a_text(option: dict[str, Any]) -> None:
    tok = train_bpe(["hi"], vocab_size=257, progress=False)
    tok.chat_template = "x"
    with pytest.raises(ValueError, match=f"{next(iter(option))}=.*tokenize=False"):
        tok.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False, **option)
