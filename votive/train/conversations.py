"""From an example to tokens and which of them are learned: chats, prompts with completions, plain texts.

Knows tokenizers and their chat templates; knows no model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .examples import Example

TRUNCATIONS = ("keep_start", "keep_end", "drop", "error")
_GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")
Message = dict[str, Any]


@dataclass(frozen=True)
class Encoded:
    """Tokens, and for each whether a model learns to say it."""

    ids: list[int]
    learned: list[bool]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def targets(self) -> int:
        """How many tokens are learned; the first follows nothing."""
        return sum(self.learned[1:])


def encode(example: Example, tokenizer: Any, loss_on: str = "assistant") -> Encoded:
    """The tokens of {"messages"}, {"prompt", "completion"} or {"text"}.

    Of a chat the assistant's tokens are learned, of a prompt with a completion the completion's, of a text all; with
    `loss_on="all"` everything is.

    >>> from votive.train.examples import Example
    >>> tok = votive.text.train_bpe(["ab"], vocab_size=257, special_tokens=("</s>",), eos_token="</s>", progress=False)
    >>> found = votive.train.conversations.encode(Example("", {"prompt": "a", "completion": "b"}), tok)
    >>> tok.convert_ids_to_tokens(found.ids), found.learned
    (['a', 'b', '</s>'], [False, True, True])
    """
    if "messages" in example:
        found = chat(example, example.messages("messages"), tokenizer, marked=loss_on != "all")
    elif "prompt" in example or "completion" in example:
        prompt, completion = completed(example, tokenizer, "completion")
        found = Encoded(prompt + completion, [False] * len(prompt) + [True] * len(completion))
    elif "text" in example:
        ids = _ended(_ids(tokenizer, example.text("text"), special=True), tokenizer)
        found = Encoded(ids, [True] * len(ids))
    else:
        names = ", ".join(map(repr, example.values)) or "nothing"
        example.wrong(f'needs "messages", "prompt" and "completion", or "text"; it has {names}.')
    return Encoded(found.ids, [True] * len(found)) if loss_on == "all" else found


def chat(example: Example, messages: Sequence[Message], tokenizer: Any, *, marked: bool = True) -> Encoded:
    """A conversation in the model's own format, in which the assistant's words are learned.

    The template says which they are by its `{% generation %}` marks. From one without them, they are found as what is
    rendered more with each of the assistant's messages. Without `marked`, all tokens are learned.
    """
    if marked and all(m["role"] != "assistant" for m in messages):
        example.wrong("no message is the assistant's, so there is nothing to learn.")
    tools = example.values.get("tools")
    template = _template(example, tokenizer, tools)
    if not marked:
        ids = _ids(tokenizer, _rendered(tokenizer, messages, tools), special=False)
        return Encoded(ids, [True] * len(ids))
    if _GENERATION.search(template):
        found = tokenizer.apply_chat_template(messages, tools=tools, return_assistant_tokens_mask=True)
        return Encoded(list(found["input_ids"]), [bool(m) for m in found["assistant_masks"]])
    text = _rendered(tokenizer, messages, tools)
    row = tokenizer([text], add_special_tokens=False).encodings[0]
    learned = [False] * len(row.ids)
    for start, end in _spans(example, messages, tools, tokenizer, text):
        for i, (a, b) in enumerate(row.offsets):
            if a < b and a < end and b > start:
                learned[i] = True
    return Encoded(list(row.ids), learned)


def _template(example: Example, tokenizer: Any, tools: Any = None) -> str:
    try:
        return str(tokenizer.get_chat_template(None, tools))
    except ValueError:
        example.wrong(
            "the model's tokenizer has no chat template; give one (chat_template=, --chat-template FILE), "
            'or examples with "prompt" and "completion".'
        )


def _rendered(tokenizer: Any, messages: Sequence[Message], tools: Any = None, prompt: bool = False) -> str:
    return str(tokenizer.apply_chat_template(list(messages), tools=tools, tokenize=False, add_generation_prompt=prompt))


def _spans(
    example: Example, messages: Sequence[Message], tools: Any, tokenizer: Any, text: str
) -> list[tuple[int, int]]:
    """Where in the text of a conversation the assistant speaks, from its beginnings."""
    found = []
    for i, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        # A template may need messages before it can ask for an answer.
        before = _rendered(tokenizer, messages[:i], tools, prompt=True) if i else ""
        after = _rendered(tokenizer, messages[: i + 1], tools)
        if not (after.startswith(before) and text.startswith(after)):
            example.wrong(
                "the chat template does not say which words are the assistant's, and renders earlier messages "
                "otherwise when later ones follow; put {% generation %} and {% endgeneration %} around them in the "
                'template (chat_template=, --chat-template FILE), or learn everything with loss_on="all".'
            )
        found.append((len(before), len(after)))
    return found


def completed(example: Example, tokenizer: Any, name: str) -> tuple[list[int], list[int]]:
    """The tokens of a prompt and of what stands in the field `name` behind it, both texts or both messages."""
    if isinstance(example.values.get("prompt"), list) or isinstance(example.values.get(name), list):
        prompt = example.messages("prompt") if "prompt" in example else []
        tools = example.values.get("tools")
        _template(example, tokenizer, tools)
        first = _rendered(tokenizer, prompt, tools, prompt=True) if prompt else ""
        whole = _rendered(tokenizer, [*prompt, *example.messages(name)], tools)
        if not whole.startswith(first):
            example.wrong("the chat template renders the prompt otherwise when an answer follows; give texts instead.")
        return _split(tokenizer, first, whole, special=False)
    first = example.text("prompt")
    before, behind = _split(tokenizer, first, first + example.text(name), special=True)
    return before, _ended(behind, tokenizer)


def prompt_ids(example: Example, tokenizer: Any) -> list[int]:
    """The tokens of a prompt that a model is to answer, a text or messages."""
    if isinstance(example.values.get("prompt"), list):
        tools = example.values.get("tools")
        _template(example, tokenizer, tools)
        text = _rendered(tokenizer, example.messages("prompt"), tools, prompt=True)
        return _ids(tokenizer, text, special=False)
    return _open(_ids(tokenizer, example.text("prompt"), special=True), tokenizer)


def _split(tokenizer: Any, first: str, whole: str, *, special: bool) -> tuple[list[int], list[int]]:
    before = _open(_ids(tokenizer, first, special=special), tokenizer)
    both = _ids(tokenizer, whole, special=special)
    if both[: len(before)] == before:
        return before, both[len(before) :]
    # A token would lie across the border; a model that answers the prompt never sees such a one.
    return before, _ids(tokenizer, whole[len(first) :], special=False)


def _ids(tokenizer: Any, text: str, *, special: bool) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=special)) if text else []


def _open(ids: list[int], tokenizer: Any) -> list[int]:
    """Without the end that some tokenizers put behind every text."""
    end = tokenizer.eos_token_id
    return ids[:-1] if len(ids) > 1 and end is not None and ids[-1] == end else ids


def _ended(ids: list[int], tokenizer: Any) -> list[int]:
    end = tokenizer.eos_token_id
    return ids if end is None or (ids and ids[-1] == end) else [*ids, end]


def fitted(example: Example, found: Encoded, context: int, truncation: str) -> Encoded | None:
    """What of an example goes into `context` tokens; None where it is to be left out.

    >>> from votive.train.conversations import Encoded, fitted
    >>> from votive.train.examples import Example
    >>> fitted(Example("", {}), Encoded([1, 2, 3], [False, True, True]), 2, "keep_start").ids
    [1, 2]
    """
    if len(found) > context:
        if truncation == "error":
            example.wrong(f"has {len(found)} tokens, more than context={context}; cut it, or choose a truncation.")
        if truncation == "drop":
            return None
        part = slice(0, context) if truncation == "keep_start" else slice(len(found) - context, None)
        found = Encoded(found.ids[part], found.learned[part])
    return found if found.targets else None
