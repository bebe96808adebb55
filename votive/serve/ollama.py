"""Ollama's interface: its requests become those of OpenAI's, and what comes of them is told in its form.

Knows both forms; no engine, no HTTP.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

from .body import Fields
from .errors import ApiError, wrong
from .events import Event
from .keys import Permissions
from .registry import Registry
from .request_parsing import Asked, asked_chat, asked_completion

# Options that have a field of another name or of the same.
_OPTIONS = {
    "num_predict": "max_tokens",
    "repeat_penalty": "repetition_penalty",
    **{
        name: name
        for name in (
            *("temperature", "top_k", "top_p", "min_p", "typical_p", "seed", "stop"),
            *("presence_penalty", "frequency_penalty"),
        )
    },
}
# How the runner of a model is set up; a server that runs says that itself.
_RUNNER = ("num_ctx", "num_batch", "num_gpu", "main_gpu", "num_thread", "num_keep", "use_mmap", "use_mlock", "numa")
LATEST = ":latest"


def model_named(name: Any, registry: Registry) -> Any:
    """The name that a model has here; clients may add a tag.

    >>> from votive.serve.ollama import model_named
    >>> from votive.serve.registry import Registry
    >>> model_named("tales:latest", Registry())
    'tales'
    """
    if isinstance(name, str) and name.endswith(LATEST) and name not in registry.names():
        return name.removesuffix(LATEST)
    return name


def asked_ollama(body: dict[str, Any], registry: Registry, allowed: Permissions, chat: bool) -> Asked:
    """A request to /api/chat or /api/generate."""
    fields = Fields(body)
    made = _options(fields)
    made["model"] = model_named(fields.any("model"), registry)
    made["stream"] = fields.truth("stream", True)
    fields.ignored("keep_alive")
    fields.only("think", None, False, instead="give chat_template_kwargs to /v1/chat/completions")
    form = fields.any("format")
    if form == "json":
        made["response_format"] = {"type": "json_object"}
    elif isinstance(form, dict):
        made["json_schema"] = form
    elif form not in (None, ""):
        raise fields.wrong("format", "'json' or a schema")
    raw = False
    if chat:
        made["messages"] = _messages(fields.any("messages"))
        tools = fields.any("tools")
        if tools:
            made["tools"] = tools
    else:
        prompt, system = fields.text("prompt") or "", fields.text("system")
        raw = fields.truth("raw")
        fields.only("images", None, [], instead="only texts are read")
        fields.only("suffix", None, "", instead="give the text before it as prompt")
        fields.only("template", None, "", instead="the model's own template is used, or raw: true for none")
        fields.only("context", None, [], instead="send the messages to /api/chat")
        if raw and system:
            raise wrong("system goes with the model's template, not with raw.", "system")
        first = [{"role": "system", "content": system}] if system else []
        made |= {"prompt": prompt} if raw else {"messages": [*first, {"role": "user", "content": prompt}]}
    fields.end()
    return (asked_completion if raw else asked_chat)(made, registry, allowed)


def _options(fields: Fields) -> dict[str, Any]:
    options = Fields(fields.table("options") or {}, "options")
    options.ignored(*_RUNNER)
    options.only("mirostat", None, 0, instead="use temperature, top_p or min_p")
    found = {}
    for name, field in _OPTIONS.items():
        value = options.any(name)
        if name == "num_predict" and value in (-1, -2):
            value = None  # as many as there is room for
        if value is not None:
            found[field] = value
    options.end()
    return found


def _messages(given: Any) -> Any:
    """Ollama names the tool that an answer is of; templates read `name`."""
    if not isinstance(given, list):
        return given
    found = []
    for m in given:
        if isinstance(m, dict):
            m = {k: v for k, v in m.items() if not (k in ("images", "thinking", "tool_calls") and not v)}
            if "tool_name" in m:
                m["name"] = m.pop("tool_name")
        found.append(m)
    return found


class Told:
    """An answer in Ollama's form, in parts or whole, with the times that it took."""

    def __init__(self, asked: Asked, chat: bool) -> None:
        self.asked, self.chat = asked, chat
        self.began, self.first = time.perf_counter_ns(), 0

    def parts(self, event: Event) -> list[str]:
        """Lines for what an event adds."""
        found = []
        for part in self.asked.answer.take(event):
            self.first = self.first or time.perf_counter_ns()
            for choice in part["choices"]:
                delta = choice.get("delta", choice)
                text, calls = delta.get("content") or delta.get("text") or "", delta.get("tool_calls")
                if text or calls:
                    found.append(line({**self._head(), **self._said(text, _calls(calls)), "done": False}))
        return found

    def end(self) -> dict[str, Any]:
        """The last line: why it ended, counts and times in nanoseconds."""
        answer, now = self.asked.answer, time.perf_counter_ns()
        first = self.first or now
        return {
            **self._head(),
            **self._said("", []),
            "done": True,
            "done_reason": "length" if answer.reasons[0] == "length" else "stop",
            "total_duration": now - self.began,
            "load_duration": 0,
            "prompt_eval_count": answer.usage.prompt,
            "prompt_eval_duration": first - self.began,
            "eval_count": answer.usage.completion,
            "eval_duration": now - first,
        }

    def whole(self) -> dict[str, Any]:
        """All of it at once."""
        (choice,) = self.asked.answer.whole()["choices"]
        message = choice.get("message", choice)
        text = message.get("content") or message.get("text") or ""
        return {**self.end(), **self._said(text, _calls(message.get("tool_calls")))}

    def _head(self) -> dict[str, Any]:
        return {"model": self.asked.writer.name, "created_at": _now()}

    def _said(self, text: str, calls: list[Any]) -> dict[str, Any]:
        if not self.chat:
            return {"response": text}
        message: dict[str, Any] = {"role": "assistant", "content": text}
        return {"message": {**message, "tool_calls": calls} if calls else message}


def _calls(calls: Any) -> list[Any]:
    """Calls of tools whose arguments are objects, as Ollama has them."""
    found = []
    for call in calls or ():
        function = call["function"]
        arguments = function.get("arguments") or "{}"
        found.append({"function": {"name": function.get("name"), "arguments": json.loads(arguments)}})
    return found


def line(value: dict[str, Any]) -> str:
    """A line of an answer."""
    return json.dumps(value, ensure_ascii=False) + "\n"


def listed(registry: Registry, allowed: Permissions) -> dict[str, Any]:
    """/api/tags: the models that write and those that make vectors."""
    names = [n for n in (*registry.writers, *registry.embedders) if allowed.allows_model(n)]
    return {"models": [_model(n, registry) for n in sorted(names)]}


def _model(name: str, registry: Registry) -> dict[str, Any]:
    then = datetime.fromtimestamp(registry.created, UTC).isoformat()
    return {
        "name": name,
        "model": name,
        "modified_at": then,
        "size": 0,
        "digest": "",
        "details": _details(name, registry),
    }


def _details(name: str, registry: Registry) -> dict[str, Any]:
    model = _inside(name, registry)
    family = str(getattr(getattr(model, "config", None), "model_type", "") or "")
    count = sum(p.numel() for p in model.parameters()) if hasattr(model, "parameters") else 0
    size = f"{count / 1e9:.1f}B" if count >= 1e9 else f"{count / 1e6:.1f}M"
    return {
        "format": "votive",
        "family": family,
        "families": [family],
        "parameter_size": size,
        "quantization_level": "",
    }


def _inside(name: str, registry: Registry) -> Any:
    if name in registry.writers:
        return registry.writers[name].engine.served.model
    return registry.embedders[name].model


def shown(body: dict[str, Any], registry: Registry, allowed: Permissions) -> dict[str, Any]:
    """/api/show: what is known of a model."""
    fields = Fields(body)
    name = fields.any("model")
    name = model_named(fields.any("name") if name is None else name, registry)
    fields.ignored("verbose")
    fields.end()
    known = {*registry.writers, *registry.embedders}
    if not isinstance(name, str) or name not in known or not allowed.allows_model(name):
        raise ApiError(404, f"there is no model {name!r:.100}.", param="model", code="model_not_found")
    found: dict[str, Any] = {"details": _details(name, registry), "modelfile": "", "parameters": ""}
    if name in registry.embedders:
        return {**found, "template": "", "model_info": {}, "capabilities": ["embedding"]}
    served = registry.writers[name].engine.served
    info = {"general.architecture": found["details"]["family"], "votive.context_length": served.context}
    template = served.tokenizer.chat_template
    able = ["completion", *(["tools"] if isinstance(template, str) and "tools" in template else [])]
    return {**found, "template": template or "", "model_info": info, "capabilities": able}


def _now() -> str:
    return datetime.now(UTC).isoformat()
