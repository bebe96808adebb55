"""Nodes of a generation tree: what each token was drawn from, and what follows it. Runs nothing."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..generation.config import GenerationConfig
from ..tensor import Tensor
from .display import Displayable
from .edit_plan import EditPlan, in_force, key_of
from .edits import Edit

if TYPE_CHECKING:
    from .session_base import SessionBase


@dataclass(frozen=True)
class Outlook(Displayable):
    """What a model says about the token after a node.

    `ids` and `probabilities` are those of the most probable tokens; `entropy` is in nats; `digest`
    tells whether logits are equal, bit by bit.

    >>> votive.glass.Outlook((7, 2), (0.9, 0.1), 0.33, "…").ids
    (7, 2)
    """

    ids: tuple[int, ...]
    probabilities: tuple[float, ...]
    entropy: float
    digest: str


class SessionNode(Displayable):
    """A token in a tree of texts, or the prompt; it never changes.

    `token` follows the node `parent`; `how` tells whether it was drawn, chosen, or stands again
    under other edits. `settings` and `salt` are those it was drawn with, and hold from it on;
    `rng` is the state of the generator that drew it. `logprob` is the logarithm of its probability
    in what the model said there, before any setting.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=8,
    ...     num_hidden_layers=1, num_attention_heads=1)
    >>> model = votive.models.LlamaForCausalLM(config).eval()
    >>> session = votive.glass.Session(model, None, [1, 2])
    >>> node = session.choose(5)
    >>> node.token, node.how, node.parent.tokens, len(node.logits)
    (5, 'chosen', (1, 2), 9)
    """

    def __init__(
        self,
        session: SessionBase,
        *,
        id: int,
        parent_id: int | None,
        tokens: tuple[int, ...],
        start: int,
        plan: EditPlan,
        settings: GenerationConfig,
        salt: int,
        how: str,
        rng: bytes | None = None,
        logprob: float | None = None,
        variant_of: int | None = None,
    ) -> None:
        # A node is part of a session and must not keep it alive.
        self._session = weakref.ref(session)
        self.id, self.parent_id, self.tokens, self.start = id, parent_id, tokens, start
        self.plan, self.settings, self.salt = plan, settings, salt
        self.how, self.rng, self.logprob, self.variant_of = how, rng, logprob, variant_of
        self.children_ids: list[int] = []
        self._outlook: Outlook | None = None
        self._prefix: Any = None

    @property
    def session(self) -> Any:
        """The session that it is part of."""
        found = self._session()
        if found is None:
            raise RuntimeError("the session of this node is gone; keep it while you use its nodes.")
        return found

    @property
    def token(self) -> int | None:
        """Its token; None for a prompt."""
        return None if self.parent_id is None else self.tokens[0]

    @property
    def stop(self) -> int:
        """How many tokens the text has up to here."""
        return self.start + len(self.tokens)

    @property
    def parent(self) -> SessionNode | None:
        return None if self.parent_id is None else self.session.nodes[self.parent_id]

    @property
    def children(self) -> list[SessionNode]:
        return [self.session.nodes[i] for i in self.children_ids]

    @property
    def edits(self) -> list[Edit]:
        """The edits that are made from this node on."""
        return in_force(self.plan)

    @property
    def text(self) -> str:
        """The text from the beginning of the prompt."""
        return self.session.text_of(self)

    @property
    def logits(self) -> Tensor:
        """The model's logits (vocabulary,) for the next token; computed if they were not kept."""
        return self.session.logits(self)

    @property
    def outlook(self) -> Outlook:
        """What the model says about the next token."""
        return self.session.outlook(self)

    @property
    def top(self) -> list[tuple[int, float]]:
        """The most probable next tokens with their probabilities."""
        return list(zip(self.outlook.ids, self.outlook.probabilities, strict=True))

    @property
    def entropy(self) -> float:
        """The entropy of the next token, in nats."""
        return self.outlook.entropy

    @property
    def digest(self) -> str:
        """Equal for nodes whose logits are equal bit by bit."""
        return self.outlook.digest

    def path(self) -> list[SessionNode]:
        """The nodes from the prompt to this one."""
        out: list[SessionNode] = [self]
        while (parent := out[-1].parent) is not None:
            out.append(parent)
        return out[::-1]

    def walk(self) -> Iterator[SessionNode]:
        """This node and all after it."""
        left = [self]
        while left:
            node = left.pop()
            yield node
            left.extend(reversed(node.children))

    def key(self) -> tuple[Any, ...]:
        """What tells it apart from the other nodes behind the same parent."""
        return (self.tokens, key_of(self.plan), repr(self.settings.to_dict()), self.salt)

    def __repr__(self) -> str:
        return f"<node {self.id}: {self.how} {self.token if self.parent_id is not None else ''}>"
