"""What the engine is asked for and what it tells: plain records. Knows no HTTP and no model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..generation import GenerationConfig

if TYPE_CHECKING:
    from .glass_request import Glass


class Busy(RuntimeError):
    """Too many texts wait already; `retry_after` is how many seconds to wait before asking again."""

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Closing(RuntimeError):
    """The server is ending."""

    def __init__(self) -> None:
        super().__init__("the server is ending.")


@dataclass
class TextRequest:
    """Prompts to continue, each `n` times.

    `config` has its defaults filled in. `logprobs` is how many of the likeliest tokens to tell at each place beside
    the one that was chosen; None for nothing.

    >>> from votive.serve.events import TextRequest
    >>> TextRequest([[1, 2]], votive.generation.GenerationConfig().resolved(), max_new_tokens=4).texts
    1
    """

    prompts: list[list[int]]
    config: GenerationConfig
    max_new_tokens: int
    n: int = 1
    logprobs: int | None = None
    glass: Glass | None = None
    share: bool = True  # whether blocks of other texts may be used

    @property
    def texts(self) -> int:
        """How many texts there will be."""
        return len(self.prompts) * self.n


@dataclass(frozen=True)
class Chosen:
    """A token, with what the model thought of it and of others."""

    token: int
    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Delta:
    """More of a text: `choice` numbers the texts of a request."""

    choice: int
    text: str
    tokens: tuple[Chosen, ...] = ()


@dataclass(frozen=True)
class Ended:
    """A text is complete: `reason` is "eos", "stop", "length", or "cancelled"."""

    choice: int
    reason: str
    stop: str | None = None


@dataclass(frozen=True)
class Failed:
    """The request cannot be answered, or not any further."""

    error: Exception


@dataclass
class Usage:
    """How many tokens were read and written; `reused` is how many of those to read were known already."""

    prompt: int = 0
    completion: int = 0
    reused: int = 0


@dataclass(frozen=True)
class Done:
    """All texts of the request have ended."""

    usage: Usage
    glass: dict[str, Any] | None = None  # what was found inside, where that was asked for


Event = Delta | Ended | Failed | Done
Listener = Callable[[Event], None]


@dataclass
class Counters:
    """What an engine has done so far, for whoever watches it."""

    requests: int = 0
    refused: int = 0
    failed: int = 0
    cancelled: int = 0
    finished: int = 0
    prompt_tokens: int = 0
    reused_tokens: int = 0
    completion_tokens: int = 0
    steps: int = 0
    step_rows: int = 0
    step_seconds: float = 0.0
    read_seconds: float = 0.0
    first_token_seconds: list[float] = field(default_factory=list)  # the last few, for quantiles
