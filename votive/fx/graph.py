"""Graphs: nodes in the order in which they run, and ways to add, remove, copy and check them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .codegen import CodeGen, Namespace, PythonCode
from .node import Node, map_arg, qualified_name

__all__ = ["CodeGen", "Graph", "PythonCode"]


class _NodeList:
    """The nodes of a graph, in order."""

    def __init__(self, graph: Graph, reverse: bool = False) -> None:
        self._graph, self._reverse = graph, reverse

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Node]:
        # An erased node still knows its neighbours, so a loop may erase where it stands.
        root, back = self._graph._root, self._reverse
        at = root._prev if back else root._next
        while at is not root:
            if not at._erased:
                yield at
            at = at._prev if back else at._next

    def __reversed__(self) -> _NodeList:
        return _NodeList(self._graph, not self._reverse)


class _InsertPoint:
    def __init__(self, graph: Graph, new: Callable[[Node], None]) -> None:
        self._graph, self._before = graph, graph._insert
        graph._insert = new

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None:
        self._graph._insert = self._before


class Graph:
    """What a traced program does: a list of nodes.

    >>> graph = votive.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(votive.add, (x, 1))
    >>> print(graph.output(y).args)
    (add,)
    """

    def __init__(
        self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: dict[str, Any] | None = None
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._namespace = Namespace()
        self._owning_module, self._tracer_cls, self._tracer_extras = owning_module, tracer_cls, tracer_extras
        self._codegen = CodeGen()

    @property
    def owning_module(self) -> Any:
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: Any) -> None:
        self._owning_module = module

    @property
    def nodes(self) -> _NodeList:
        """The nodes, in the order in which they run."""
        return _NodeList(self)

    def find_nodes(self, *, op: str, target: object = None, sort: bool = True) -> list[Node]:
        """The nodes of one kind, and of one target where that is given, in their order."""
        found = [n for n in self.nodes if n.op == op and (target is None or n.target == target)]
        return found if sort else list(found)

    def output_node(self) -> Node:
        """The node that gives the results."""
        last = self._root._prev
        assert last.op == "output", "the graph has no output yet"
        return last

    # --- making nodes -------------------------------------------------------------------------

    def create_node(
        self,
        op: str,
        target: object,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """A node at the place where nodes are inserted now."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        assert isinstance(args, tuple), "args must be a tuple"
        assert isinstance(kwargs, dict), "kwargs must be a dict"
        unique = self._namespace.create_name(name or _candidate(op, target))
        node = Node(self, unique, op, target, args, kwargs, type_expr)
        self._namespace.rename(node, node.name)
        self._insert(node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """A parameter of the function."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: object = None) -> Node:
        """A parameter, buffer or attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: object = None,
    ) -> Node:
        """A call of a module below the owning one."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: object = None,
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: object = None,
        name: str | None = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: object, type_expr: object = None) -> Node:
        """What the function gives."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """A copy of another graph's node; `arg_transform` says what stands for each of its inputs here."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = dict(node.meta)
        return copied

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copy all nodes of another graph to here; gives what it returns, in terms of this graph's nodes."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        made._codegen = self._codegen
        out = made.graph_copy(self, {}, return_output_node=True)
        if out is not None:
            result, old = out
            node = made.output(result, type_expr=getattr(old, "type", None))
            node.meta = dict(old.meta)
        if isinstance(memo, dict):
            memo[id(self)] = made
        return made

    # --- changing -----------------------------------------------------------------------------

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """A block in which new nodes are inserted before the given one, or at the beginning without one."""
        if n is None:
            return self.inserting_after(self._root)
        assert n.graph is self, "Node to insert before is not in graph."
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """A block in which new nodes stand behind one; without one, at the end."""
        if n is None:
            return self.inserting_before(self._root)
        assert n.graph is self, "Node to insert after is not in graph."
        last = [n]

        def behind(new: Node) -> None:
            last[0].append(new)
            last[0] = new

        return _InsertPoint(self, behind)

    def erase_node(self, to_erase: Node) -> None:
        """Take a node out whose result nobody uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        to_erase._take((), {})

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take out all nodes whose results nobody uses; whether there were any."""
        self.lint()
        impure = is_impure_node or (lambda n: n.is_impure())
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """Raise an error where the graph does not hold together."""
        names: set[str] = set()
        seen: set[Node] = set()

        def check(arg: Node, node: Node) -> None:
            if arg.graph is not self:
                raise RuntimeError(
                    f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an argument!"
                )
            if arg not in seen:
                raise RuntimeError(
                    f"Argument '{arg}' of Node '{node}' was used before it has been defined! Please check that Nodes "
                    f"in the graph are topologically ordered\n{self}"
                )

        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            map_arg((node.args, node.kwargs), lambda n, node=node: check(n, node))  # type: ignore[misc]
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._check_target(node)

    def _check_target(self, node: Node) -> None:
        at = self.owning_module
        for i, part in enumerate(node.target.split(".")):
            if not hasattr(at, part):
                owner = ".".join(node.target.split(".")[:i])
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part} of {owner}"
                )
            at = getattr(at, part)

    # --- text ---------------------------------------------------------------------------------

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let text be made in another way."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[Any], Callable[[list[str]], list[str]]]) -> Any:
        """Refused: text is made from the graph alone; derive from CodeGen instead."""
        raise NotImplementedError("Graph.on_generate_code: derive from CodeGen and pass it to set_codegen instead.")

    def process_inputs(self, *args: Any) -> Any:
        """What the placeholders get for the function's arguments."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """What the function gives for the graph's results."""
        return self._codegen.process_outputs(out)

    def python_code(self, root_module: str) -> PythonCode:
        """The function as text; attributes are read from `root_module`."""
        return self._codegen.generate(self, root_module)

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        head = ("opcode", "name", "target", "args", "kwargs")
        rows = [head, *(tuple(map(str, (n.op, n.name, n.target, n.args, n.kwargs))) for n in self.nodes)]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        lines.insert(1, "  ".join("-" * w for w in widths))
        print("\n".join(lines))

    def __str__(self) -> str:
        return "\n".join(["graph():", *(f"    {n.format_node()}" for n in self.nodes)])


def _candidate(op: str, target: Any) -> str:
    if op == "call_function":
        name: str = getattr(target, "__name__", None) or qualified_name(target).rsplit(".", 1)[-1]
        return _snake(name)
    text = str(target).replace(".", "_")
    return f"_{text.lstrip('*')}" if text.startswith("*") else text


def _snake(name: str) -> str:
    """`_getitem` and `__add__` as `getitem` and `add`."""
    return name.strip("_") + ("_" if name.endswith("_") and not name.endswith("__") else "") or name
