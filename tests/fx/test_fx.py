"""fx: programs become graphs and graphs programs; graphs are changed, checked, interpreted and matched."""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import pytest

import votive
from votive import fx, nn
from votive.nn import functional as F


def helper(x: Any) -> Any:
    return x * len(x)


fx.wrap("helper")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 4)
        self.scale = nn.Parameter(votive.ones(4))
        self.seq = nn.Sequential(nn.ReLU(), nn.Linear(4, 2))
        self.unused = nn.Linear(1, 1)

    def forward(self, x: Any, y: Any = 2, *args: Any, k: Any = None, **rest: Any) -> Any:
        a = self.lin(x) + self.scale * y
        b = votive.cat([a, a], dim=-1)[:, :4].sum(-1, keepdim=True)
        c = F.relu(a, inplace=False)
        d = c.view(c.shape[0], -1)
        d = -d
        d += 1
        return {"out": self.seq(d), "b": (b, a.size(0), 1 - a, a.T, None)}


def test_a_module_becomes_the_text_that_torch_gives() -> None:
    net = Net()
    traced = fx.symbolic_trace(net)
    x = votive.randn(5, 3)
    assert votive.equal(traced(x)["out"], net(x)["out"])
    assert votive.equal(traced(x)["b"][2], net(x)["b"][2])
    lines = traced.code.strip().splitlines()
    assert lines[0] == "def forward(self, x, y = 2, k = None, *args, **rest):"
    assert "    cat = votive.cat([add, add], " in traced.code
    assert "    getitem = cat[(slice(None, None, None), slice(None, 4, None))];  cat = None" in lines
    assert "    relu = votive.nn.functional.relu(add, inplace = False)" in lines
    assert '    seq_0 = getattr(self.seq, "0")(add_1);  add_1 = None' in lines
    assert "%scale : [num_users=1] = get_attr[target=scale]" in str(traced.graph)
    assert set(dict(traced.named_parameters())) == {n for n, _ in net.named_parameters() if "unused" not in n}
    traced(x)["out"].sum().backward()
    assert net.scale.grad is not None


def test_copies_and_pickles_run() -> None:
    x = votive.randn(2, 3)
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(3, 4), nn.ReLU()))
    want = traced(x)
    twin = copy.deepcopy(traced)
    assert votive.equal(twin(x), want)
    next(twin.parameters()).data.zero_()
    assert votive.equal(traced(x), want)
    assert votive.equal(pickle.loads(pickle.dumps(traced))(x), want)


ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda x: x if x.sum() > 0 else -x, fx.TraceError, "cannot be used as inputs to control flow"),
    (lambda x: list(x), fx.TraceError, "Proxy object cannot be iterated"),
    (lambda x: len(x), RuntimeError, "'len' is not supported in symbolic tracing"),
    (lambda x: {x: 1}, RuntimeError, "Keys for dictionaries used as an argument cannot contain a Node"),
    (lambda x: x in [1], fx.TraceError, "control flow"),
]


@pytest.mark.parametrize(("program", "kind", "text"), ERRORS, ids=[t for _, _, t in ERRORS])
def test_what_a_trace_cannot_record_is_an_error(program: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        fx.symbolic_trace(program)


def unpacked(x: Any) -> Any:
    a, b = x.chunk(2)
    return helper(a) * b


def test_unpacking_wrapped_functions_and_constants() -> None:
    traced = fx.symbolic_trace(unpacked)
    assert any(n.target is helper for n in traced.graph.nodes)
    assert traced(votive.tensor([1.0, 2.0, 3.0, 4.0])).tolist() == [6, 16]
    constant = fx.symbolic_trace(lambda x: votive.tensor([1.0, 2.0]) + x)
    assert constant(votive.ones(2)).tolist() == [2, 3]
    assert "_tensor_constant0" in constant.code
    fixed = fx.symbolic_trace(lambda x, n: x * n if n > 1 else x, concrete_args={"n": 3})
    assert fixed(votive.ones(1), 3).item() == 3
    with pytest.raises(AssertionError, match="n has been specialized to have value 3"):
        fixed(votive.ones(1), 4)


def test_graphs_are_edited_and_checked() -> None:
    traced = fx.symbolic_trace(lambda x: votive.relu(x + 1) * 2)
    graph = traced.graph
    relu = graph.find_nodes(op="call_function", target=votive.relu)[0]
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(relu)
    with graph.inserting_after(relu):
        new = graph.call_function(votive.tanh, (relu.args[0],))
    assert relu.replace_all_uses_with(new) == [new.next]
    graph.erase_node(relu)
    graph.lint()
    traced.recompile()
    assert traced(votive.zeros(1)).item() == pytest.approx(2 * votive.tanh(votive.ones(1)).item())
    with graph.inserting_before(new):
        dead = graph.call_method("exp", (new.args[0],))
    assert not dead.users
    assert dead < new
    assert graph.eliminate_dead_code()
    assert dead not in list(graph.nodes)
    new.update_arg(0, graph.find_nodes(op="placeholder")[0])
    assert new.all_input_nodes == graph.find_nodes(op="placeholder")
    graph.output_node().prepend(graph.find_nodes(op="placeholder")[0])
    with pytest.raises(RuntimeError, match="was used before it has been defined"):
        graph.lint()


def test_a_graph_built_by_hand_runs() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    w = graph.get_attr("w")
    y = graph.call_function(operator.matmul, (x, w))
    graph.output((y, [x]))
    module = fx.GraphModule({"w": nn.Parameter(votive.eye(2))}, graph, "ByHand")
    assert votive.equal(module(votive.ones(2))[0], votive.ones(2))
    assert type(module).__name__ == "ByHand"
    module.add_submodule("deep.layer", nn.ReLU())
    module.delete_all_unused_submodules()
    assert not hasattr(module, "deep")
    assert module.print_readable(print_output=False).startswith("class ByHand(votive.nn.Module):")


def test_interpreters_and_transformers_see_every_node() -> None:
    seen: list[str] = []

    class Watch(fx.Interpreter):
        def run_node(self, n: fx.Node) -> Any:
            seen.append(n.op)
            return super().run_node(n)

    net = Net()
    traced = fx.symbolic_trace(net)
    x = votive.randn(2, 3)
    assert votive.equal(Watch(traced).run(x)["out"], net(x)["out"])
    assert seen.count("call_module") == 3

    class Swap(fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(operator.sub if target is operator.add else target, args, kwargs)

    assert Swap(fx.symbolic_trace(lambda v: v + 1)).transform()(votive.ones(1)).item() == 0
    fx.passes.shape_prop.ShapeProp(traced).propagate(x)
    metas = {n.name: n.meta["tensor_meta"].shape for n in traced.graph.nodes if n.op == "call_module"}
    assert metas == {"lin": (2, 4), "seq_0": (2, 4), "seq_1": (2, 2)}


def test_patterns_are_replaced_where_they_are_closed() -> None:
    traced = fx.symbolic_trace(lambda a, b: votive.relu(a + b) + votive.relu(b + 1) + votive.exp(votive.relu(a + b)))
    found = fx.replace_pattern(traced, lambda p, q: votive.relu(p + q), lambda p, q: votive.tanh(p) - q)
    assert len(found) == 3
    a, b = votive.tensor([0.5]), votive.tensor([0.25])
    want = (a.tanh() - b) + (b.tanh() - 1) + (a.tanh() - b).exp()
    assert traced(a, b).item() == pytest.approx(want.item())
    again = fx.symbolic_trace(lambda a: (a.neg() + a.neg().exp()).sum())
    assert fx.replace_pattern(again, lambda x: x.cos(), lambda x: x.sin()) == []


def test_a_tracer_decides_what_is_a_leaf_and_what_conditions_mean() -> None:
    class Deep(fx.Tracer):
        def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
            return False

        def to_bool(self, obj: fx.Proxy) -> bool:
            return True

    graph = Deep().trace(nn.Linear(2, 2))
    assert [n.op for n in graph.nodes] == ["placeholder", "get_attr", "get_attr", "call_function", "output"]
    chosen = Deep().trace(lambda x: x + 1 if x.sum() > 0 else x)
    assert chosen.find_nodes(op="call_function", target=operator.add)
