"""What a page can ask for: each action is a function in a file of its group. Knows no sockets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..arguments import Signature, signature_of

if TYPE_CHECKING:
    from ..jobs import Job


GROUPS = (
    "rebuild",
    "attention",
    "chat",
    "circuits",
    "compare",
    "compiled",
    "consequence",
    "console",
    "debug",
    "edits",
    "explain",
    "speech",
    "laboratory",
    "layers",
    "lens",
    "model",
    "picture",
    "profile",
    "quantization",
    "session",
    "share",
    "vision",
    "value",
)


# What a page is told while these are done.
_DOING = {
    "attention": "reading attention weights",
    "chat": "reading the message",
    "compare": "comparing",
    "compiled": "compiling the model",
    "consequence": "comparing with and without the edits",
    "debug": "running the model in the debugger",
    "edits": "running the model under the edits",
    "speech": "reading the sound",
    "speech.alignment": "reading attention to the sound",
    "speech.heads": "reading attention to the sound",
    "speech.transcribe": "listening",
    "laboratory": "looking for features",
    "laboratory.graph": "tracing the answer",
    "laboratory.probe": "fitting probes",
    "laboratory.steer": "steering",
    "laboratory.sweep": "sweeping",
    "layers": "measuring the layers",
    "lens": "running the logit lens",
    "picture": "drawing the model",
    "profile": "profiling",
    "quantization": "measuring the error by layer",
    "session": "working on the session",
    "session.rebuild": "writing the text again",
    "session.auto": "generating",
    "session.choose": "reading the token",
    "session.diff": "comparing two branches",
    "session.new": "reading the prompt",
    "session.open": "opening the session",
    "session.prompt": "reading the prompt",
    "session.save": "saving the session",
    "session.step": "writing a token",
    "session.top": "ranking the next tokens",
    "share": "writing the page",
    "vision": "looking at the picture",
    "value": "running the model for a value",
}


@dataclass(frozen=True)
class Action:
    """One action: its name, what it takes, and what it needs to run.

    `computes` says that it may call the model, and must have its turn; `changes` that its work is
    told even if nobody waits any more, as the session is another one after it.
    """

    name: str
    fn: Callable[..., Any]
    signature: Signature
    needs_model: bool
    computes: bool
    changes: bool

    @property
    def doing(self) -> str:
        """What is done meanwhile, in words."""
        return _DOING.get(self.name) or _DOING.get(self.name.partition(".")[0], "working")

    def run(self, job: Job, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Check the arguments and do it; gives data and blobs."""
        args = self.signature.check(given)
        taken = {p.rstrip("_"): p for p in self.fn.__code__.co_varnames}
        found = self.fn(job, **{taken.get(k, k): v for k, v in args.items()})
        return found if isinstance(found, tuple) else (found, None)


_KNOWN: dict[str, Action] = {}


def action(
    name: str, *, needs_model: bool = True, computes: bool = True, changes: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function `fn(job, ...)` be an action; what it takes is read from its annotations."""

    def declared(fn: Callable[..., Any]) -> Callable[..., Any]:
        taken = signature_of(name, fn)
        _KNOWN[name] = Action(name, fn, taken, needs_model, computes, changes)
        return fn

    return declared


@cache
def actions() -> dict[str, Action]:
    """All actions by name.

    >>> from votive.studio.actions import actions
    >>> actions()["session.step"].changes
    True
    """
    for group in GROUPS:
        import_module(f".{group}", __name__)
    return _KNOWN
