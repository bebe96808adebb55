"""From the body of a request to what the engine is asked for and the answer that is filled. Runs in a worker thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .answers import Answer, ChatAnswer, CompletionAnswer
from .body import Fields
from .chat import form_of_call, messages_of, prompt_of, tools_of
from .errors import wrong
from .events import TextRequest
from .glass_request import glass_of
from .keys import Permissions
from .registry import Registry, Writer
from .settings import asked_settings

MOST = 128  # texts of one request
_UNHEARD = ("user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention")


@dataclass
class Asked:
    """A request that is understood."""

    writer: Writer
    request: TextRequest
    answer: Answer
    stream: bool
    usage_in_stream: bool


def asked_chat(body: dict[str, Any], registry: Registry, allowed: Permissions) -> Asked:
    """A request to /v1/chat/completions."""
    fields = Fields(body)
    writer = registry.writer(fields.any("model"), allowed)
    tokenizer = _tokenizer(writer)
    messages = messages_of(fields.any("messages"))
    tools, forced = tools_of(fields)
    parallel = fields.truth("parallel_tool_calls", True)
    go_on = fields.truth("continue_final_message")
    if go_on and messages[-1]["role"] != "assistant":
        raise wrong("continue_final_message goes on with an assistant's message.", "continue_final_message")
    prompt = prompt_of(tokenizer, messages, tools, fields.table("chat_template_kwargs") or {}, go_on)
    most = fields.whole("max_completion_tokens", low=1)
    older = fields.whole("max_tokens", low=1)
    wants = fields.truth("logprobs")
    top = fields.whole("top_logprobs", low=0, high=20)
    if top is not None and not wants:
        raise wrong("top_logprobs needs logprobs to be true.", "top_logprobs")
    if forced is not None:
        if any(k in body for k in ("response_format", "regex", "grammar", "choices", "json_schema")):
            raise wrong("a tool that must be called is the form of the text; leave out the other.", "tool_choice")
        fields = Fields({**body, "json_schema": form_of_call(tools, forced)})
        fields.ignored(*_CHAT)
    asked = _asked(fields, writer, [prompt], allowed, most if most is not None else older, None, wants, top or 0)
    asked.answer = ChatAnswer(
        writer.name,
        tokenizer,
        asked.request.texts,
        logprobs=wants,
        ends=set(asked.request.config.eos_ids()),
        tools={t["function"]["name"] for t in tools} if tools else None,
        forced=forced is not None,
        parallel=parallel,
    )
    return asked


_CHAT = (
    *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "continue_final_message"),
    *("chat_template_kwargs", "max_completion_tokens", "max_tokens", "logprobs", "top_logprobs"),
)


def asked_completion(body: dict[str, Any], registry: Registry, allowed: Permissions) -> Asked:
    """A request to /v1/completions."""
    fields = Fields(body)
    writer = registry.writer(fields.any("model"), allowed)
    tokenizer = _tokenizer(writer)
    special = fields.truth("add_special_tokens", True)
    prompts = _prompts(fields, tokenizer, special)
    n = fields.whole("n", low=1, high=MOST) or 1
    fields.only("suffix", None, "", instead="give the text before it as prompt")
    best = fields.whole("best_of", low=1)
    if best is not None and best != n:
        raise wrong("best_of other than n is not supported here; ask for n texts and choose.", "best_of", "unsupported")
    logprobs = fields.whole("logprobs", low=0, high=20)
    echo = fields.truth("echo")
    if echo and logprobs is not None:
        raise wrong("echo with logprobs is not supported here: the prompt has none.", "echo", "unsupported")
    most = fields.whole("max_tokens", low=1)
    asked = _asked(fields, writer, prompts, allowed, most, 16, logprobs is not None, logprobs or 0)
    echoed = [text for p in prompts for text in [tokenizer.decode(p, skip_special_tokens=True)] * n] if echo else None
    asked.answer = CompletionAnswer(
        writer.name,
        tokenizer,
        asked.request.texts,
        logprobs=logprobs is not None,
        ends=set(asked.request.config.eos_ids()),
        echo=echoed,
    )
    return asked


def _asked(
    fields: Fields,
    writer: Writer,
    prompts: list[list[int]],
    allowed: Permissions,
    most: int | None,
    default: int | None,
    logprobs: bool,
    top: int,
) -> Asked:
    """What all requests for texts have in common; the answer is still to be put in."""
    engine = writer.engine
    n = fields.whole("n", low=1, high=MOST) or 1
    config = asked_settings(fields, engine.served, writer.ends)
    stream = fields.truth("stream")
    options = Fields(fields.table("stream_options") or {}, "stream_options")
    usage = options.truth("include_usage")
    options.ignored("include_obfuscation")
    options.end()
    fields.ignored(*_UNHEARD)
    fields.only("store", None, False, instead="nothing is kept")
    fields.only("service_tier", None, "auto", "default", instead="leave it out")
    fields.only("modalities", None, ["text"], instead="only texts are written")
    fields.only("reasoning_effort", None, instead="give chat_template_kwargs that the model's template reads")
    share = fields.truth("cache_prompt", True)
    longest = _longest(writer, prompts, most, default, allowed)
    told, glass = fields.table("glass"), None
    if told is not None:
        glass = glass_of(Fields(told, "glass"), engine.served, allowed, [len(p) for p in prompts], longest, n)
    fields.end()
    request = TextRequest(prompts, config, longest, n=n, logprobs=top if logprobs else None, glass=glass, share=share)
    return Asked(writer, request, None, stream, usage)  # type: ignore[arg-type]


def _longest(
    writer: Writer, prompts: list[list[int]], asked: int | None, default: int | None, allowed: Permissions
) -> int:
    """How many tokens may be written: what was asked for, or what the model has room for."""
    if asked is not None:
        if allowed.max_tokens is not None and asked > allowed.max_tokens:
            raise wrong(f"max_tokens may be at most {allowed.max_tokens} here.", "max_tokens")
        return asked
    engine = writer.engine
    context = engine.served.context or 1 << 30
    room = min(context - max(map(len, prompts)), engine.default_tokens)
    found = max(min(room, default or room), 1)
    return found if allowed.max_tokens is None else max(min(found, allowed.max_tokens), 1)


def _tokenizer(writer: Writer) -> Any:
    found = writer.engine.served.tokenizer
    if found is None:
        raise wrong(f"the model {writer.name} has no tokenizer.", "model")
    return found


def _prompts(fields: Fields, tokenizer: Any, special: bool) -> list[list[int]]:
    """Prompts from a text, a list of texts, ids or a list of ids."""
    given = fields.any("prompt")
    rule = "a text, a list of texts, a list of tokens or a list of such lists"
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, list) or not given:
        raise fields.wrong("prompt", rule)
    if _are_ids(given):
        given = [given]
    if len(given) > MOST:
        raise fields.wrong("prompt", f"at most {MOST} prompts")
    found: list[list[int]] = []
    for one in given:
        if isinstance(one, str):
            found.append(list(tokenizer.encode(one, add_special_tokens=special)))
        elif isinstance(one, list) and _are_ids(one):
            found.append(one)
        else:
            raise fields.wrong("prompt", rule)
        if not found[-1]:
            raise fields.wrong("prompt", "of at least one token: there is nothing to continue")
    return found


def _are_ids(given: list[Any]) -> bool:
    return bool(given) and all(isinstance(t, int) and not isinstance(t, bool) for t in given)
