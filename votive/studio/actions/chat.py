"""Actions of a conversation: messages in the model's own chat template, each turn a prompt of the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ..arguments import Bounds
from ..jobs import Job
from ..session_json import session_state
from . import action
from .session import context_checked

if TYPE_CHECKING:
    from ..workspace import Workspace


Message = Annotated[str, Bounds(1, 100_000)]


def _has_template(workspace: Workspace) -> bool:
    return bool(getattr(workspace.loaded.tokenizer, "chat_template", None))


def _messages(workspace: Workspace) -> list[dict[str, str]]:
    """The conversation where the session stands, with what has been written of the answer."""
    if not workspace.has_session:
        return []
    session = workspace.session
    root = session.root_of(session.node)
    said = workspace.chats.get(tuple(root.tokens))
    if said is None:
        return []
    answer = session.tokens[len(root.tokens) :]
    text = workspace.loaded.tokenizer.decode(answer, skip_special_tokens=True).strip()
    return [*said, *([{"role": "assistant", "content": text}] if answer else [])]


@action("chat.state")
def state(job: Job) -> dict[str, Any]:
    """Whether the model has a chat template, and the conversation so far."""
    return {"template": _has_template(job.workspace), "messages": _messages(job.workspace)}


@action("chat.say", changes=True)
def say(job: Job, text: Message, system: Annotated[str, Bounds(0, 20_000)] | None = None) -> dict[str, Any]:
    """Add a message; the session then stands where the model's answer begins."""
    workspace = job.workspace
    if not _has_template(workspace):
        raise ValueError(f"{workspace.loaded.name} has no chat template: it continues texts. Choose a chat model.")
    said = _messages(workspace)
    if system and not said:
        said = [{"role": "system", "content": system}]
    said = [*said, {"role": "user", "content": text}]
    ids = workspace.loaded.tokenizer.apply_chat_template(said, add_generation_prompt=True, return_dict=False)
    ids = context_checked(workspace, [int(i) for i in ids])
    workspace.session.set_prompt(ids)
    workspace.chats[tuple(ids)] = said
    more = "add_generation_prompt=True, return_dict=False"
    workspace.log(job, f"session.set_prompt(tokenizer.apply_chat_template({said!r}, {more}))")
    return {**session_state(workspace), "messages": _messages(workspace)}
