"""One text that is being written: its ids, its own cache until it joins a batch, what of it can be shown."""

from __future__ import annotations

import itertools
import secrets
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from votive import nn

from ..generation.drawing import streams
from ..generation.stopping import EOS, LENGTH, STOP, Reader
from .events import Delta, Done, Ended, Failed, Listener, TextRequest, Usage
from .sampling import Chooser, described

if TYPE_CHECKING:
    from ..nn.layers.kv_storage import CacheDtype
    from ..tensor import Tensor
    from .events import Event
    from .glass_watch import Watch

_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Need:
    """The memory that a request may come to need: rows beside others, and positions of texts that go alone."""

    rows: int = 0
    longest: int = 0
    alone: int = 0
    prompt: int = 0


NOTHING = Need()


class Ticket:
    """A request on its way: what it holds of memory, who hears of it, whether anybody still wants it."""

    def __init__(self, request: TextRequest, listener: Listener) -> None:
        self.number = next(_NUMBERS)
        self.request, self._listener = request, listener
        self.need = NOTHING
        self.usage = Usage(prompt=sum(map(len, request.prompts)))
        self.began = time.monotonic()
        self.first_token: float | None = None
        self.texts: list[Text] = []
        self.open = 0  # texts that have not ended
        self.wake: Any = None  # tells the engine that something is to be done
        self._over = threading.Event()
        self._cancelled = threading.Event()

    @property
    def over(self) -> bool:
        """Whether its last event was told."""
        return self._over.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether nobody wants it any more."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Want it no more; may be called from any thread, at any time."""
        self._cancelled.set()
        if self.wake is not None:
            self.wake()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for its end."""
        return self._over.wait(timeout)

    def tell(self, event: Event) -> None:
        """Pass an event on; nothing follows the last one."""
        if self._over.is_set():
            return
        if isinstance(event, (Done, Failed)):
            self._over.set()
        elif isinstance(event, Delta) and self.first_token is None:
            self.first_token = time.monotonic()
        self._listener(event)


class Text:
    """A text of a request: prompt number `prompt`, copy number `copy` of it."""

    def __init__(
        self, ticket: Ticket, choice: int, ids: list[int], chooser: Chooser, reader: Reader | None, eos: set[int]
    ) -> None:
        self.ticket, self.choice, self.chooser, self.reader, self.eos = ticket, choice, chooser, reader, eos
        self.ids = list(ids)  # of the prompt, then what was written
        self.prompt = len(ids)
        self.longest = self.prompt + ticket.request.max_new_tokens
        self.fed = 0  # how many ids the cache holds
        self.cache: nn.DynamicCache | None = None  # its own, while it is read or goes alone
        self.twins: list[Text] = []  # further copies of the same prompt, which is read once
        self.shared: list[Any] = []  # keys of its blocks, as far as it may share them
        self.kept = 0  # how many of these it has given already
        self.alone = False  # whether it is stepped by itself
        glass = ticket.request.glass
        # What is looked at and changed inside, while it is read and written.
        self.watch: Watch | None = None if glass is None else glass.watch(len(ids))
        self.reason: str | None = None

    @property
    def new(self) -> int:
        """How many tokens were written."""
        return len(self.ids) - self.prompt

    def begin(self, dtype: CacheDtype) -> nn.DynamicCache:
        """An empty cache of its own."""
        self.cache = nn.DynamicCache(overwrite=True, dtype=dtype)
        return self.cache

    def take(self, token: int, logits: Tensor) -> None:
        """Add a token (chosen of logits (vocabulary,)), tell of it, and see whether it is the last."""
        self.ids.append(token)
        self.ticket.usage.completion += 1
        seen = described(logits, token, self.ticket.request.logprobs)
        shown = "" if self.reader is None else self.reader.add(token)
        stop = None if self.reader is None else self.reader.stop
        if token in self.eos:
            self.reason = EOS
        elif stop is not None:
            self.reason = STOP
        elif len(self.ids) >= self.longest:
            self.reason = LENGTH
        if self.reason is not None and self.reader is not None and stop is None:
            shown += self.reader.finish()
        self.ticket.tell(Delta(self.choice, shown, (seen,)))
        if self.reason is not None:
            self.ticket.tell(Ended(self.choice, self.reason, stop))


def texts_of(ticket: Ticket, model: Any, tokenizer: Any) -> list[Text]:
    """The texts of a request; those of one prompt are twins of the first of them.

    What is wrong with the request is found here.
    """
    request = ticket.request
    config = request.config
    eos = set(config.eos_ids())
    rows = [prompt for prompt in request.prompts for _ in range(request.n)]
    # Without a seed nobody shall be able to tell what comes.
    seed = secrets.randbits(62) if config.seed is None else config.seed
    numbers = streams(seed, rows) if config.do_sample else [None] * len(rows)
    found: list[Text] = []
    for i, (prompt, stream) in enumerate(zip(rows, numbers, strict=True)):
        chooser = Chooser(config, prompt, len(prompt) + request.max_new_tokens, stream, model, tokenizer)
        if i == 0:
            chooser.try_form()
        reader = None if tokenizer is None else Reader(tokenizer, config.stop_strings, eos)
        text = Text(ticket, i, prompt, chooser, reader, eos)
        ticket.texts.append(text)
        if i % request.n:
            found[-1].twins.append(text)
        else:
            found.append(text)
    ticket.open = len(rows)
    return found
