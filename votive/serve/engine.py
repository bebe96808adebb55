"""The engine of one model: texts join and leave between steps, prompts are read in parts beside those that are written.

`step` is called by one thread, again and again; requests come from any. Knows no HTTP.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import votive

from .admission import Admission, need_of, positions_of
from .batch import Batch
from .blocks import BlockStore
from .events import Busy, Closing, Counters, Done, Ended, Failed, Listener, TextRequest
from .glass_probe import RowProbe
from .rows_cache import copied, packed_of, restored
from .sampling import chosen
from .served_model import ServedModel, step_rows
from .text import Text, Ticket, texts_of

if TYPE_CHECKING:
    from ..nn import KVCache
    from ..tensor import Tensor

MEMORY = 2 << 30  # bytes of keys and values, unless told otherwise
_REMEMBERED = 1024  # times to a first token


class Engine:
    """Serves one model.

    `memory` bounds the bytes of keys and values, of texts that are written and of what is kept of others, in blocks of
    `block` positions that texts with the same beginning share; prompts are read `chunk` tokens at a time. With
    `deterministic` each text is stepped by itself, and its tokens and logits are those of
    `generate(prefill_chunk_size=chunk)`, bit by bit. `default_tokens` bounds texts whose length nobody else does.

    >>> from votive.serve import Engine, ServedModel, TextRequest
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2, eos_token_id=None)
    >>> engine = Engine(ServedModel("tiny", votive.models.LlamaForCausalLM(config).eval(), None))
    >>> settings, events = votive.generation.GenerationConfig().resolved(), []
    >>> _ = engine.submit(TextRequest([[1, 2]], settings, max_new_tokens=3), events.append)
    >>> while engine.step():
    ...     pass
    >>> [type(e).__name__ for e in events]
    ['Delta', 'Delta', 'Delta', 'Ended', 'Done']
    """

    def __init__(
        self,
        served: ServedModel,
        *,
        max_texts: int = 64,
        max_waiting: int = 256,
        memory: int = MEMORY,
        block: int = 16,
        chunk: int = 256,
        deterministic: bool = False,
        share: bool = True,
        default_tokens: int = 1024,
    ) -> None:
        if min(max_texts, chunk, block, default_tokens) < 1 or max_waiting < 0:
            raise ValueError("Engine: max_texts, chunk, block and default_tokens must be at least 1, max_waiting 0.")
        self.served, self.default_tokens = served, default_tokens
        self.deterministic, self.chunk = deterministic, chunk
        self.alone = deterministic or not served.together
        # Parts of a chunk are computed otherwise than a whole one: only whole ones are the same bits for every text.
        block = chunk if deterministic else block
        blocks = memory // max(served.position_bytes() * block, 1)
        if not blocks:
            raise ValueError(f"Engine: {memory:,} bytes of memory hold no block of {block} positions.")
        self.store = BlockStore(blocks, block)
        self.share = share and served.shares
        self.counters, self._counting = Counters(), threading.Lock()
        self.wake: Callable[[], None] = lambda: None
        self._times: deque[float] = deque(maxlen=_REMEMBERED)
        self._batch, self._alone = Batch(served), list[Text]()
        self._reading: deque[Text] = deque()
        rows = self._batch.cache
        self._admission = Admission(self.store, max_texts, max_waiting, rows.allocated, rows.shrink)
        self._probe = RowProbe(served.model)

    # --- from any thread ----------------------------------------------------------------------------

    def submit(self, request: TextRequest, listener: Listener) -> Ticket:
        """Ask for texts; `listener` is called with what comes, in the engine's thread.

        `Busy` where too many wait, ValueError where the request can never be answered.
        """
        self._check(request)
        need = need_of(request, self.alone)
        self.store.check(positions_of([need]))
        try:
            self._admission.check(request.texts, self._patience())
            ticket = Ticket(request, listener)
            ticket.wake, ticket.need = self.wake, need
            texts = texts_of(ticket, self.served.model, self.served.tokenizer)
            self._admission.add(ticket, texts, self._patience())
        except Busy:
            with self._counting:  # several threads ask at once
                self.counters.refused += 1
            raise
        with self._counting:
            self.counters.requests += 1
        self.wake()
        return ticket

    def _patience(self) -> int:
        """Seconds in which a place may become free."""
        recent = list(self._times)[-20:]
        return max(1, min(30, round(sum(recent) / len(recent)))) if recent else 1

    def _check(self, request: TextRequest) -> None:
        if not request.prompts or any(not p for p in request.prompts):
            raise ValueError("a prompt must have at least one token.")
        if request.max_new_tokens < 1 or request.n < 1:
            raise ValueError("max_tokens and n must be at least 1.")
        most = self._admission.max_texts
        if request.texts > most:
            raise ValueError(f"{request.texts} texts are asked for at once; this server writes {most}.")
        size = self.served.vocabulary
        for prompt in request.prompts:
            if min(prompt) < 0 or max(prompt) >= size:
                raise ValueError(f"a prompt has tokens outside the vocabulary of {size:,}.")
            longest, context = len(prompt) + request.max_new_tokens, self.served.context
            if context is not None and longest > context:
                raise ContextExceeded(
                    f"this model's context is {context:,} tokens; the prompt has {len(prompt):,} and "
                    f"{request.max_new_tokens:,} more were asked for."
                )

    @property
    def busy(self) -> bool:
        """Whether there is anything to do."""
        return bool(self._admission.waiting or self._admission.open)

    def statistics(self) -> dict[str, Any]:
        """Numbers of now: texts in each state, blocks, what was done so far."""
        return {
            "waiting": self._admission.waiting_texts(),
            "reading": sum(1 + len(t.twins) for t in list(self._reading)),
            "writing": len(self._alone) + len(self._batch.texts),
            "blocks": self.store.statistics(),
            "counters": self.counters,
            "first_token": sorted(self._times),
        }

    # --- in the engine's thread ---------------------------------------------------------------------

    def step(self) -> bool:
        """Read a part of a prompt, and write one more token of every text; whether there is more to do."""
        with votive.no_grad():
            self._drop_cancelled()
            self._start()
            self._read()
            if self._batch.texts:
                self._write()
            for text in list(self._alone):
                if text in self._alone:  # its request may have failed meanwhile
                    self._write_alone(text)
        return self.busy

    def close(self, error: Exception | None = None) -> None:
        """End all requests, and take no more."""
        self._admission.close()
        self.fail_all(error or Closing())
        self.store.forget()

    def fail_all(self, error: Exception) -> None:
        """Answer every request with an error."""
        for ticket in self._admission.empty():
            ticket.tell(Failed(error))
        for ticket in list(self._admission.open.values()):
            self._fail(ticket, error)
        self._batch.clear()

    def _drop_cancelled(self) -> None:
        for ticket in self._admission.drop_cancelled():
            self.counters.cancelled += 1
            ticket.tell(Done(ticket.usage))
        for ticket in [t for t in self._admission.open.values() if t.cancelled]:
            self.counters.cancelled += 1
            for text in ticket.texts:
                if text.reason is None:
                    ticket.tell(Ended(text.choice, "cancelled"))
            self._drop(ticket)
            ticket.tell(Done(ticket.usage))

    def _start(self) -> None:
        while (found := self._admission.take()) is not None:
            ticket, texts = found
            self.counters.prompt_tokens += ticket.usage.prompt
            self._reading.extend(texts)

    # --- reading ------------------------------------------------------------------------------------

    def _read(self) -> None:
        """Read prompts, about `chunk` tokens of them, so that texts that are written do not wait long."""
        left = self.chunk
        while self._reading and left > 0:
            text = self._reading[0]
            began = time.perf_counter()
            try:
                left -= self._read_part(text)
            except Exception as error:
                self._fail(text.ticket, error)
            self.counters.read_seconds += time.perf_counter() - began

    def _read_part(self, text: Text) -> int:
        """Read up to the next multiple of `chunk`; gives how many tokens that were."""
        cache = text.cache or self._begin(text)
        start = text.fed
        stop = text.prompt if self.served.ropes else min(text.prompt, (start // self.chunk + 1) * self.chunk)
        logits = self._run(text, cache, start, stop)
        text.fed = stop
        self._give(text, cache)
        if stop == text.prompt:
            self._reading.popleft()
            self._first(text, logits)
        return stop - start

    def _run(self, text: Text, cache: KVCache, start: int, stop: int) -> Tensor:
        """Read some positions of a text by itself."""
        rows = [] if text.watch is None else [(0, text.watch, start, stop)]
        with self._probe.following(rows), self.served.reaching(stop):
            return self.served.run(self.served.tensor(text.ids[start:stop]), cache)

    def _begin(self, text: Text) -> KVCache:
        """Let a text begin, with what is known of its beginning."""
        cache, watch = text.begin(self.served.cache_dtype), text.watch
        if not (self.share and text.ticket.request.share):
            return cache
        text.shared = self.store.keys(text.ids, b"", [] if watch is None else watch.changes)
        most = (text.prompt - 1) // self.store.size  # the last token is always read: its logits are wanted
        if watch is not None and watch.first_needed is not None:
            most = min(most, watch.first_needed // self.store.size)
        blocks = self.store.found(text.shared[:most])
        text.kept = len(blocks)
        text.fed = len(blocks) * self.store.size
        restored(cache, [b.packed for b in blocks])
        if watch is not None:
            watch.made_before(text.fed)
        text.ticket.usage.reused += text.fed
        self.counters.reused_tokens += text.fed
        self.store.count(text.fed, text.prompt - text.fed)
        return cache

    def _give(self, text: Text, cache: KVCache, row: int | None = None) -> None:
        """Keep the blocks that a text has filled, for others that begin alike; `row` is its own in a batch."""
        size = self.store.size
        while text.kept < len(text.shared) and (text.kept + 1) * size <= text.fed:
            key, start = text.shared[text.kept], text.kept * size
            if not self.store.has(key):
                stop, batch = start + size, self._batch.cache
                self.store.keep(key, packed_of(cache, start, stop) if row is None else batch.packed(row, start, stop))
            text.kept += 1

    def _first(self, text: Text, logits: Tensor) -> None:
        """Choose what follows a prompt, for each of its texts, and let them be written."""
        same, cache = [text, *text.twins], text.cache
        assert cache is not None, "it was read"
        for twin in text.twins:
            twin.fed, twin.shared, twin.kept = text.fed, text.shared, text.kept
            twin.watch = None if text.watch is None else text.watch.copied()
        self._choose(same, logits if len(same) == 1 else logits.expand(len(same), -1), first=True)
        if text.ticket.over:
            return
        if text.ticket.first_token is not None:
            self._times.append(text.ticket.first_token - text.ticket.began)
        text.cache = None
        going = [t for t in same if t.reason is None]
        for i, one in enumerate(going):
            if self.alone:
                one.cache = cache if i == len(going) - 1 else copied(cache)
                self._alone.append(one)
            else:
                self._batch.add(one, cache)

    # --- writing ------------------------------------------------------------------------------------

    def _write(self) -> None:
        """One more token of every text of the batch."""
        began, texts, cache = time.perf_counter(), list(self._batch.texts), self._batch.cache
        watched = [(i, t.watch, t.fed, t.fed + 1) for i, t in enumerate(texts) if t.watch is not None]
        try:
            with self._probe.following(watched):
                logits = step_rows(self.served, cache, [t.ids[-1] for t in texts])
        except Exception as error:
            # What each of them brings was tried when its prompt was read, so nobody is to blame more than others.
            for ticket in {t.ticket.number: t.ticket for t in texts}.values():
                self._fail(ticket, error)
            return
        for text in texts:
            text.fed += 1
        self._choose(texts, logits)
        self._count(began, len(texts))

    def _write_alone(self, text: Text) -> None:
        """One more token of a text that is stepped by itself."""
        began, cache = time.perf_counter(), text.cache
        assert cache is not None
        start, stop = text.fed, len(text.ids)
        try:
            if self.served.ropes and self._outgrown(cache, start, stop):
                cache.reset()
                start = 0
                if text.watch is not None:
                    text.watch.restart()
            logits = self._run(text, cache, start, stop)
        except Exception as error:
            self._fail(text.ticket, error)
            return
        text.fed = stop
        self._choose([text], logits)
        self._count(began, 1)

    def _outgrown(self, cache: KVCache, start: int, stop: int) -> bool:
        """Whether keys were turned by angles that no longer hold for a text of this length."""
        rope = self.served.ropes[0]
        stretch = rope.stretch(start) if cache.stretch is None else cache.stretch
        return bool(stretch != rope.stretch(stop))

    def _count(self, began: float, rows: int) -> None:
        self.counters.steps += 1
        self.counters.step_rows += rows
        self.counters.step_seconds += time.perf_counter() - began

    def _choose(self, texts: Sequence[Text], logits: Tensor, first: bool = False) -> None:
        """Give each text its next token, and take out those that have ended."""
        tokens = chosen([(t.chooser, t.ids, first) for t in texts], logits)
        errors = [None if t.watch is None else t.watch.error for t in texts]
        for row, (text, token, error) in enumerate(zip(texts, tokens, errors, strict=True)):
            if text.ticket.over:
                continue  # another text of the request has failed
            try:
                if error is not None:
                    raise error
                if isinstance(token, Exception):
                    raise token
                self.counters.completion_tokens += 1
                text.take(token, logits[row])
            except Exception as e:
                self._fail(text.ticket, e)
                continue
            if text.reason is not None:
                self._end(text)

    # --- ends ---------------------------------------------------------------------------------------

    def _end(self, text: Text) -> None:
        """A text is complete."""
        ticket = text.ticket
        self._take_out(text)
        ticket.open -= 1
        if not ticket.open:
            self._admission.release(ticket)
            self.counters.finished += 1
            ticket.tell(Done(ticket.usage, _found(ticket)))

    def _take_out(self, text: Text) -> None:
        """What it has written is kept too, since the next turn of a conversation begins with it."""
        if text in self._batch.texts:
            row = self._batch.texts.index(text)
            self._name_blocks(text)
            self._give(text, self._batch.cache, row)
            self._batch.remove(text)
        elif text in self._alone:
            self._alone.remove(text)
            if text.cache is not None and not self.deterministic:
                self._name_blocks(text)
                self._give(text, text.cache)
        text.cache = None

    def _name_blocks(self, text: Text) -> None:
        if self.share and text.ticket.request.share:
            text.shared = self.store.keys(text.ids[: text.fed], b"", [] if text.watch is None else text.watch.changes)

    def _drop(self, ticket: Ticket) -> None:
        """Take out all texts of a request that goes no further."""
        for text in [t for t in self._batch.texts if t.ticket is ticket]:
            self._batch.remove(text)
        self._reading = deque(t for t in self._reading if t.ticket is not ticket)
        self._alone = [t for t in self._alone if t.ticket is not ticket]
        for text in ticket.texts:
            text.cache = None
        self._admission.release(ticket)

    def _fail(self, ticket: Ticket, error: Exception) -> None:
        self.counters.failed += 1
        self._drop(ticket)
        ticket.tell(Failed(error))


class ContextExceeded(ValueError):
    """A prompt and what was asked for do not fit into what the model was made for."""


def _found(ticket: Ticket) -> dict[str, Any] | None:
    glass = ticket.request.glass
    return None if glass is None else glass.results([t.watch for t in ticket.texts if t.watch is not None])
