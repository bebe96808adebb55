"""Walking a tree of modules: what is below, by name. Knows a module's tables, not its calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

from ..tensor import Tensor
from .parameter import Parameter

if TYPE_CHECKING:
    from .module import Module


class Tree:
    """The part of Module that finds parameters, buffers and submodules."""

    _modules: dict[str, Any]
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _get_name: Callable[[], str]

    # --- iterating ----------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Tree] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it with their paths; a shared one comes once.

        >>> m = votive.nn.Sequential(votive.nn.Identity())
        >>> [name for name, _ in m.named_modules()]
        ['', '0']
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self  # type: ignore[misc]  # a tree is always a module
        for name, module in self._modules.items():
            if module is not None:
                below = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, below, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it.

        >>> len(list(votive.nn.Sequential(votive.nn.Identity()).modules()))
        2
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct submodules with their names; a shared one comes once.

        >>> [name for name, _ in votive.nn.Sequential(votive.nn.Identity()).named_children()]
        ['0']
        """
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The direct submodules.

        >>> list(votive.nn.Sequential(votive.nn.Identity()).children())
        [Identity()]
        """
        for _, module in self.named_children():
            yield module

    def _named_members(
        self,
        get_members_fn: Callable[[Tree], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Members of all modules below; one that is registered twice comes under its first name."""
        seen: set[int] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules if recurse else [(prefix, self)]:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield (f"{path}.{name}" if path else name), member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Parameters with their paths.

        >>> m = votive.nn.ParameterList([votive.ones(2)])
        >>> [(name, p.shape) for name, p in m.named_parameters("list")]
        [('list.0', votive.Size([2]))]
        """
        return self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Parameters, each once.

        >>> sum(p.numel() for p in votive.nn.ParameterList([votive.ones(2, 3)]).parameters())
        6
        """
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Buffers with their paths.

        >>> m = votive.nn.Module()
        >>> m.register_buffer("steps", votive.tensor(0))
        >>> list(m.named_buffers())
        [('steps', tensor(0))]
        """
        return self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Buffers, each once.

        >>> list(votive.nn.Identity().buffers())
        []
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def apply(self, fn: Callable[[Any], object]) -> Self:
        """Call `fn` on every module below, then on this one.

        >>> m = votive.nn.Sequential(votive.nn.Identity())
        >>> _ = m.apply(lambda m: print(type(m).__name__))
        Identity
        Sequential
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # --- by path ------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Module:
        """The module at a dotted path; the empty path is this module.

        >>> votive.nn.Sequential(votive.nn.Identity()).get_submodule("0")
        Identity()
        """
        from .module import Module

        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a dotted path; `strict` asks that there was one.

        >>> m = votive.nn.Sequential(votive.nn.Identity())
        >>> m.set_submodule("0", votive.nn.Sequential())
        >>> m
        Sequential(
          (0): Sequential()
        )
        """
        from .module import Module

        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if not hasattr(parent, name):
            if strict:
                raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        elif not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_member(self, target: str) -> tuple[Module, str, Any]:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name, getattr(module, name)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path.

        >>> votive.nn.ParameterList([votive.ones(1)]).get_parameter("0")
        Parameter containing:
        tensor([1.], requires_grad=True)
        """
        _, name, found = self._get_member(target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path.

        >>> m = votive.nn.Module()
        >>> m.register_buffer("steps", votive.tensor(3))
        >>> m.get_buffer("steps")
        tensor(3)
        """
        module, name, found = self._get_member(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found
