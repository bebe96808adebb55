"""Sessions in files, and checking that they come out the same. Knows no model."""

from __future__ import annotations

import hashlib
import json
import os
import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import votive

from ..generation.config import GenerationConfig
from ..nn import Module
from ..serialization import FileFormatError
from ..surface.block_tensor import BlockTensor
from .display import Displayable
from .edit_plan import EditPlan, key_of, plan_from_data, plan_to_data, raw
from .session_base import prefix_in
from .session_sampling import Picker, outlook_of
from .session_tree import Outlook, SessionNode

if TYPE_CHECKING:
    from .session import Session


_FORMAT, _VERSION = "votive.session", 1
# Up to here every byte of the weights is hashed, beyond it samples of each tensor.
_ALL_BYTES = 1 << 28
_PIECE = 1 << 16
_hashes: weakref.WeakKeyDictionary[Any, tuple[Any, str]] = weakref.WeakKeyDictionary()


class SessionMismatch(RuntimeError):
    """A session that does not fit the model, or that came out otherwise when it was replayed.

    >>> issubclass(votive.glass.SessionMismatch, RuntimeError)
    True
    """


def model_hash(model: Module) -> str:
    """A text that is the same for models with equal state dicts: names, shapes, types and bytes.

    Up to 256 MiB all bytes count, and it begins with "full:". Of larger models it takes sixteen
    pieces of 64 KiB of each tensor, spread evenly, and begins with "sampled:". It is computed once
    as long as no parameter changes.

    >>> net = votive.nn.Linear(2, 2)
    >>> before = votive.glass.model_hash(net)
    >>> with votive.no_grad():
    ...     _ = net.bias.add_(1)
    >>> before[:5], before == votive.glass.model_hash(net)
    ('full:', False)
    """
    state = {n: t for n, t in model.state_dict().items() if isinstance(t, votive.Tensor)}
    named = [*model.named_parameters(), *model.named_buffers()]
    versions = tuple((n, id(t), _stored(t)._writes) for n, t in named)
    known = _hashes.get(model)
    if known is not None and known[0] == versions:
        return known[1]
    total = sum(_stored(t).nbytes for t in state.values())
    kind = "full" if total <= _ALL_BYTES else "sampled"
    found = hashlib.blake2b(digest_size=16)
    for name in sorted(state):
        t = state[name]
        found.update(f"{name} {tuple(t.shape)} {t.dtype}\n".encode())
        content = raw(_stored(t))
        if kind == "full" or len(content) <= 16 * _PIECE:
            found.update(content)
            continue
        last = len(content) - _PIECE
        for i in range(16):
            at = last * i // 15
            found.update(content[at : at + _PIECE])
    text = f"{kind}:{found.hexdigest()}"
    _hashes[model] = (versions, text)
    return text


def _stored(t: votive.Tensor) -> votive.Tensor:
    """The tensor that holds the bytes: of blocks of few bits, those."""
    return t.blocks if isinstance(t, BlockTensor) else t


def tokenizer_hash(tokenizer: Any) -> str | None:
    """A text that is the same for equal tokenizers; None without one."""
    if tokenizer is None:
        return None
    backend = getattr(tokenizer, "backend", None)
    if backend is not None and hasattr(backend, "to_str"):
        said = backend.to_str()
    else:
        said = json.dumps(sorted(tokenizer.get_vocab().items()))
    return hashlib.blake2b(said.encode(), digest_size=16).hexdigest()


class SharedTable:
    """Values that many nodes share, each written once."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._at: dict[Hashable, int] = {}

    def put(self, key: Hashable, make: Callable[[], object]) -> int:
        """The row of a value; it is made when it is not there yet."""
        if key not in self._at:
            self._at[key] = len(self.rows)
            self.rows.append(make())
        return self._at[key]


def save(session: Session, path: str | os.PathLike[str]) -> None:
    """Write a session; edits that hold code are refused."""
    settings, plans = SharedTable(), SharedTable()

    def setting(config: GenerationConfig) -> int:
        fields = config.to_dict()
        return settings.put(repr(fields), lambda: fields)

    def planned(plan: EditPlan) -> int:
        return plans.put(key_of(plan), lambda: plan_to_data(plan))

    nodes = [
        {
            "parent": n.parent_id,
            "tokens": list(n.tokens),
            "plan": planned(n.plan),
            "settings": setting(n.settings),
            "salt": n.salt,
            "how": n.how,
            "rng": n.rng,
            "logprob": n.logprob,
            "variant_of": n.variant_of,
            "outlook": None
            if n._outlook is None
            else [list(n._outlook.ids), list(n._outlook.probabilities), n._outlook.entropy, n._outlook.digest],
        }
        for n in session.nodes
    ]
    begun = dict(session._begun)
    begun["edits"], begun["settings"] = planned(begun["edits"]), setting(begun["settings"])
    actions = [
        [name, {**given, "plan": planned(given["plan"])} if "plan" in given else given]
        for name, given in session.actions
    ]
    votive.save(
        {
            "format": _FORMAT,
            "version": _VERSION,
            "model": {
                "hash": model_hash(session.model),
                "class": type(session.model).__name__,
                "name": str(getattr(session.model, "name_or_path", "")),
            },
            "tokenizer": tokenizer_hash(session.tokenizer),
            "begun": begun,
            "nodes": nodes,
            "settings": settings.rows,
            "plans": plans.rows,
            "history": [[c.node, setting(c.settings), c.salt] for c in session._history],
            "at": session._at,
            "salts": session._salts,
            "actions": actions,
            "seed": session.seed,
        },
        path,
    )


def load(kind: type[Session], path: str | os.PathLike[str], model: Module, tokenizer: Any, *, force: bool) -> Any:
    """Read a session for a model."""
    state = votive.load(path)
    if not isinstance(state, dict) or state.get("format") != _FORMAT:
        raise FileFormatError(f"Session.load: {path} holds no session.")
    if state["version"] > _VERSION:
        raise FileFormatError(f"Session.load: {path} has version {state['version']}; this votive reads {_VERSION}.")
    if not force:
        _check(state, path, model, tokenizer)
    try:
        return _built(kind, state, model, tokenizer)
    except (KeyError, IndexError, TypeError) as e:
        raise FileFormatError(f"Session.load: {path} is damaged: {e!r}.") from e


def _check(state: dict[str, Any], path: str | os.PathLike[str], model: Module, tokenizer: Any) -> None:
    said, have = state["model"], model_hash(model)
    if said["hash"] != have:
        name = f" {said['name']!r}" if said["name"] else ""
        raise SessionMismatch(
            f"Session.load: {path} was made with another model: a {said['class']}{name} with hash "
            f"{said['hash']}, and this {type(model).__name__} has {have}. Load it with that model, "
            "or with force=True, and then its nodes will differ."
        )
    if tokenizer is not None and state["tokenizer"] not in (None, tokenizer_hash(tokenizer)):
        raise SessionMismatch(f"Session.load: {path} was made with another tokenizer; give that one, or force=True.")


def _built(kind: type[Session], state: dict[str, Any], model: Module, tokenizer: Any) -> Any:
    from .session import Cursor

    configs = [GenerationConfig.from_dict(s).resolved() for s in state["settings"]]
    plans = [plan_from_data(p) for p in state["plans"]]
    begun = state["begun"]
    session = kind(
        model,
        tokenizer,
        begun["prompt"],
        seed=begun["seed"],
        block=begun["block"],
        top=begun["top"],
        memory_limit=begun["memory_limit"],
        cache_dtype=begun.get("cache_dtype"),
    )
    session._begun = {**begun, "edits": plans[begun["edits"]], "settings": configs[begun["settings"]]}
    session.nodes.clear()
    for i, n in enumerate(state["nodes"]):
        parent = None if n["parent"] is None else session.nodes[n["parent"]]
        node = SessionNode(
            session,
            id=i,
            parent_id=n["parent"],
            tokens=tuple(n["tokens"]),
            start=0 if parent is None else parent.stop,
            plan=plans[n["plan"]],
            settings=configs[n["settings"]],
            salt=n["salt"],
            how=n["how"],
            rng=n["rng"],
            logprob=n["logprob"],
            variant_of=n["variant_of"],
        )
        if n["outlook"] is not None:
            ids, probabilities, entropy, digest = n["outlook"]
            node._outlook = Outlook(tuple(ids), tuple(probabilities), entropy, digest)
        session.nodes.append(node)
        if parent is not None:
            parent.children_ids.append(i)
    session._history = [Cursor(n, configs[s], salt) for n, s, salt in state["history"]]
    session._at, session._salts = state["at"], state["salts"]
    session.seed = state.get("seed", begun["seed"])
    session.actions = [
        (name, {**given, "plan": plans[given["plan"]]} if "plan" in given else given)
        for name, given in state["actions"]
    ]
    session.node  # noqa: B018 - a history that leads nowhere is state now
    return session


@dataclass
class Replay(Displayable):
    """What came of running a session again: how much was compared, and what differed.

    >>> votive.glass.Replay(nodes=2, compared=2, drawn=1).exact
    True
    """

    nodes: int = 0
    compared: int = 0  # nodes whose logits, best tokens and entropy were compared
    drawn: int = 0  # tokens that were drawn again
    mismatches: list[str] = field(default_factory=list)

    @property
    def exact(self) -> bool:
        """Whether nothing differed."""
        return not self.mismatches

    def __str__(self) -> str:
        said = f"{self.nodes} nodes, {self.compared} compared, {self.drawn} drawn again: "
        return said + ("exact" if self.exact else f"{len(self.mismatches)} differ")


def replay(session: Session, *, strict: bool) -> Replay:
    """Feed and draw everything anew."""
    runner = session.runner.another(limit=session.runner.store.limit)
    found = Replay(nodes=len(session.nodes))
    for node in session.nodes:
        if node._outlook is not None:
            found.compared += 1
            again = outlook_of(runner.logits(prefix_in(runner, node)), session.top_count)
            if again != node._outlook:
                what = "logits" if again.digest != node._outlook.digest else "best tokens"
                found.mismatches.append(f"node {node.id}: its {what} differ")
        if node.how == "drawn":
            found.drawn += 1
            parent = node.parent
            assert parent is not None  # a prompt is never drawn
            tokens = session.tokens_of(parent)
            start = len(node.path()[0].tokens)
            picker = Picker(node.settings, tokens, start, model=session.model, tokenizer=session.tokenizer)
            logits = runner.logits(prefix_in(runner, parent))
            token = picker.pick(logits, node.rng or b"")
            if token != node.token:
                found.mismatches.append(f"node {node.id}: {token} was drawn, not {node.token}")
    if strict and not found.exact:
        raise SessionMismatch(f"replay: {found}. {'; '.join(found.mismatches[:5])}.")
    return found
