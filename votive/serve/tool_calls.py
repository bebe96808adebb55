"""Calls of tools in what a model writes, as text comes. Knows the forms that models are trained to write.

`<tool_call>{…}</tool_call>` (Hermes, Qwen), `[TOOL_CALLS] […]` (Mistral), and an answer that is JSON (Llama 3).
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Any

OPEN, CLOSE, LISTED = "<tool_call>", "</tool_call>", "[TOOL_CALLS]"
_STARTS = (OPEN, LISTED)


@dataclass(frozen=True)
class Call:
    """A call of a tool."""

    name: str
    arguments: str  # JSON
    identity: str = ""

    def to_json(self, index: int | None = None) -> dict[str, Any]:
        """As answers have it; with a number, as parts of answers have it."""
        found: dict[str, Any] = {} if index is None else {"index": index}
        return {
            **found,
            "id": self.identity,
            "type": "function",
            "function": {"name": self.name, "arguments": self.arguments},
        }


class CallReader:
    """Takes a text as it comes; gives what of it is content, and at the end the calls.

    >>> from votive.serve.tool_calls import CallReader
    >>> reader = CallReader({"add"})
    >>> reader.add("Sure. <tool_"), reader.add('call>{"name": "add", "arguments": {"a": 1}}</tool_call>')
    ('Sure. ', '')
    >>> rest, calls = reader.finish()
    >>> rest, calls[0].name, calls[0].arguments
    ('', 'add', '{"a": 1}')
    """

    def __init__(self, names: set[str], forced: bool = False) -> None:
        self.names, self.forced = names, forced
        self._all = ""
        self._shown = 0

    def add(self, text: str) -> str:
        """What of the text so far is certain to be content."""
        self._all += text
        end = self._certain()
        shown = self._all[self._shown : end]
        self._shown = max(self._shown, end)
        return shown

    def _certain(self) -> int:
        if self.forced or self._all.lstrip()[:1] in ("{", "["):
            return 0 if not self._shown else self._shown  # it may be a call as a whole
        if not self._all.strip():
            return 0
        marks = [at for mark in _STARTS if (at := self._all.find(mark)) >= 0]
        if marks:
            return min(marks)
        # What may be the beginning of a mark waits.
        for length in range(min(max(map(len, _STARTS)) - 1, len(self._all)), 0, -1):
            if any(mark.startswith(self._all[-length:]) for mark in _STARTS):
                return len(self._all) - length
        return len(self._all)

    def finish(self) -> tuple[str, list[Call]]:
        """The rest of the content, and the calls; text that only looks like a call is content."""
        found = self._tagged() or self._listed() or self._whole()
        if found:
            return "", found
        rest, self._shown = self._all[self._shown :], len(self._all)
        return rest, []

    def _tagged(self) -> list[Call]:
        parts = self._all.split(OPEN)[1:]
        calls = [self._call(part.partition(CLOSE)[0]) for part in parts]
        return [c for c in calls if c is not None] if all(c is not None for c in calls) else []

    def _listed(self) -> list[Call]:
        _, mark, after = self._all.partition(LISTED)
        return self._several(after) if mark else []

    def _whole(self) -> list[Call]:
        text = self._all.strip()
        if text.startswith("["):
            return self._several(text)
        call = self._call(text) if text.startswith("{") else None
        return [call] if call is not None else []

    def _several(self, text: str) -> list[Call]:
        try:
            listed = json.loads(text)
        except ValueError:
            return []
        calls = [self._of(one) for one in listed] if isinstance(listed, list) else []
        return [c for c in calls if c is not None] if calls and all(c is not None for c in calls) else []

    def _call(self, text: str) -> Call | None:
        try:
            return self._of(json.loads(text))
        except ValueError:
            return None

    def _of(self, said: Any) -> Call | None:
        if not isinstance(said, dict) or not isinstance(said.get("name"), str) or said["name"] not in self.names:
            return None
        arguments = said.get("arguments", said.get("parameters", {}))
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return Call(said["name"], text, f"call_{secrets.token_hex(12)}")
