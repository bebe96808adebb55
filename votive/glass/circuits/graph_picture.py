"""An attribution graph as a picture: positions from left to right, layers from below. Knows shapes and names."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from ..canvas import LETTER, Canvas
from ..plots import Figure, short
from .traced_graph import AttributionGraph

_FEATURE, _TOKEN, _LOGIT, _ERROR = "#0072b2", "#009e73", "#d55e00", "#9a9a9a"
_COLOURS = {"feature": _FEATURE, "neuron": _FEATURE, "token": _TOKEN, "logit": _LOGIT, "error": _ERROR}
_UP, _DOWN = "#7fb3d3", "#eaa67a"  # edges that add, and that take away
_NODE, _GAP, _ROW, _LEFT = 8, 3, 40, 64
_MOST = 24  # nodes side by side


@dataclass(frozen=True)
class GraphPicture(Figure):
    """Nodes by position and layer with the edges of most influence; pointing at a node tells what it is."""

    graph: AttributionGraph
    edges: int = 200

    def to_dict(self) -> dict[str, Any]:
        return {"edges": self.edges, "graph": self.graph.to_dict()}

    def canvas(self) -> Canvas:
        graph, shown = self.graph, self._shown()
        cells: dict[tuple[int, int], list[int]] = defaultdict(list)
        for i in shown:
            cells[graph.nodes[i].position, graph.nodes[i].layer].append(i)
        widest = dict.fromkeys(range(graph.positions), 1)
        for (position, _), inside in cells.items():
            widest[position] = max(widest[position], min(len(inside), _MOST))
        names = [short(t, 12) for t in graph.labels()]
        lefts, x = [], _LEFT
        for position in range(graph.positions):
            lefts.append(x)
            x += max(widest[position] * (_NODE + _GAP), LETTER * len(names[position])) + 2 * _NODE
        canvas = Canvas(max(x + 8, 200), (graph.layers + 2) * _ROW + 48)
        places: dict[int, tuple[float, float]] = {}
        for (position, layer), inside in cells.items():
            y = (graph.layers - layer) * _ROW + 16
            for k, i in enumerate(inside):
                row, column = divmod(k, _MOST)
                places[i] = (lefts[position] + column * (_NODE + _GAP), y + row * (_NODE + _GAP))
        self._lines(canvas, places)
        for i, (left, top) in places.items():
            node = graph.nodes[i]
            canvas.rectangle(left, top, _NODE, _NODE, _COLOURS[node.kind], f"{node} {node.activation:.3g}")
        for layer in range(-1, graph.layers + 1):
            name = "tokens" if layer < 0 else "logits" if layer == graph.layers else str(layer)
            canvas.text(_LEFT - 12, (graph.layers - layer) * _ROW + 20, name, "end")
        for left, name in zip(lefts, names, strict=True):
            canvas.text(left, (graph.layers + 2) * _ROW + 8, name)
        for left, name, colour in ((8, "adds", _UP), (80, "takes away", _DOWN), (192, "error", _ERROR)):
            canvas.rectangle(left, canvas.height - 20, 10, 10, colour)
            canvas.text(left + 14, canvas.height - 15, name)
        return canvas

    def _shown(self) -> list[int]:
        """Nodes that an edge leads to or from, tokens and logits."""
        graph, n = self.graph, self.graph.units
        used = (graph.edges != 0).any(0).tolist()
        fed = [True] * n if not n else (graph.edges[:n] != 0).any(1).tolist()
        found: list[int] = []
        for i, node in enumerate(graph.nodes):
            if node.kind in ("token", "logit") or used[i] or (i < n and fed[i]):
                found.append(i)
        return found

    def _lines(self, canvas: Canvas, places: dict[int, tuple[float, float]]) -> None:
        graph, n, m = self.graph, self.graph.units, len(self.graph.sources)
        table = graph._table()
        shares, most = table.shares(), table.flows().flatten().argsort(descending=True)[: self.edges].tolist()
        for at in reversed(most):
            i, j = divmod(at, m)
            target = i if i < n else m + i - n
            weight = float(graph.edges[i, j])
            if weight and j in places and target in places:
                (x0, y0), (x1, y1) = places[j], places[target]
                half, width = _NODE / 2, 0.5 + 3 * float(shares[i, j])
                canvas.line(x0 + half, y0, x1 + half, y1 + _NODE, _UP if weight > 0 else _DOWN, round(width, 2))
