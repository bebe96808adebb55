"""Attribution graphs as the JSON that circuit-tracer's page and Neuronpedia's draw. Knows the format, no model.

Neuronpedia publishes it as a JSON schema, "Anthropic Attribution Graph" 1.0.0; what circuit-tracer's page reads
besides (`token_prob`, `is_target_logit`, numbers of features as pairs) is there as well.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from ...serialization.atomic import replacing
from ..labels import TokenNames, token_labels

if TYPE_CHECKING:
    from .traced_graph import AttributionGraph, Node

KINDS = {
    "feature": "cross layer transcoder",
    "neuron": "cross layer transcoder",
    "error": "mlp reconstruction error",
    "token": "embedding",
    "logit": "logit",
}


def paired(a: int, b: int) -> int:
    """Two numbers as one, as Cantor counted pairs; files have a layer and a feature of it so.

    >>> from votive.glass.circuits.graph_file import paired
    >>> [paired(0, 0), paired(1, 0), paired(0, 1), paired(2, 0)]
    [0, 1, 2, 3]
    """
    return (a + b) * (a + b + 1) // 2 + b


def as_json(graph: AttributionGraph, slug: str, scan: str, prompt: str) -> dict[str, Any]:
    """The document, as plain values.

    >>> from votive.glass.circuits.graph_file import as_json
    >>> sorted(as_json.__annotations__)
    ['graph', 'prompt', 'return', 'scan', 'slug']
    """
    tokenizer = graph.tokenizer
    tokens = [_plain(t, tokenizer) for t in graph.tokens]
    ids = [_id(n, graph.layers) for n in graph.nodes]
    counted = graph.counted
    if counted is None:
        spread = graph.influence()
        order = spread.argsort(descending=True).tolist()
        running = (spread[order].cumsum(0) / spread.sum().clamp(min=1e-30)).tolist()
        by_source = dict(zip(order, running, strict=True))
        counted = tuple(by_source[i] for i in range(len(order)))
    first_logit = len(graph.sources)
    nodes = []
    for i, (node, name) in enumerate(zip(graph.nodes, ids, strict=True)):
        nodes.append(_node(node, name, graph.layers, tokenizer, counted[i] if i < first_logit else None))
        nodes[-1]["is_target_logit"] = i == first_logit
    targets = (*ids[: graph.units], *ids[first_logit:])
    links = [
        {"source": ids[j], "target": targets[i], "weight": float(graph.edges[i, j])}
        for i, j in graph.edges.nonzero().tolist()
    ]
    metadata = {
        "slug": slug,
        "scan": scan,
        "transcoder_list": [],
        "prompt_tokens": tokens,
        "prompt": prompt or "".join(tokens),
        "schema_version": 1,
        "info": {"generator": {"name": "votive"}},
    }
    params = {"pinnedIds": [], "supernodes": [], "linkType": "both", "clickedId": "", "sg_pos": ""}
    return {"metadata": metadata, "qParams": params, "nodes": nodes, "links": links}


def _plain(token: int, tokenizer: TokenNames | None) -> str:
    """A token as it stands in the text: files hold no signs for spaces."""
    if token < 0:
        return "?"
    if tokenizer is not None and hasattr(tokenizer, "decode"):
        return str(tokenizer.decode([token]))
    return token_labels([token], tokenizer)[0]


def _id(node: Node, layers: int) -> str:
    layer = {"token": "E", "logit": str(layers + 1)}.get(node.kind, str(node.layer))
    return f"{layer}_{node.number}_{node.position}"


def _node(node: Node, name: str, layers: int, tokenizer: TokenNames | None, counted: float | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "node_id": name,
        "feature": node.number,
        "layer": name.partition("_")[0],
        "ctx_idx": node.position,
        "feature_type": KINDS[node.kind],
        "token_prob": 0.0,
        "run_idx": 0,
        "reverse_ctx_idx": 0,
        "jsNodeId": f"{node.layer}_{node.number}-0",
        "clerp": "",
        "influence": counted,
        "activation": None,
    }
    if node.kind in ("feature", "neuron"):
        found |= {"feature": paired(node.layer, node.number), "activation": node.activation}
        found["clerp"] = f"neuron {node.number}" if node.kind == "neuron" else ""
    elif node.kind == "error":
        found["jsNodeId"] = f"{node.layer}_-1-{node.position}"
    elif node.kind == "token":
        found |= {"feature": node.position, "jsNodeId": f"E_{node.number}-{node.position}"}
        found["clerp"] = f'"{_plain(node.number, tokenizer)}"'
    else:
        found |= {"token_prob": node.activation, "jsNodeId": f"L_{node.number}-{node.position}"}
        found["clerp"] = f'Output "{_plain(node.number, tokenizer)}" (p={node.activation:.3f})'
    return found


def write(path: str | os.PathLike[str], document: dict[str, Any]) -> None:
    """Write a document into a file, all of it or nothing.

    >>> import tempfile, pathlib
    >>> from votive.glass.circuits.graph_file import write
    >>> path = pathlib.Path(tempfile.mkdtemp(), "graph.json")
    >>> write(path, {"nodes": []})
    >>> path.read_text()
    '{"nodes": []}'
    """
    with replacing(os.fspath(path)) as f:
        f.write(json.dumps(document).encode())
