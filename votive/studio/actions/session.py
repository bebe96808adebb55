"""Actions of the session: begin, step, take back, choose, branch, jump, set, save."""

from __future__ import annotations

import contextlib
import datetime
import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from ...generation.config import SAMPLING
from ...glass.session import Session
from ...glass.session_sampling import outlook_of, updated
from ..arguments import BadArgument, Bounds, Index, Text, signature_of
from ..jobs import Job
from ..session_json import candidates, node_json, session_state
from . import action

if TYPE_CHECKING:
    from ...glass.session_tree import SessionNode
    from ..workspace import Workspace


SUFFIX = ".session"
Count = Annotated[int, Bounds(1, 100_000)]
Share = Annotated[float, Bounds(0, 1)]
_GENERATE = "Generate takes {low:,} to {high:,} tokens; you asked for {got:,}."
_STEP = "Step takes {low:,} to {high:,} tokens; you asked for {got:,}."


def _settings(
    job: Job,
    temperature: Annotated[float, Bounds(0, 1000)] | None = None,
    top_k: Annotated[int, Bounds(0, 1 << 31)] | None = None,
    top_p: Share | None = None,
    min_p: Share | None = None,
    typical_p: Share | None = None,
    repetition_penalty: Annotated[float, Bounds(0.01, 100)] | None = None,
    presence_penalty: Annotated[float, Bounds(-100, 100)] | None = None,
    frequency_penalty: Annotated[float, Bounds(-100, 100)] | None = None,
    no_repeat_ngram_size: Annotated[int, Bounds(0, 1000)] | None = None,
    do_sample: bool | None = None,
    max_new_tokens: Count | None = None,
    stop_strings: Annotated[list[Annotated[str, Bounds(1, 1000)]], Bounds(0, 20)] | None = None,
) -> None:
    """Never called: its annotations say which settings there are."""


_SETTINGS = signature_of("session.settings", _settings)


def checked_settings(given: dict[str, Any]) -> dict[str, Any]:
    """Settings of a sampler; temperature 0 is the best token, and any other setting draws."""
    found = _SETTINGS.check(given)
    if found.get("temperature") == 0:
        del found["temperature"]
        found["do_sample"] = False
    elif "do_sample" not in found and any(found.get(n) is not None for n in SAMPLING):
        found["do_sample"] = True
    return found


def _shown(given: dict[str, Any]) -> str:
    return "".join(f", {k}={v!r}" for k, v in given.items())


@action("session.new", changes=True)
def new(
    job: Job, prompt: Text, settings: dict | None = None, seed: Annotated[int, Bounds(0, 2**53)] = 0
) -> dict[str, Any]:
    """Begin a session; without settings it draws at temperature 1."""
    workspace = job.workspace
    found = checked_settings(settings or {})
    found.setdefault("do_sample", True)
    made = Session(
        workspace.loaded.model,
        workspace.loaded.tokenizer,
        _ids(workspace, prompt),
        seed=seed,
        top=20,
        memory_limit=1 << 29,
        **found,
    )
    made.outlook()  # a prompt that the model cannot read is told before the old session is gone
    workspace.session = made
    workspace.log(job, f"session = glass.Session(model, tokenizer, {_prompt(made)}, seed={seed}{_shown(found)})")
    return session_state(workspace)


def _ids(workspace: Workspace, text: str) -> list[int]:
    tokenizer = workspace.loaded.tokenizer
    for kind in ("vision", "speech"):
        if workspace.loaded.info().get(kind):
            raise TypeError(f'"{workspace.loaded.name}" is a {kind} model; sessions need a language model.')
    ids = list(tokenizer(text).input_ids)
    if not ids:
        # A text begins where another has ended.
        ends = tokenizer.eos_token_id
        start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else ends
        if start is None:
            raise ValueError("The prompt is empty, and this model has no start token; write a prompt.")
        ids = [start]
    return context_checked(workspace, ids)


def context_checked(workspace: Workspace, ids: list[int]) -> list[int]:
    """The tokens of a prompt, if the model can read them and one more."""
    context = workspace.loaded.info()["context"]
    if context and len(ids) >= context:
        raise ValueError(f"The prompt has {len(ids):,} tokens, but the model's context length is {context:,}.")
    return ids


def _check_context(workspace: Workspace, count: int = 1) -> None:
    """Raises where the model cannot read so many tokens more."""
    context, long = workspace.loaded.info()["context"], workspace.session.node.stop
    if context and long + count > context:
        more = "" if count == 1 else f", and {count:,} more were asked for"
        raise ValueError(
            f"The text has {long:,} tokens{more}, but the model's context length is {context:,}. "
            "Undo, go to an earlier token, or begin with a shorter prompt."
        )


@contextlib.contextmanager
def _whole(workspace: Workspace) -> Iterator[None]:
    """Inside, a move that ends in an error is taken back: the page does not know of it."""
    before = workspace.session._at
    try:
        yield
    except Exception:
        if workspace.session._at > before:
            workspace.session.undo(workspace.session._at - before)
        raise


def _prompt(session: Session) -> str:
    tokens = list(session.path()[0].tokens)
    text = session.decode(tokens)
    return repr(text) if list(session.tokenizer(text).input_ids) == tokens else repr(tokens)


@action("session.prompt", changes=True)
def prompt(job: Job, text: Text) -> dict[str, Any]:
    """Begin again with another prompt; the old tree stays."""
    job.workspace.session.set_prompt(_ids(job.workspace, text))
    job.workspace.log(job, f"session.set_prompt({_prompt(job.workspace.session)})")
    return session_state(job.workspace)


@action("session.tokenise")
def tokenise(job: Job, text: Annotated[str, Bounds(1, 1000)]) -> dict[str, Any]:
    """The tokens of a piece of text, as it would stand inside of a longer one."""
    tokenizer = job.workspace.loaded.tokenizer
    if tokenizer is None:
        raise ValueError("session.tokenise: the model has no tokenizer; give the token's number.")
    ids = list(tokenizer(text, add_special_tokens=False).input_ids)
    return {"ids": ids, "texts": job.workspace.loaded.texts(ids)}


@action("session.state")
def get_state(job: Job) -> dict[str, Any]:
    """All nodes, where it stands, settings in force."""
    return session_state(job.workspace)


@action("session.step", changes=True)
def step(job: Job, n: Annotated[int, Bounds(1, 1000, _STEP)] = 1) -> dict[str, Any]:
    """Draw the next token, `n` times."""
    workspace = job.workspace
    made = 0
    _check_context(workspace, n)
    with _whole(workspace):
        try:
            for _ in range(n):
                workspace.session.step()
                made += 1
                job.yield_turn()
        finally:
            if made:
                workspace.log(job, f"session.step({made})" if made > 1 else "session.step()")
        return session_state(workspace)


def _said(workspace: Workspace, node: SessionNode) -> list[dict[str, Any]]:
    """What the model said before a token was drawn, for the bars that follow it."""
    known = None if node.parent is None else node.parent._outlook
    return [] if known is None else candidates(workspace, known.ids[:8], known.probabilities[:8])


@action("session.auto", changes=True)
def auto(job: Job, max_new_tokens: Annotated[int, Bounds(1, 10_000, _GENERATE)] = 64) -> dict[str, Any]:
    """Step until the text ends; each token is told by an event, and why it ended at the end."""
    workspace, made, ended = job.workspace, 0, "end"
    context = workspace.loaded.info()["context"]
    _check_context(workspace)
    try:
        for node in workspace.session.auto(max_new_tokens):
            made += 1
            event = {
                "node": node_json(workspace, node),
                "current": node.id,
                "job": job.id,
                "top": _said(workspace, node),
            }
            job.tell("token", {**event, "done": made, "total": max_new_tokens})
            if context and node.stop >= context:
                ended = "context"
                break
            job.yield_turn()
        else:
            ended = "count" if made == max_new_tokens else ended
    finally:
        if made:
            workspace.log(job, f"session.step({made})" if made > 1 else "session.step()")
    return {**session_state(workspace), "made": made, "ended": ended}


@action("session.undo", changes=True)
def undo(job: Job, n: Count = 1) -> dict[str, Any]:
    """Take back the last moves."""
    job.workspace.session.undo(n)
    job.workspace.log(job, f"session.undo({n})" if n > 1 else "session.undo()")
    return session_state(job.workspace)


@action("session.redo", changes=True)
def redo(job: Job, n: Count = 1) -> dict[str, Any]:
    """Make moves again that were taken back."""
    job.workspace.session.redo(n)
    job.workspace.log(job, f"session.redo({n})" if n > 1 else "session.redo()")
    return session_state(job.workspace)


@action("session.choose", changes=True)
def choose(
    job: Job, token: Index | None = None, node: Index | None = None, text: Annotated[str, Bounds(1, 1000)] | None = None
) -> dict[str, Any]:
    """Go on with a token of one's own, or all of a text, behind this node or another one."""
    workspace = job.workspace
    if (token is None) == (text is None):
        raise BadArgument("session.choose: give either token or text.")
    if node is not None and node != workspace.session.node.id:
        workspace.session.jump(node)
        workspace.log(job, f"session.jump({node})")
    count = 1 if text is None else len(workspace.session._encoded(text, special=False))
    _check_context(workspace, count)
    with _whole(workspace):
        workspace.session.choose(token if text is None else text)
        workspace.log(job, f"session.choose({token if text is None else text!r})")
        return session_state(workspace)


@action("session.jump", changes=True)
def jump(job: Job, node: Index) -> dict[str, Any]:
    """Go to any node."""
    with _whole(job.workspace):
        job.workspace.session.jump(node)
        job.workspace.log(job, f"session.jump({node})")
        return session_state(job.workspace)


@action("session.branch", changes=True)
def branch(job: Job, node: Index | None = None) -> dict[str, Any]:
    """Let what follows be drawn anew."""
    job.workspace.session.branch(node)
    job.workspace.log(job, f"session.branch({'' if node is None else node})")
    return session_state(job.workspace)


@action("session.settings", changes=True)
def settings(job: Job, seed: Annotated[int, Bounds(0, 2**53)] | None = None, **given: Any) -> dict[str, Any]:
    """Draw with other settings, or another seed, from here on."""
    workspace = job.workspace
    found = checked_settings(given)
    session = workspace.session
    notes: list[str] = []
    if found:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            session.set_sampler(**found)
        notes = [str(w.message) for w in seen]
        workspace.log(job, f"session.set_sampler({_shown(found).removeprefix(', ')})")
    if seed is not None and seed != session.seed:
        session.set_seed(seed)
        workspace.log(job, f"session.set_seed({seed})")
    return {**session_state(workspace), "notes": notes}


@action("session.top")
def top(
    job: Job, node: Index | None = None, k: Annotated[int, Bounds(1, 200)] = 20, settings: dict | None = None
) -> dict[str, Any]:
    """The likeliest next tokens: as the model says, and after the settings in force there.

    With `settings`, as they would be after these: while a slider is drawn, nothing is changed yet.
    """
    workspace, session = job.workspace, job.workspace.session
    at = session._node(node)
    logits = session.logits(at)
    # Where it stands, what is set now counts; elsewhere what the node was drawn with.
    used = session.settings if at is session.node else at.settings
    if settings:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are told when it is set
            used = updated(used, checked_settings(settings))
    before = outlook_of(logits, k, digest=False)
    after = outlook_of(session._picker(at, used).scores(logits), k, digest=False)
    kept = [(i, p) for i, p in zip(after.ids, after.probabilities, strict=True) if p > 0]
    return {
        "node": at.id,
        "entropy": before.entropy,
        "entropy_after": after.entropy,
        "before": candidates(workspace, before.ids, before.probabilities),
        "after": candidates(workspace, [i for i, _ in kept], [p for _, p in kept]),
        "sampled": bool(used.do_sample),
    }


@action("session.diff")
def diff(job: Job, a: Index, b: Index) -> dict[str, Any]:
    """Two branches side by side."""
    found = job.workspace.session.diff(a, b)
    job.workspace.log(job, f"print(session.diff({a}, {b}))")
    names = ("a_in_a", "b_in_a", "a_in_b", "b_in_b", "kl_ab", "kl_ba")
    return {
        "common": found.common_text,
        "a": found.a_text,
        "b": found.b_text,
        "fork": None if found.fork is None else found.fork.id,
        "a_tokens": job.workspace.loaded.texts(found.a_tokens),
        "b_tokens": job.workspace.loaded.texts(found.b_tokens),
        **{n: getattr(found, n) for n in names},
    }


def path_of(workspace: Workspace, name: str) -> Any:
    """Where a session of this name lies; always inside of the studio's folder."""
    if not re.fullmatch(r"[\w.-]{1,80}", name, re.ASCII) or name.startswith("."):
        raise ValueError(
            f"{name!r:.100} cannot be a name; use 1 to 80 letters, digits, '_', '-' and '.', not starting with a '.'."
        )
    path = workspace.folder / (name if name.endswith(SUFFIX) else f"{name}{SUFFIX}")
    if path.is_symlink() or path.resolve().parent != workspace.folder.resolve():
        raise ValueError(f"{name!r} leads out of the folder.")
    return path


@action("session.save")
def save(job: Job, name: Annotated[str, Bounds(1, 80)]) -> dict[str, Any]:
    """Write the session into the studio's folder."""
    path = path_of(job.workspace, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    job.workspace.session.save(path)
    job.workspace.log(job, f"session.save({path.name!r})")
    job.workspace.autosaver.saved()
    return {"name": path.name.removesuffix(SUFFIX), "bytes": path.stat().st_size}


@action("session.open", changes=True)
def opened(job: Job, name: Annotated[str, Bounds(1, 80)]) -> dict[str, Any]:
    """Read a session from the studio's folder."""
    workspace = job.workspace
    path = path_of(workspace, name)
    if not path.is_file():
        raise FileNotFoundError(f"There is no session {name!r} in the folder.")
    workspace.session = Session.load(path, workspace.loaded.model, workspace.loaded.tokenizer)
    workspace.log(job, f"session = glass.Session.load({path.name!r}, model, tokenizer)")
    workspace.autosaver.saved()
    return session_state(workspace)


@action("session.files", needs_model=False, computes=False)
def files(job: Job) -> dict[str, Any]:
    """The sessions in the studio's folder, the newest first."""
    folder = job.workspace.folder
    found = folder.glob(f"*{SUFFIX}") if folder.is_dir() else []
    rows = []
    for path in found:
        if path.is_file() and not path.is_symlink():
            s = path.stat()
            when = datetime.datetime.fromtimestamp(s.st_mtime, datetime.UTC)
            name = path.name.removesuffix(SUFFIX)
            rows.append({"name": name, "bytes": s.st_size, "modified": when.isoformat()})
    return {"files": sorted(rows, key=lambda r: r["modified"], reverse=True)}


Name = Annotated[str, Bounds(1, 40)]


@action("session.autosaved", needs_model=False, computes=False)
def kept(job: Job) -> dict[str, Any]:
    """The sessions that were kept automatically and belong to no tab, the newest first."""
    autosaves = job.workspace.autosaves
    return {"on": autosaves.folder is not None, "autosaved": [one.to_json() for one in autosaves.orphans()]}


@action("session.recover", changes=True)
def recover(job: Job, name: Name) -> dict[str, Any]:
    """Go on with a session that was kept; from here on it is kept as this tab's own."""
    workspace = job.workspace
    path = workspace.autosaves.path(name)
    if name in workspace.autosaves.live:
        raise ValueError("This session is open in another tab.")
    if not path.is_file():
        raise FileNotFoundError("That autosaved session is no longer there.")
    workspace.session = Session.load(path, workspace.loaded.model, workspace.loaded.tokenizer)
    workspace.log(job, f"session = glass.Session.load({str(path)!r}, model, tokenizer)")
    if workspace.autosaver.write(workspace.session, workspace.loaded.name):
        workspace.autosaves.discard(name)  # only now is it kept a second time
    return session_state(workspace)


@action("session.discard", needs_model=False, computes=False)
def discard(job: Job, name: Name) -> dict[str, Any]:
    """Remove a session that was kept automatically."""
    if name in job.workspace.autosaves.live:
        raise ValueError("This session is open in another tab.")
    job.workspace.autosaves.discard(name)
    return kept(job)


@action("session.script")
def script(job: Job) -> dict[str, Any]:
    """A Python program that makes the session again."""
    from ..models import DEMO

    setup = None
    if job.workspace.loaded.name == DEMO:
        setup = "from votive.studio import demo\n\nmodel, tokenizer = demo.model(), demo.tokenizer()"
    return {"text": job.workspace.session.to_script(setup)}
