"""What a server does, in the text form that Prometheus reads."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable

from .registry import Registry

_QUANTILES = (0.5, 0.9, 0.99)


class Measured:
    """Answers by address and status.

    >>> from votive.serve.metrics import Measured
    >>> measured = Measured()
    >>> measured.count("/v1/models", 200)
    >>> measured.answers()
    [('/v1/models', 200, 1)]
    """

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()

    def count(self, path: str, status: int) -> None:
        """One more answer."""
        with self._lock:
            self._answers[path, status] += 1

    def answers(self) -> list[tuple[str, int, int]]:
        """Address, status, how often."""
        with self._lock:
            return sorted((path, status, n) for (path, status), n in self._answers.items())


def prometheus(registry: Registry, measured: Measured) -> str:
    """All numbers of a server."""
    lines: list[str] = []

    def family(name: str, kind: str, text: str, samples: Iterable[tuple[str, float]]) -> None:
        lines.append(f"# HELP votive_{name} {text}")
        lines.append(f"# TYPE votive_{name} {kind}")
        lines.extend(f"votive_{name}{labels} {value:.10g}" for labels, value in samples)

    answers = [(f'{{path="{p}",status="{s}"}}', float(n)) for p, s, n in measured.answers()]
    family("http_answers_total", "counter", "Answers by address and status.", answers)
    every = [(f'{{model="{_quoted(e.served.name)}"}}', e, e.statistics()) for e in registry.engines()]

    def simple(name: str, kind: str, text: str, field: str) -> None:
        family(name, kind, text, [(label, float(s[field])) for label, _, s in every])

    simple("texts_waiting", "gauge", "Texts that have not begun.", "waiting")
    simple("texts_reading", "gauge", "Texts whose prompt is read.", "reading")
    simple("texts_writing", "gauge", "Texts that are written.", "writing")
    for field, text in (("total", "there are"), ("held", "texts hold"), ("kept", "are kept for texts to come")):
        samples = [(label, float(getattr(s["blocks"], field))) for label, _, s in every]
        family(f"blocks_{field}", "gauge", f"Blocks of positions that {text}.", samples)
    evicted = [(label, float(s["blocks"].evicted)) for label, _, s in every]
    family("blocks_evicted_total", "counter", "Blocks that made room for others.", evicted)
    for field, text in (
        ("requests", "Requests that were taken."),
        ("refused", "Requests that were refused because too many waited."),
        ("failed", "Requests that failed."),
        ("cancelled", "Requests that were given up."),
        ("finished", "Requests that were answered."),
        ("prompt_tokens", "Tokens of prompts."),
        ("reused_tokens", "Tokens of prompts that had been read before."),
        ("completion_tokens", "Tokens that were written."),
        ("steps", "Steps of a token for some texts."),
        ("step_rows", "Texts in these steps."),
        ("step_seconds", "Seconds in these steps."),
        ("read_seconds", "Seconds of reading prompts."),
    ):
        samples = [(label, float(getattr(s["counters"], field))) for label, _, s in every]
        family(f"{field}_total", "counter", text, samples)
    quantiles = []
    for label, _, s in every:
        times = s["first_token"]
        for q in _QUANTILES if times else ():
            value = times[min(int(q * len(times)), len(times) - 1)]
            quantiles.append((f'{label[:-1]},quantile="{q}"}}', value))
    family("first_token_seconds", "gauge", "Seconds from a request to its first token, of the last ones.", quantiles)
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
