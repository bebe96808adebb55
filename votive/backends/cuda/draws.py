"""Random draws inside graphs: the counter of a captured draw lies in device memory and is moved on
before each replay. Knows generators, not distributions.
"""

from __future__ import annotations

from typing import Any


def before_replay(graph: Any) -> None:
    """Give the graph's draws new numbers."""
    for draw in getattr(graph, "_draws", ()):
        draw.advance()
