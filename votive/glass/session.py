"""Writing a text with a model as a tree: step, take back, choose, branch, edit. Knows no model.

The text is always fed in the same way, the prompt in blocks and what follows token by token, so
that the logits at a node are those of a fresh run of its path, bit by bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..generation.config import GenerationConfig
from ..generation.grammar import ends_of
from ..generation.stopping import Reader
from ..nn import Module
from ..nn.layers.kv_storage import CacheDtype
from .display import Displayable
from .edit_plan import EditPlan, begin, change, in_force
from .edits import Edits
from .patch import Patch
from .prefix_runner import PrefixRunner
from .session_base import SessionBase, check_model
from .session_sampling import Picker, config_for, counter, outlook_of, updated
from .session_tree import SessionNode

if TYPE_CHECKING:
    from .session_file import Replay


@dataclass(frozen=True)
class Cursor:
    """Where a session stands, and how it will go on."""

    node: int
    settings: Any
    salt: int


class Session(SessionBase, Displayable):
    """A tree of texts that a model writes, in which you can go back and forth.

    `settings` are those of `generate`; `edits` are made from the beginning on. `seed` decides all
    draws: a draw depends on it, on the position in the text and on the branch, so going back and
    on again gives the same token, and `branch` gives another. `block` is how many tokens of a
    prompt are fed at once, and so the size of what prompts can share; None feeds it whole.
    `memory_limit` bounds the bytes of keys and values; what was dropped is computed again. A node
    keeps its `top` best tokens. With a `cache_dtype` such as "q8_0" keys and values are kept in few bits, each position
    rounded once, so that every way to a node still gives the same logits.

    >>> config = votive.models.LlamaConfig(vocab_size=300, hidden_size=16, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, eos_token_id=None)
    >>> model = votive.models.LlamaForCausalLM(config).eval()
    >>> session = votive.glass.Session(model, None, [1, 2, 3], do_sample=True, seed=7)
    >>> a = session.step(2)
    >>> session.undo(), session.redo() is a
    (<node 1: drawn ...>, True)
    >>> session.tokens == [1, 2, 3, a.parent.token, a.token]
    True
    """

    def __init__(
        self,
        model: Module,
        tokenizer: Any,
        prompt: str | Sequence[int],
        *,
        edits: Edits = (),
        seed: int = 0,
        block: int | None = 32,
        memory_limit: int | None = 1 << 31,
        top: int = 10,
        cache_dtype: CacheDtype = None,
        **settings: Any,
    ) -> None:
        check_model(model)
        if (block is not None and block < 1) or top < 1:
            raise ValueError(f"Session: block and top must be positive, got {block} and {top}.")
        self.model, self.tokenizer, self.seed, self.top_count = model, tokenizer, seed, top
        self.nodes: list[SessionNode] = []
        self.actions: list[tuple[str, dict[str, Any]]] = []  # what was done, for a script
        self.runner = PrefixRunner(model, block=block, limit=memory_limit, cache_dtype=cache_dtype)
        self._stop = False
        self._salts = 0  # the highest that was given out
        config = config_for(model, settings)
        if edits:
            Patch(model, edits)  # an edit that can match nothing is told here
        root = self._root(self._ids(prompt), begin(edits), config, 0)
        self._history = [Cursor(root.id, config, 0)]
        self._at = 0
        self._begun: dict[str, Any] = {
            "prompt": list(root.tokens),
            "edits": begin(edits),
            "seed": seed,
            "block": block,
            "top": top,
            "memory_limit": memory_limit,
            "cache_dtype": self.runner.cache.dtype,
            "settings": config,
        }

    # --- where it stands ----------------------------------------------------------------------

    @property
    def cursor(self) -> Cursor:
        return self._history[self._at]

    @property
    def node(self) -> SessionNode:
        """The node where it stands."""
        return self.nodes[self.cursor.node]

    @property
    def tokens(self) -> list[int]:
        """The tokens of the text, the prompt's first."""
        return self.tokens_of(self.node)

    @property
    def text(self) -> str:
        """The text, the prompt first."""
        return self.text_of(self.node)

    @property
    def settings(self) -> Any:
        """The settings that the next token is drawn with."""
        return self.cursor.settings

    @property
    def edits(self) -> list[Any]:
        """The edits in force."""
        return in_force(self.node.plan)

    @property
    def children(self) -> list[SessionNode]:
        """What has followed the node where it stands."""
        return self.node.children

    @property
    def entropy(self) -> float:
        """Entropy of the next token, in nats."""
        return self.node.entropy

    def top(self, k: int | None = None, *, processed: bool = False) -> list[tuple[int, float]]:
        """The most probable next tokens: as the model says, or after the settings in force."""
        node = self.node
        if not processed and (k is None or k <= len(node.outlook.ids)):
            return node.top[:k]
        logits = self.logits(node)
        scores = self._picker(node, self.settings).scores(logits) if processed else logits
        found = outlook_of(scores, self.top_count if k is None else k, digest=False)
        return list(zip(found.ids, found.probabilities, strict=True))

    # --- going on -----------------------------------------------------------------------------

    def step(self, n: int = 1) -> SessionNode:
        """Draw the next token, `n` times; gives the last node."""
        if n < 1:
            raise ValueError(f"step: n must be positive, got {n}.")
        for _ in range(n):
            self._draw()
        return self.node

    def auto(
        self,
        max_new_tokens: int | None = None,
        *,
        stop: str | Iterable[str] | Callable[[Session], object] | None = None,
    ) -> Iterator[SessionNode]:
        """Step until the text ends, node by node; `cancel`, or leaving the loop, ends it too.

        It ends at a token of `eos_token_id`, after `max_new_tokens` (without it: where the settings
        or the model's positions end), at one of the strings of `stop` (or of the setting
        `stop_strings`), or where `stop(session)` is true.
        """
        if max_new_tokens is not None and max_new_tokens < 1:
            raise ValueError(f"auto: max_new_tokens must be positive, got {max_new_tokens}.")
        limit = self._room() if max_new_tokens is None else max_new_tokens
        own = stop if callable(stop) else None
        strings = self.settings.stop_strings if stop is None or callable(stop) else stop
        eos = set(ends_of(self.settings, self.tokenizer))
        if strings and self.tokenizer is None:
            raise ValueError("auto: strings to stop at need a tokenizer.")
        reader = Reader(self.tokenizer, strings, eos) if strings else None
        return self._auto(limit, own, reader, eos)

    def _room(self) -> int:
        """How many tokens may still be written."""
        if self.settings.max_new_tokens is not None:
            return int(self.settings.max_new_tokens)
        config = getattr(self.model, "config", None)
        length = self.settings.max_length or getattr(config, "max_position_embeddings", None)
        if length is None:
            raise ValueError("auto: nothing says how long the text may be; give max_new_tokens.")
        return max(int(length) - self.node.stop, 0)

    def _auto(
        self, limit: int, own: Callable[[Any], Any] | None, reader: Reader | None, eos: set[int]
    ) -> Iterator[SessionNode]:
        self._stop = False
        made = 0
        while not self._stop and made < limit:
            node = self._draw()
            made += 1
            if reader is not None and node.token is not None:
                reader.add(node.token)
            yield node
            ended = node.token in eos or (reader is not None and reader.stop is not None)
            if ended or (own is not None and own(self)):
                return

    def cancel(self) -> None:
        """Let a running `auto` end after its present token; may be called from another thread."""
        self._stop = True

    def choose(
        self, token: int | str | None = None, *, rank: int | None = None, text: str | None = None
    ) -> SessionNode:
        """Go on with a token of one's own: by id, by rank (0 is the best), or all of a text."""
        if isinstance(token, str):
            token, text = None, token
        if sum(x is not None for x in (token, rank, text)) != 1:
            raise TypeError("choose: give one of token, rank and text.")
        if text is not None:
            chosen = self._encoded(text, special=False)
        elif rank is not None:
            chosen = [self._ranked(rank)]
        else:
            chosen = [int(token)]  # type: ignore[arg-type]
        if not chosen:
            raise ValueError("choose: the text is empty.")
        size = self.logits(self.node).shape[0]
        bad = [t for t in chosen if not 0 <= t < size]
        if bad:
            raise IndexError(f"choose: there is no token {bad[0]}; the model has {size}.")
        for one in chosen:
            self._follow(one, "chosen", None)
            self.actions.append(("choose", {"token": one}))
        return self.node

    def _ranked(self, rank: int) -> int:
        size = self.logits(self.node).shape[0]
        if not 0 <= rank < size:
            raise IndexError(f"choose: rank={rank} is outside 0..{size - 1}.")
        return self.top(rank + 1)[rank][0]

    def _draw(self) -> SessionNode:
        node, cursor = self.node, self.cursor
        state = counter(self.seed, cursor.salt, node.stop)
        token = self._picker(node, cursor.settings).pick(self.logits(node), state)
        drawn = bool(cursor.settings.do_sample)
        self._follow(token, "drawn", state if drawn else None)
        if self.actions and self.actions[-1][0] == "step":
            self.actions[-1][1]["n"] += 1
        else:
            self.actions.append(("step", {"n": 1}))
        return self.node

    def _follow(self, token: int, how: str, rng: bytes | None) -> None:
        """Add a token behind the node where it stands, or find it, and go there."""
        node, cursor = self.node, self.cursor
        logits = self.logits(node)
        self.outlook(node)  # while the logits are at hand
        logprob = float(logits.double().log_softmax(-1)[token])
        self._go(
            self._add(
                parent=node,
                tokens=(token,),
                plan=node.plan,
                settings=cursor.settings,
                salt=cursor.salt,
                how=how,
                rng=rng,
                logprob=logprob,
            )
        )

    def _picker(self, node: SessionNode, settings: GenerationConfig) -> Picker:
        start = len(self.root_of(node).tokens)
        return Picker(settings, self.tokens_of(node), start, model=self.model, tokenizer=self.tokenizer)

    # --- going to and fro ---------------------------------------------------------------------

    def undo(self, n: int = 1) -> SessionNode:
        """Take back the last move, or the last `n`; a token, a jump or a change is one."""
        if not 1 <= n <= self._at:
            raise IndexError(f"undo: there are {self._at} moves to take back, not {n}.")
        self._at -= n
        self.actions.append(("undo", {"n": n}))
        return self.node

    def redo(self, n: int = 1) -> SessionNode:
        """Make moves again that were taken back."""
        left = len(self._history) - 1 - self._at
        if not 1 <= n <= left:
            raise IndexError(f"redo: there are {left} moves to make again, not {n}.")
        self._at += n
        self.actions.append(("redo", {"n": n}))
        return self.node

    def jump(self, node: SessionNode | int) -> SessionNode:
        """Go to any node, with its settings and its branch."""
        found = self._node(node)
        self._go(found)
        self.actions.append(("jump", {"node": found.id}))
        return found

    def branch(self, node: SessionNode | int | None = None) -> int:
        """Let what is drawn from here on, or from another node on, be drawn anew.

        Gives the number of the branch; the text up to here stays. Without sampling, the next token
        is the best one in every branch: use `choose`.
        """
        found = self._node(node)
        settings = self.settings if node is None else found.settings
        self._salts += 1
        self._push(Cursor(found.id, settings, self._salts))
        self.actions.append(("branch", {"node": found.id if node is not None else None}))
        return self._salts

    # --- changing -----------------------------------------------------------------------------

    def set_sampler(self, **settings: Any) -> None:
        """Draw with other settings from here on; those not named stay."""
        config = updated(self.settings, settings)
        self._push(Cursor(self.node.id, config, self.cursor.salt))
        self.actions.append(("set_sampler", {"settings": dict(settings)}))

    def set_seed(self, seed: int) -> None:
        """Draw with another seed from here on; tokens that were drawn stay."""
        self.seed = int(seed)
        self.actions.append(("set_seed", {"seed": self.seed}))

    def set_edits(self, edits: Edits, *, from_start: bool = False) -> SessionNode:
        """Make these edits, and no others, from here on; gives the same token under them.

        The token here is fed again with them, and what came before stays as it was computed,
        except that edits with positions hold for these wherever they are. With `from_start`, all
        edits hold for the whole text.
        """
        node = self.node
        if edits:
            Patch(self.model, edits)
        plan = begin(edits) if from_start else change(node.plan, edits, node.start)
        count = len(self.nodes)
        made = self._variant(node, plan)
        try:
            self.logits(made)
        except BaseException:
            if len(self.nodes) > count:  # it was never made
                self.nodes.pop()
                if made.parent is not None:
                    made.parent.children_ids.remove(made.id)
            raise
        self._go(made)
        self.actions.append(("set_edits", {"plan": begin(edits), "from_start": from_start}))
        return made

    def _variant(self, node: SessionNode, plan: EditPlan) -> SessionNode:
        cursor = self.cursor
        if node.parent_id is None:
            return self._root(node.tokens, plan, cursor.settings, cursor.salt, variant_of=node.id)
        return self._add(
            parent=node.parent,
            tokens=node.tokens,
            plan=plan,
            settings=cursor.settings,
            salt=cursor.salt,
            how="edited",
            rng=node.rng,
            logprob=node.logprob,
            variant_of=node.id,
        )

    def set_prompt(self, prompt: str | Sequence[int]) -> SessionNode:
        """Begin again with another prompt; blocks that it shares with earlier ones are kept.

        The settings stay, and the edits in force hold from its beginning on.
        """
        cursor = self.cursor
        ids = self._ids(prompt)
        made = self._root(ids, begin(self.edits), cursor.settings, cursor.salt)
        self._go(made)
        self.actions.append(("set_prompt", {"tokens": list(ids)}))
        return made

    # --- keeping ------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the tree into one file, with the hashes of model and tokenizer."""
        from .session_file import save

        save(self, path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], model: Module, tokenizer: Any = None, *, force: bool = False
    ) -> Session:
        """Read what `save` wrote; another model or tokenizer is refused unless `force`."""
        from .session_file import load

        return load(cls, path, model, tokenizer, force=force)

    def replay(self, *, strict: bool = True) -> Replay:
        """Compute and draw everything again from nothing, and compare bit by bit."""
        from .session_file import replay

        return replay(self, strict=strict)

    def to_script(self, setup: str | None = None) -> str:
        """A Python program that makes this session again; `setup` makes model and tokenizer."""
        from .session_script import to_script

        return to_script(self, setup)

    def _go(self, node: SessionNode) -> None:
        self._push(Cursor(node.id, node.settings, node.salt))

    def _push(self, cursor: Cursor) -> None:
        del self._history[self._at + 1 :]
        self._history.append(cursor)
        self._at += 1

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"<session of {len(self)} nodes, at {self.node.id} after {self.node.stop} tokens>"
