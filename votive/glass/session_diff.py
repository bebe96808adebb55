"""Two branches of a session side by side. Chooses no tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import votive

from ..tensor import Tensor
from .display import Displayable
from .session_tree import SessionNode

if TYPE_CHECKING:
    from .session_base import SessionBase


@dataclass(frozen=True)
class SessionDiff(Displayable):
    """What two nodes share, where they part, and how far apart they are.

    `common` are the tokens that both texts begin with; `a_tokens` and `b_tokens` what follows.
    `a_in_a` is the probability of a's next token where a goes its way, `b_in_a` that of b's next
    token there, and so on; NaN where a text ends. `kl_ab` and `kl_ba` are the divergences of what
    follows the two nodes, in nats.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=8,
    ...     num_hidden_layers=1, num_attention_heads=1)
    >>> session = votive.glass.Session(votive.models.LlamaForCausalLM(config).eval(), None, [1, 2])
    >>> a = session.choose(5)
    >>> session.undo(), session.choose(6)
    (<node 0: prompt >, <node 2: chosen 6>)
    >>> diff = session.diff(a, session.node)
    >>> diff.common, diff.a_tokens, diff.b_tokens
    ([1, 2], [5], [6])
    """

    fork: SessionNode | None
    common: list[int]
    a_tokens: list[int]
    b_tokens: list[int]
    a_in_a: float
    b_in_a: float
    a_in_b: float
    b_in_b: float
    kl_ab: float
    kl_ba: float
    common_text: str | None = None
    a_text: str | None = None
    b_text: str | None = None

    def __str__(self) -> str:
        def shown(text: str | None, tokens: list[int]) -> str:
            return repr(text) if text is not None else str(tokens)

        return "\n".join(
            [
                f"common  {shown(self.common_text, self.common)}",
                f"a       {shown(self.a_text, self.a_tokens)}  p {self.a_in_a:.4g}, in b {self.a_in_b:.4g}",
                f"b       {shown(self.b_text, self.b_tokens)}  p {self.b_in_b:.4g}, in a {self.b_in_a:.4g}",
                f"KL(a|b) {self.kl_ab:.4g}  KL(b|a) {self.kl_ba:.4g}",
            ]
        )


def compare(session: SessionBase, a: SessionNode, b: SessionNode) -> SessionDiff:
    """See `SessionDiff`."""
    ours, theirs = session.tokens_of(a), session.tokens_of(b)
    same = 0
    while same < min(len(ours), len(theirs)) and ours[same] == theirs[same]:
        same += 1
    fork = None
    for x, y in zip(a.path(), b.path(), strict=False):
        if x is not y:
            break
        fork = x
    first = [t[same] if same < len(t) else None for t in (ours, theirs)]
    at_a, at_b = _probabilities(a, same), _probabilities(b, same)
    logs = [session.logits(n).double().log_softmax(-1) for n in (a, b)]
    text = session.decode if session.tokenizer is not None else lambda tokens: None
    return SessionDiff(
        fork,
        ours[:same],
        ours[same:],
        theirs[same:],
        _of(at_a, first[0]),
        _of(at_a, first[1]),
        _of(at_b, first[0]),
        _of(at_b, first[1]),
        _divergence(*logs),
        _divergence(*logs[::-1]),
        text(ours[:same]),
        text(ours[same:]),
        text(theirs[same:]),
    )


def _probabilities(node: SessionNode, length: int) -> Any:
    """What a node's path says about the token after its first `length`; None inside a prompt."""
    for one in node.path():
        if one.stop == length:
            return one.logits.double().softmax(-1)
    return None


def _of(probabilities: Tensor, token: int | None) -> float:
    if probabilities is None or token is None:
        return math.nan
    return float(probabilities[token])


def _divergence(p: Tensor, q: Tensor) -> float:
    """KL(p | q) of log-probabilities."""
    with votive.no_grad():
        return max(float((p.exp() * (p - q)).nansum()), 0.0)
