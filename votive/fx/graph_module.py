"""A module whose forward is the text of a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
from pathlib import Path
from typing import Any

from ..core import spelled
from ..nn import Module, Parameter
from ..tensor import Tensor
from .graph import Graph, PythonCode

_ids = itertools.count()


def _compiled(code: PythonCode) -> Any:
    """The function of a text; tracebacks can show its lines."""
    name = f"<votive.fx generated {next(_ids)}>"
    scope = dict(code.globals)
    exec(compile(code.src, name, "exec"), scope)
    linecache.cache[name] = (len(code.src), None, code.src.splitlines(keepends=True), name)
    return scope["forward"]


def _copy_attr(source: Any, to: Any, target: str) -> None:
    """Give a module what another has at a path, with plain modules on the way."""
    *path, name = target.split(".")
    for part in path:
        below = getattr(source, part)
        if getattr(to, part, None) is None:
            setattr(to, part, Module())
        source, to = below, getattr(to, part)
    value = getattr(source, name)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to.register_buffer(name, value)
    else:
        setattr(to, name, value)


def _assign(value: object, to: Any, target: str) -> None:
    *path, name = target.split(".")
    for part in path:
        if getattr(to, part, None) is None:
            setattr(to, part, Module())
        to = getattr(to, part)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to.register_buffer(name, value)
    else:
        setattr(to, name, value)


class GraphModule(Module):
    """A module made of a graph and of what the graph calls.

    >>> traced = votive.fx.symbolic_trace(votive.nn.Sequential(votive.nn.Linear(2, 3)))
    >>> isinstance(traced, votive.fx.GraphModule)
    True
    """

    _graph: Graph

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # Each has a class of its own, since `forward` is looked up there.
        for base in cls.__mro__:
            if base.__qualname__ == "GraphModuleImpl":
                return super().__new__(cls)
        made: Any = type("GraphModuleImpl", (cls,), {"__qualname__": "GraphModuleImpl"})
        return super().__new__(made)

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = root.training
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            missing = [t for t in targets if t not in root]
            if missing:
                raise RuntimeError(
                    f"GraphModule: the graph refers to {missing[0]!r}, which is not among the given attributes."
                )
            for target in sorted(targets, key=lambda t: t.count(".")):
                _assign(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self._class_name = class_name
        self.meta: dict[str, Any] = {}
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph; after changes to it call `recompile()`."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        assert isinstance(g, Graph), f"Expected a Graph instance, but got {type(g)}"
        object.__setattr__(self, "_graph", g)
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The text of forward."""
        return self._code

    def recompile(self) -> PythonCode:
        """Let forward be what the graph says now."""
        made = self._graph.python_code("self")
        object.__setattr__(self, "_code", made.src)
        cls: Any = type(self)
        cls.forward = _compiled(made)
        return made

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a path, with plain modules on the way; False where something else is in the way."""
        *path, name = target.split(".")
        at: Any = self
        for part in path:
            if not hasattr(at, part):
                setattr(at, part, Module())
            at = getattr(at, part)
            if not isinstance(at, Module):
                return False
        at.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module at a path; False where there is none."""
        *path, name = target.split(".")
        at: Any = self
        for part in path:
            at = getattr(at, part, None)
            if not isinstance(at, Module):
                return False
        if not isinstance(getattr(at, name, None), Module):
            return False
        delattr(at, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that no call in the graph needs."""
        used: set[str] = set()
        for node in self._graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = str(node.target).split(".")
                used |= {".".join(parts[: i + 1]) for i in range(len(parts))}
                if node.op == "call_module":
                    below = self.get_submodule(node.target)
                    used |= {f"{node.target}.{path}" for path, _ in below.named_modules() if path}
        for path, _ in list(self.named_modules()):
            if path and path not in used:
                self.delete_submodule(path)

    def print_readable(self, print_output: bool = True) -> str:
        """The text of forward under the name of the class; printed unless told otherwise."""
        body = "\n".join(f"    {line}" if line.strip() else "" for line in self._code.strip("\n").splitlines())
        text = f"class {self._class_name}({spelled.package}.nn.Module):\n{body.rstrip()}\n"
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: str | Path, module_name: str = "FxModule") -> None:
        """Write the module as a Python package: its text, and a file with its state."""
        from ..serialization import save

        folder = Path(folder)
        folder.mkdir(exist_ok=True, parents=True)
        save(self.state_dict(), folder / "state_dict.pt")
        lines = [f'"""{module_name}, written from a graph."""', "", f"import {spelled.package}", "", ""]
        lines += [
            f"class {module_name}({spelled.package}.nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
        ]
        lines += [
            f"        self.{name} = {spelled.package}.nn.{m!r}"
            for name, m in self.named_children()
            if not list(m.children())
        ]
        lines += [
            f"        self.{n} = {spelled.package}.nn.Parameter({spelled.package}.empty({tuple(p.shape)}))"
            for n, p in self._parameters.items()
            if p is not None
        ]
        lines += ["", *(f"    {line}" for line in self._code.strip().splitlines())]
        (folder / "module.py").write_text("\n".join(lines) + "\n")
        (folder / "__init__.py").write_text(f"from .module import *  # {module_name}\n")

    def _state(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        holder = Module()
        holder.__dict__.update(copy.deepcopy(self._state(), memo))
        made = GraphModule(holder, copy.deepcopy(self._graph), self._class_name)
        for name, value in holder.__dict__.items():
            if name not in made.__dict__ or name in ("training", "meta"):
                made.__dict__[name] = value
        return made

    def __copy__(self) -> Any:
        return GraphModule(self, copy.deepcopy(self._graph), self._class_name)

    def __reduce__(self) -> Any:
        holder = Module()
        holder.__dict__.update(self._state())
        return _restored, (holder, self._code, self._class_name)

    __reduce_ex__ = lambda self, protocol: self.__reduce__()

    def __str__(self) -> str:
        return (
            f"{super().__repr__()}\n{self._code}\n# To see more debug info, please use `graph_module.print_readable()`"
        )


def _restored(holder: Module, code: str, class_name: str) -> GraphModule:
    """Unpickle: the text is compiled and traced again."""
    import votive

    from .tracer import Tracer

    # Text that was written on the alias of torch says `torch`.
    forward = _compiled(PythonCode(code, {"votive": votive, "torch": votive}))

    class KeepModules(Tracer):
        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return True

    holder.__class__ = type(class_name, (Module,), {"forward": forward})
    return GraphModule(holder, KeepModules().trace(holder), class_name)
