"""Chat templates: a list of messages as the text that a model was trained on.

A part of `Tokenizer`. Templates come with models and are not trusted: `sandbox.py` renders them.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .encoding import BatchEncoding, as_arrays, check_tensors, pad_rows
from .sandbox import render_marked
from .special import SpecialTokens

_REASONING = ("reasoning_content", "thinking", "reasoning")
_MARK = "CONTINUE_FINAL_MESSAGE_TAG "


class ChatTemplates(SpecialTokens):
    """What `Tokenizer` knows about chat."""

    chat_templates: dict[str, str]
    padding_side: str
    __call__: Callable[..., Any]

    def _init_chat(self, template: str | Mapping[str, str] | None) -> None:
        self.chat_templates = {}
        self.chat_template = template

    @property
    def chat_template(self) -> str | dict[str, str] | None:
        """The template, a dict of them by name where there are several, or None."""
        if set(self.chat_templates) <= {"default"}:
            return self.chat_templates.get("default")
        return dict(self.chat_templates)

    @chat_template.setter
    def chat_template(self, value: str | Mapping[str, str] | None) -> None:
        if value is None:
            self.chat_templates = {}
        elif isinstance(value, str):
            self.chat_templates = {"default": value}
        else:
            self.chat_templates = {str(k): str(v) for k, v in value.items()}

    def get_chat_template(self, chat_template: str | None = None, tools: list[Any] | None = None) -> str:
        """The template to use: by name, given as text, "tool_use" for tools, or the default."""
        if chat_template is not None:
            return self.chat_templates.get(chat_template, chat_template)
        if tools is not None and "tool_use" in self.chat_templates:
            return self.chat_templates["tool_use"]
        if "default" in self.chat_templates:
            return self.chat_templates["default"]
        if self.chat_templates:
            raise ValueError(
                "apply_chat_template: none of the templates is the default; pass chat_template= "
                f"one of {sorted(self.chat_templates)}."
            )
        raise ValueError(
            "apply_chat_template: this tokenizer has no chat template; set tok.chat_template or pass chat_template=."
        )

    def apply_chat_template(
        self,
        conversation: Sequence[Any],
        tools: list[Any] | None = None,
        documents: list[dict[str, Any]] | None = None,
        chat_template: str | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        tokenize: bool = True,
        padding: bool | str = False,
        truncation: bool | str | None = False,
        max_length: int | None = None,
        return_tensors: str | None = None,
        return_dict: bool = True,
        return_assistant_tokens_mask: bool = False,
        tokenizer_kwargs: Mapping[str, Any] | None = None,
        **variables: Any,
    ) -> Any:
        """A conversation (or a list of them) in the model's own format.

        Messages are dicts with "role" and "content". Returns the encoding, its ids with
        `return_dict=False`, or the text with `tokenize=False`. Other keyword arguments (such as
        `enable_thinking`) are variables of the template. With `return_assistant_tokens_mask` the
        encoding has `assistant_masks`: 1 for tokens between the template's `{% generation %}` and
        `{% endgeneration %}`, which is what a model learns to say.

        >>> tok = votive.text.train_bpe(["hi"], vocab_size=257, progress=False)
        >>> tok.chat_template = "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}"
        >>> tok.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)
        '[user] Hi'
        """
        if continue_final_message and add_generation_prompt:
            raise ValueError(
                "apply_chat_template: add_generation_prompt begins a new message and "
                "continue_final_message goes on with the last; pass one of them."
            )
        template = self.get_chat_template(chat_template, tools)
        if return_assistant_tokens_mask:
            _check_mask(template, tokenize and return_dict, continue_final_message)
        if not tokenize:
            _check_untokenized(padding, truncation, max_length, return_tensors, tokenizer_kwargs)
        optional = {"tools": tools, "documents": documents}
        read = {name: value for name, value in optional.items() if value}
        if template == self.chat_templates.get("tool_use"):
            read.pop("tools", None)  # they chose it
        _check_variables(template, {**variables, **read})
        batched = _is_batch(conversation)
        given = {
            **{k: v for k, v in self.special_tokens_map.items() if isinstance(v, str)},
            **variables,
            "tools": None if tools is None else [_tool(t) for t in tools],
            "documents": documents,
            "add_generation_prompt": add_generation_prompt,
        }
        rendered = [
            _render_one(template, chat, given, continue_final_message)
            for chat in (conversation if batched else [conversation])
        ]
        texts = [text for text, _ in rendered]
        if not tokenize:
            return texts if batched else texts[0]
        options = {
            "padding": padding,
            "truncation": truncation,
            "max_length": max_length,
            "add_special_tokens": False,
            **(tokenizer_kwargs or {}),
        }
        if return_assistant_tokens_mask:
            check_tensors(return_tensors)
            found = self(texts, **options)
            side = options.get("padding_side") or self.padding_side
            spans = [spans for _, spans in rendered]
            if "overflow_to_sample_mapping" in found:
                spans = [spans[i] for i in found["overflow_to_sample_mapping"]]
            found["assistant_masks"] = _masks(found, spans, side)
            columns = dict(found)
            if return_tensors is not None:
                columns = as_arrays(columns, return_tensors)
            elif not batched and "overflow_to_sample_mapping" not in found:
                columns = {name: rows[0] for name, rows in columns.items()}
            return BatchEncoding(columns, found.encodings, not batched)
        encoded = self(texts if batched else texts[0], return_tensors=return_tensors, **options)
        return encoded if return_dict else encoded["input_ids"]


def _is_batch(conversation: object) -> bool:
    if not isinstance(conversation, (list, tuple)):
        raise TypeError(
            f"apply_chat_template: a conversation is a list of messages; got {type(conversation).__name__}."
        )
    return bool(conversation) and isinstance(conversation[0], (list, tuple))


def _tool(tool: object) -> Any:
    if isinstance(tool, Mapping):
        return tool
    if callable(tool):
        from .tools import schema

        return schema(tool)
    raise TypeError(f"apply_chat_template: a tool is a JSON schema or a function; got {type(tool).__name__}.")


def _check_mask(template: str, encoded: bool, go_on: bool | str) -> None:
    if not encoded:
        raise ValueError(
            "apply_chat_template: return_assistant_tokens_mask=True marks tokens of an encoding; "
            "it needs tokenize=True and return_dict=True."
        )
    if go_on:
        raise ValueError(
            "apply_chat_template: continue_final_message and return_assistant_tokens_mask=True do not go together."
        )
    if not re.search(r"\{%-?\s*generation\s*-?%\}", template):
        raise ValueError(
            "apply_chat_template: return_assistant_tokens_mask=True, but the template has no "
            "{% generation %}, so it does not say which words are the assistant's; pass a "
            "chat_template= that puts {% generation %} and {% endgeneration %} around them."
        )


def _check_untokenized(
    padding: object, truncation: object, max_length: object, return_tensors: object, tokenizer_kwargs: object
) -> None:
    given = {
        "padding": padding,
        "truncation": truncation,
        "max_length": max_length,
        "return_tensors": return_tensors,
        "tokenizer_kwargs": tokenizer_kwargs,
    }
    for name, value in given.items():
        if value not in (None, False, {}, "do_not_pad", "do_not_truncate"):
            raise ValueError(
                f"apply_chat_template: {name}={value!r} is about tokens, and tokenize=False gives "
                "the text; leave out one of them."
            )


def _check_variables(template: str, variables: Mapping[str, Any]) -> None:
    """Refuse what belongs to the tokenizer, and warn of what no template reads."""
    from .tokenizer import Tokenizer

    own = inspect.signature(Tokenizer.__call__).parameters
    for name in variables:
        if name in own or name == "sanitize_control_tokens":
            raise TypeError(
                f"apply_chat_template: {name!r} is no variable of a template; "
                + (f"pass tokenizer_kwargs={{{name!r}: ...}}." if name in own else "leave it out.")
            )
        if not re.search(rf"\b{re.escape(name)}\b", template):
            warnings.warn(
                f"apply_chat_template: the template never reads {name!r}, so it changes nothing.", stacklevel=3
            )


def _masks(found: BatchEncoding, spans: list[list[tuple[int, int]]], side: str) -> list[list[int]]:
    """For each token whether it holds characters within one of its row's spans."""
    masks = []
    for row, ids, wanted in zip(found.encodings, found["input_ids"], spans, strict=True):
        mask = [0] * len(row.ids)
        for start, end in wanted:
            inside = [i for i, (a, b) in enumerate(row.offsets) if a < b and a < end and b > start]
            if inside:  # else it was cut off
                # Tokens without characters of their own belong to what is around them.
                first, last = inside[0], inside[-1]
                mask[first : last + 1] = [1] * (last + 1 - first)
        masks += pad_rows([mask], len(ids), side, 0)
    return masks


def _render_one(
    template: str, chat: Iterable[object], given: Mapping[str, Any], go_on: bool | str
) -> tuple[str, list[tuple[int, int]]]:
    messages = [_message(m) for m in chat]
    final = ""
    if go_on:
        final = _mark_final(messages, template, go_on if isinstance(go_on, str) else "content")
    text, spans = render_marked(template, {**plain(given), "messages": messages})
    return (_cut_at_mark(text, final), []) if go_on else (text, spans)


def _message(message: object) -> dict[str, Any]:
    made = plain(message)
    if not isinstance(made, dict):
        raise TypeError(f"apply_chat_template: a message is a dict with 'role' and 'content'; got {message!r:.80}.")
    # Models call what they think by different names; templates read one of two.
    thought = next((made[k] for k in _REASONING if made.get(k) is not None), None)
    return made if thought is None else {"thinking": thought, **made, "reasoning_content": thought}


def _mark_final(messages: list[dict[str, Any]], template: str, field: str) -> str:
    last = messages[-1] if messages else {}
    final = last.get(field)
    if final is None:
        raise ValueError(f"apply_chat_template: continue_final_message needs a last message with {field!r}.")
    fields = [f for f in _REASONING if last.get(f) == final] if field in _REASONING else [field]
    if not any(f in template for f in fields):
        raise ValueError(
            f"apply_chat_template: continue_final_message={field!r}, but the template never reads {field!r}."
        )
    if isinstance(final, str):
        for f in fields:
            last[f] = final + _MARK
        return final
    for block in reversed(final):
        if "text" in block:
            text = block["text"]
            block["text"] = text + _MARK
            return text
    raise ValueError("apply_chat_template: the last message has no text to continue.")


def _cut_at_mark(text: str, final: str) -> str:
    if final.strip() not in text or _MARK.strip() not in text:
        raise ValueError(
            "apply_chat_template: the template does not render the last message as it is, so it "
            f"cannot be continued; it gave {text!r:.200}."
        )
    at = text.rindex(_MARK.strip())
    # Where the template strips messages, the end of the message is stripped as well.
    return text[:at] if text[at : at + len(_MARK)] == _MARK else text[:at].rstrip()


def plain(value: object) -> Any:
    """A copy made of JSON types alone: a template must not reach methods of other objects."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (int, float)):
        return int(value) if isinstance(value, int) else float(value)
    if isinstance(value, Mapping):
        return {plain(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(v) for v in value) if type(value) in (list, tuple) else [plain(v) for v in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return plain(value.item())
    return f"<{type(value).__name__}>"


def check_name(name: str) -> str:
    """A template name that may be the name of a file."""
    if not re.fullmatch(r"[\w.-]+", name) or name.startswith("."):
        raise ValueError(f"a chat template's name has letters, digits, '_', '-'; got {name!r}.")
    return name
