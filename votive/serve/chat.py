"""From messages to what a model reads: its chat template, its tools, the tokens that end a turn."""

from __future__ import annotations

import json
from typing import Any

from .body import Fields
from .errors import wrong

ROLES = ("system", "developer", "user", "assistant", "tool")
_MESSAGES, _TOOLS = 4096, 128


def messages_of(given: Any) -> list[dict[str, Any]]:
    """Messages as templates take them, checked.

    >>> from votive.serve.chat import messages_of
    >>> messages_of([{"role": "user", "content": [{"type": "text", "text": "Hi"}]}])
    [{'role': 'user', 'content': 'Hi'}]
    """
    if not isinstance(given, list) or not given or len(given) > _MESSAGES:
        raise wrong(f"messages must be a list of 1 to {_MESSAGES:,} messages.", "messages")
    return [_message(f"messages[{i}]", m) for i, m in enumerate(given)]


def _message(name: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise wrong(f"{name} must be an object with a role and a content.", name)
    fields = Fields(given, name)
    role = fields.one_of("role", ROLES)
    if role is None:
        raise fields.wrong("role", f"one of {', '.join(ROLES)}")
    found: dict[str, Any] = {"role": "system" if role == "developer" else role}
    content = fields.any("content")
    calls = fields.listed("tool_calls", most=_TOOLS) if role == "assistant" else None
    found["content"] = _content(f"{name}.content", content) if content is not None else ""
    if content is None and not calls:
        raise fields.wrong("content", "a text, or a list of parts")
    if calls:
        found["tool_calls"] = [_call(f"{name}.tool_calls[{i}]", c) for i, c in enumerate(calls)]
    if role == "tool":
        identity = fields.text("tool_call_id", longest=256)
        if identity is not None:
            found["tool_call_id"] = identity
    said = fields.text("name", longest=256)
    if said is not None:
        found["name"] = said
    thoughts = fields.text("reasoning_content")
    if thoughts is not None:
        found["reasoning_content"] = thoughts  # for templates that show them again
    for name in ("refusal", "annotations", "audio", "function_call", "images"):
        fields.only(name, None, [], instead="messages are texts, and calls of tools are tool_calls")
    fields.end()
    return found


def _content(name: str, given: Any) -> str:
    if isinstance(given, str):
        return given
    if not isinstance(given, list):
        raise wrong(f"{name} must be a text or a list of parts.", name)
    texts = []
    for i, part in enumerate(given):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind != "text" or not isinstance(part.get("text"), str):
            raise wrong(
                f"{name}[{i}] must be a part of type text; pictures and sounds are not read here.", f"{name}[{i}]"
            )
        texts.append(part["text"])
    return "".join(texts)


def _call(name: str, given: Any) -> dict[str, Any]:
    function = given.get("function") if isinstance(given, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise wrong(f"{name} must be a call of a function with a name and arguments.", name)
    arguments = function.get("arguments", "{}")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError:
            raise wrong(f"{name}.function.arguments must be JSON.", name) from None
    if not isinstance(arguments, dict):
        raise wrong(f"{name}.function.arguments must be a JSON object.", name)
    found = {"type": "function", "function": {"name": function["name"], "arguments": arguments}}
    if isinstance(given.get("id"), str):
        found["id"] = given["id"]
    return found


def tools_of(fields: Fields) -> tuple[list[dict[str, Any]], str | None]:
    """The tools of a request, and which must be called: a name, "*" for any of them, None for no need to."""
    listed = fields.listed("tools", most=_TOOLS) or []
    tools = [_tool(f"tools[{i}]", t) for i, t in enumerate(listed)]
    names = [t["function"]["name"] for t in tools]
    if len(set(names)) < len(names):
        raise wrong("two tools have the same name.", "tools")
    choice = fields.any("tool_choice")
    if choice in (None, "auto"):
        if any(t["function"].get("strict") for t in tools):
            raise wrong(
                "strict tools are written under their schemas, which needs a tool_choice of required or of a name; "
                "with auto leave strict out.",
                "tools",
                "unsupported",
            )
        return tools, None
    if choice == "none":
        return [], None
    if not tools:
        raise wrong("tool_choice asks for a tool, and there are no tools.", "tool_choice")
    if choice == "required":
        return tools, "*"
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if name not in names:
        raise wrong(
            f"tool_choice must be none, auto, required or the name of a tool: {', '.join(names)}.", "tool_choice"
        )
    return tools, name


def _tool(name: str, given: Any) -> dict[str, Any]:
    function = given.get("function") if isinstance(given, dict) and given.get("type") == "function" else None
    if not isinstance(function, dict):
        raise wrong(f'{name} must be {{"type": "function", "function": {{…}}}}.', name)
    fields = Fields(function, f"{name}.function")
    said = fields.text("name", longest=64)
    if not said or not all(c.isalnum() or c in "_-." for c in said):
        raise fields.wrong("name", "1 to 64 letters, digits, dots, dashes and underscores")
    fields.text("description")
    fields.table("parameters")
    fields.truth("strict")
    fields.end()
    return {"type": "function", "function": dict(function)}


def form_of_call(tools: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """A JSON schema of a call of a tool, or with "*" of any of them."""
    wanted = [t["function"] for t in tools if name in ("*", t["function"]["name"])]
    each = [
        {
            "type": "object",
            "properties": {"name": {"const": f["name"]}, "arguments": f.get("parameters") or {"type": "object"}},
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for f in wanted
    ]
    form = each[0] if len(each) == 1 else {"anyOf": each}
    # Spaces as templates write them: where any number is allowed, a model may write nothing else.
    return {**form, "x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}}


def prompt_of(
    tokenizer: Any, messages: list[dict[str, Any]], tools: list[dict[str, Any]], variables: dict[str, Any], go_on: bool
) -> list[int]:
    """The ids of a conversation; a model without a chat template goes on with the text of all messages.

    With `go_on` the last message is not complete, and what is written continues it.
    """
    template = tokenizer.chat_template
    if template is None:
        if tools:
            raise wrong("this model has no chat template, so it knows no tools.", "tools")
        ids = list(tokenizer.encode("".join(m["content"] for m in messages)))
        if not ids:
            raise wrong("the messages are empty, and there is nothing to continue.", "messages")
        return ids
    if tools and "tools" not in _text_of(template):
        raise wrong("this model's chat template knows no tools.", "tools")
    reserved = {"conversation", "tokenize", "return_dict", "chat_template", "add_generation_prompt", "tokenizer_kwargs"}
    reserved |= {"return_tensors", "padding", "truncation", "max_length", "continue_final_message", "messages"}
    bad = sorted(reserved & set(variables))
    if bad:
        raise wrong(f"chat_template_kwargs are variables of the template; {bad[0]} is none.", "chat_template_kwargs")
    try:
        found = tokenizer.apply_chat_template(
            messages,
            tools=tools or None,
            add_generation_prompt=not go_on,
            continue_final_message=go_on,
            return_dict=False,
            **variables,
        )
    except Exception as error:  # a template may refuse a conversation in any way
        raise wrong(f"the model's chat template cannot write this conversation: {error}", "messages") from None
    return list(found)


def _text_of(template: Any) -> str:
    return template if isinstance(template, str) else json.dumps(template)


def ends_of(tokenizer: Any) -> list[int]:
    """The tokens that end a turn: those that the tokenizer names, and the one that its template puts behind it."""
    if tokenizer is None:
        return []
    ends = list(tokenizer.eos_token_ids or [])
    if tokenizer.chat_template is not None:
        mark = "ANSWER"
        talk = [{"role": "user", "content": "x"}, {"role": "assistant", "content": mark}]
        try:
            text = tokenizer.apply_chat_template(talk, tokenize=False)
        except Exception:  # a template may refuse such a conversation; it is only a question
            return ends
        after = tokenizer.encode(text.rpartition(mark)[2].lstrip(), add_special_tokens=False)
        if after and after[0] in tokenizer.backend_special_ids():
            ends.append(after[0])
    return list(dict.fromkeys(ends))
