"""The tree of a session: its nodes, their texts, and what a model says after each. Draws nothing.

Knows how a text is fed, so that what is computed for one node serves all that share its beginning.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import votive

from ..generation.config import GenerationConfig
from ..nn import Module
from ..tensor import Tensor
from .address import Patterns
from .edit_plan import EditPlan, key_of
from .kv_store import Prefix
from .prefix_runner import PrefixRunner
from .session_diff import SessionDiff, compare
from .session_sampling import outlook_of
from .session_tree import Outlook, SessionNode

if TYPE_CHECKING:
    from .capture import Capture


class SessionBase:
    """The part of a session that looks; what moves is in `Session`."""

    model: Any
    tokenizer: Any
    runner: PrefixRunner
    nodes: list[SessionNode]
    top_count: int

    @property
    def node(self) -> SessionNode:
        """The node where it stands."""
        raise NotImplementedError

    @property
    def roots(self) -> list[SessionNode]:
        """The prompts."""
        return [n for n in self.nodes if n.parent_id is None]

    def path(self, node: SessionNode | int | None = None) -> list[SessionNode]:
        """The nodes from the prompt to a node, or to where it stands."""
        return self._node(node).path()

    def tokens_of(self, node: SessionNode | int) -> list[int]:
        """All tokens up to a node."""
        at, parts = self._node(node), []
        while at.parent_id is not None:
            parts.append(at.tokens)
            at = self.nodes[at.parent_id]
        return [*at.tokens, *(t for part in reversed(parts) for t in part)]

    def root_of(self, node: SessionNode | int) -> SessionNode:
        """The prompt that a node's text begins with."""
        at = self._node(node)
        while at.parent_id is not None:
            at = self.nodes[at.parent_id]
        return at

    def text_of(self, node: SessionNode | int) -> str:
        """The text up to a node."""
        return self.decode(self.tokens_of(node))

    def decode(self, tokens: Sequence[int]) -> str:
        """Tokens as text."""
        if self.tokenizer is None:
            raise ValueError("Session: it has no tokenizer, so there are tokens but no text.")
        return self.tokenizer.decode(list(tokens))

    # --- looking ------------------------------------------------------------------------------

    def logits(self, node: SessionNode | int | None = None) -> Tensor:
        """The logits (vocabulary,) of the token after a node, in float32."""
        found = self._node(node)
        return self.runner.logits(self._prefix(found))

    def outlook(self, node: SessionNode | int | None = None) -> Outlook:
        """What the model says about the token after a node."""
        found = self._node(node)
        if found._outlook is None:
            found._outlook = outlook_of(self.logits(found), self.top_count)
        return found._outlook

    def fresh_logits(self, node: SessionNode | int | None = None) -> Tensor:
        """The same as `logits`, computed from nothing: all of the path is fed again."""
        found = self._node(node)
        other = self.runner.another(limit=None)
        return other.logits(prefix_in(other, found))

    def hidden(
        self, at: Patterns = "**", node: SessionNode | int | None = None, *, policy: str = "copy", whole: bool = False
    ) -> Capture:
        """Run a node again under `glass.capture`, with its edits, and give the capture.

        With `whole`, all parts of the path are run, each a run of the capture (`all` gives them).
        """
        from .capture import capture

        found = self._prefix(self._node(node))
        seen = capture(self.model, at, policy=policy)
        parts = found.chain() if whole else [found]
        with self.runner.positioned_before(parts[0]), seen:
            for part in parts:
                self.runner.rerun(part)
        return seen

    def diff(self, a: SessionNode | int, b: SessionNode | int) -> SessionDiff:
        """Two branches side by side."""
        return compare(self, self._node(a), self._node(b))

    def memory(self) -> dict[str, int]:
        """Bytes held: keys and values by prefix, logits, and the cache in use."""
        return self.runner.memory()

    def forget(self) -> None:
        """Drop all that was computed, as after a change of the model's weights."""
        self.runner.forget()
        for node in self.nodes:
            node._outlook = None

    # --- the tree -----------------------------------------------------------------------------

    def _node(self, node: SessionNode | int | None) -> SessionNode:
        if node is None:
            return self.node
        if isinstance(node, SessionNode):
            if node._session() is not self:
                raise ValueError("Session: the node belongs to another session.")
            return node
        if not 0 <= node < len(self.nodes):
            raise IndexError(f"Session: there is no node {node}; there are {len(self.nodes)}.")
        return self.nodes[node]

    def _prefix(self, node: SessionNode) -> Prefix:
        if node._prefix is None:
            node._prefix = prefix_in(self.runner, node)
        return node._prefix

    def _root(
        self,
        tokens: Sequence[int],
        plan: EditPlan,
        settings: GenerationConfig,
        salt: int,
        variant_of: int | None = None,
    ) -> SessionNode:
        if not tokens:
            raise ValueError("Session: the prompt is empty; give at least one token.")
        how = "prompt" if variant_of is None else "edited"
        return self._add(
            parent=None, tokens=tuple(tokens), plan=plan, settings=settings, salt=salt, how=how, variant_of=variant_of
        )

    def _add(self, *, parent: SessionNode | None, **given: Any) -> SessionNode:
        """The node with these properties behind a parent: the one that is there, or a new one."""
        made = SessionNode(
            self,
            id=len(self.nodes),
            parent_id=None if parent is None else parent.id,
            start=0 if parent is None else parent.stop,
            **given,
        )
        key = made.key()
        for other in self.roots if parent is None else parent.children:
            if other.key() == key:
                return other
        self.nodes.append(made)
        if parent is not None:
            parent.children_ids.append(made.id)
        return made

    def _ids(self, prompt: str | Sequence[int]) -> list[int]:
        return self._encoded(prompt) if isinstance(prompt, str) else [int(i) for i in prompt]

    def _encoded(self, text: str, special: bool = True) -> list[int]:
        if self.tokenizer is None:
            raise ValueError("Session: a text needs a tokenizer; without one, give token ids.")
        return list(self.tokenizer(text, add_special_tokens=special).input_ids)

    def widget(self, view: str | None = None) -> Any:
        """The session in a notebook, or one view of it; needs the package anywidget."""
        return votive.studio.widget(self, view)

    def save_html(self, path: str | os.PathLike[str], view: str | None = None, **args: object) -> None:
        """Write the session, or one view of it, as a page that needs no kernel and no network."""
        votive.studio.save_html(self, path, view, **args)


def prefix_in(runner: PrefixRunner, node: SessionNode) -> Prefix:
    """The prefix of a node's path under the node's own edits."""
    parent = node.parent
    if parent is not None and parent._prefix is not None and runner is node.session.runner:
        if key_of(parent.plan) == key_of(node.plan):
            timed = tuple(e for e in node.plan if e.during(node.start, node.stop))
            return runner.store.prefix(parent._prefix, node.tokens, timed)
    path = node.path()
    tokens = [t for n in path for t in n.tokens]
    return runner.prefix(tokens, len(path[0].tokens), node.plan)


def check_model(model: Module) -> None:
    """Refuse what cannot be continued token by token with a cache."""
    config = getattr(model, "config", None)
    if getattr(config, "is_encoder_decoder", False):
        raise TypeError("Session: it needs a decoder-only language model; this one has an encoder.")
    if not isinstance(model, votive.nn.Module):
        raise TypeError(f"Session: expected a module, got {type(model).__name__}.")
    taken = inspect.signature(model.forward).parameters
    missing = [n for n in ("past_key_values", "use_cache", "logits_to_keep") if n not in taken]
    open_ended = any(p.kind is p.VAR_KEYWORD for p in taken.values())
    if "past_key_values" in missing or (missing and not open_ended):
        raise TypeError(
            f"Session: {type(model).__name__} cannot write token by token: its forward takes no {', '.join(missing)}."
        )
    if model.training:
        raise ValueError(
            "Session: the model is in training mode, where dropout makes every run different; call model.eval()."
        )
