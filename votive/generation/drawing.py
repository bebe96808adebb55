"""Choosing the next token: the best one, or one drawn by its probability. Knows no model.

A row of a batch draws from its own stream of numbers, found from the seed and the row's prompt
alone, so what it draws does not depend on the rows beside it.
"""

from __future__ import annotations

import hashlib

import votive
from votive.nn import functional as F

from ..tensor import Tensor

# Numbers drawn at once for a row; a call for each token would cost more than all the rest.
_BLOCK = 128
NONE_LEFT = (
    "generate: no token can be drawn, as every one is forbidden or a score is not a number; check "
    "the logits processors, or set remove_invalid_values=True."
)


class Stream:
    """Uniform numbers of one row.

    >>> from votive.generation.drawing import Stream
    >>> Stream(3).next() == Stream(3).next()
    True
    """

    def __init__(self, key: int) -> None:
        self.generator = votive.Generator().manual_seed(key)
        self._left: list[float] = []

    def next(self) -> float:
        """A number of [0, 1)."""
        if not self._left:
            block = votive.rand(_BLOCK, dtype=votive.float64, generator=self.generator)
            self._left = block.tolist()[::-1]
        return self._left.pop()


def streams(seed: int, prompts: list[list[int]]) -> list[Stream]:
    """A stream for each prompt; prompts that are equal get different ones, in their order.

    >>> from votive.generation.drawing import streams
    >>> a, b, c = (s.next() for s in streams(0, [[1, 2], [3], [1, 2]]))
    >>> a == streams(0, [[1, 2]])[0].next(), a == c
    (True, False)
    """
    times: dict[tuple[int, ...], int] = {}
    found = []
    for prompt in prompts:
        ids = tuple(prompt)
        turn = times[ids] = times.get(ids, -1) + 1
        text = f"{seed} {turn} {' '.join(map(str, ids))}".encode()
        key = hashlib.blake2b(text, digest_size=8).digest()
        found.append(Stream(int.from_bytes(key, "little")))
    return found


def seed_from(seed: int | None, generator: votive.Generator | None) -> int:
    """The seed that was given, or one drawn from a generator, or from the default one."""
    if seed is not None:
        return seed
    return int(votive.randint(1 << 62, (1,), generator=generator).item())


def drawn(scores: Tensor, numbers: list[float]) -> Tensor:
    """A token for each row, by the probabilities that scores (batch, vocabulary) stand for.

    >>> from votive.generation.drawing import drawn
    >>> drawn(votive.tensor([[0.25, 0.25, 0.5]]).log(), [0.6])
    tensor([2])
    """
    return picked(F.softmax(scores, -1), numbers)


def best(scores: Tensor) -> Tensor:
    """The best token of each row; all of them may be forbidden, and then none is.

    >>> from votive.generation.drawing import best
    >>> best(votive.tensor([[0.25, 0.5, 0.25]]))
    tensor([1])
    """
    tokens = scores.argmax(-1)
    found = scores.gather(-1, tokens.unsqueeze(-1)).flatten().tolist()
    if not all(score > -float("inf") for score in found):  # nor is what is no number
        raise ValueError(NONE_LEFT)
    return tokens


def several(scores: Tensor, count: int, stream: Stream) -> Tensor:
    """Different places of scores, drawn by their probabilities; too few are filled up by score.

    >>> from votive.generation.drawing import Stream, several
    >>> several(votive.tensor([-1e9, 0.0, -2e9, -3e9]), 3, Stream(0))
    tensor([1, 0, 2])
    """
    odds = F.softmax(scores, -1)
    possible = int((odds > 0).sum())
    if possible == 0:
        raise ValueError(NONE_LEFT)
    # A stream's numbers are the CPU's, wherever the scores lie.
    drawn = votive.multinomial(odds.cpu(), min(possible, count), generator=stream.generator).to(odds.device)
    if possible >= count:
        return drawn
    # Sampling settings may leave fewer tokens than beams want, and at first one beam counts.
    others = (odds == 0).nonzero().squeeze(1)
    best = votive.topk(scores[others], count - possible).indices
    return votive.cat([drawn, others[best]])


def picked(weights: Tensor, numbers: list[float]) -> Tensor:
    """A position for each row of weights: the first at which their sum passes its number's share.

    >>> from votive.generation.drawing import picked
    >>> picked(votive.tensor([[1.0, 0.0, 3.0]]), [0.2])
    tensor([0])
    """
    total = weights.cumsum(-1, dtype=votive.float64)
    whole = total[:, -1:]
    if not all(0 < t < float("inf") for t in whole.flatten().tolist()):
        raise ValueError(NONE_LEFT)
    share = votive.tensor(numbers, dtype=votive.float64, device=weights.device).unsqueeze(1) * whole
    # The second test matters when the share rounds up to the whole.
    return ((total <= share) & (total < whole)).sum(-1)
