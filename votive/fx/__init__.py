"""Programs as graphs of Python calls: trace a module, look at its calls, change them, and run the result.

>>> traced = votive.fx.symbolic_trace(votive.nn.Sequential(votive.nn.ReLU()))
>>> print(traced.code.strip())
def forward(self, input):
    input_1 = input
    _0 = getattr(self, "0")(input_1);  input_1 = None
    return _0
"""

from . import graph, graph_module, interpreter, node, passes, proxy, subgraph_rewriter, tracer
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy, TraceError
from .subgraph_rewriter import replace_pattern
from .tracer import Tracer, symbolic_trace, wrap

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "TraceError",
    "Tracer",
    "Transformer",
    "graph",
    "graph_module",
    "has_side_effect",
    "interpreter",
    "map_arg",
    "node",
    "passes",
    "proxy",
    "replace_pattern",
    "subgraph_rewriter",
    "symbolic_trace",
    "tracer",
    "wrap",
]
