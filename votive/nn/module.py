"""Module: a callable with parameters, buffers and submodules, registered by assigning attributes.

What it can do beyond that stands in its parts: hooks, state, tree, convert. Knows no layer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, Self

from ..core.mode import Ever, mode
from ..tensor import Tensor
from .address import Children, Path, locate, note, refuse_foreign
from .convert import Convertible
from .fast_path import record_methods
from .global_hooks import GLOBAL, registered
from .hooks import Call, Hooked
from .parameter import Buffer, Parameter
from .state import Stateful
from .tree import Tree

_HOOK_TABLES = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def typename(value: object) -> str:
    """The name of a value's type as errors show it.

    >>> from votive.nn.module import typename
    >>> typename(votive.ones(1)), typename(3)
    ('votive.FloatTensor', 'int')
    """
    if isinstance(value, Tensor):
        return str(value.type())
    kind = value if isinstance(value, type) else type(value)
    where = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return where + kind.__qualname__


def indented(text: str) -> str:
    """Text whose lines after the first are moved two columns to the right."""
    first, *rest = text.split("\n")
    return "\n".join([first, *("  " + line if line.strip() else "" for line in rest)])


def _missing_forward(self: Module, *input: Any) -> NoReturn:
    """Defined by every module that is called."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(Hooked, Stateful, Tree, Convertible):
    """Base of all layers and models: assign parameters and modules, define `forward`, call it.

    >>> class Scale(votive.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = votive.nn.Parameter(votive.tensor(3.0))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> Scale()(votive.ones(2))
    tensor([3., 3.], grad_fn=<MulBackward0>)
    """

    training: bool
    call_super_init: bool = False
    dump_patches: bool = False
    # As they were written, see fast_path.
    _original_methods: ClassVar[dict[str, Any]]
    _original_call: ClassVar[tuple[Callable[..., Any], Callable[..., Any]]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        record_methods(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        self.__dict__.update(_fresh_tables())
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # --- calling ------------------------------------------------------------------------------

    # A value and no method, so that type checkers let subclasses choose the arguments.
    forward: Callable[..., Any] = _missing_forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        before = mode.module_path
        if before.__class__ is Path:
            path = before.below.get(id(self)) or locate(self, before)
        else:
            path = locate(self, before)
        mode.module_path = path
        if path and not before:
            mode.noted = Ever.noted = True
        try:
            if (
                own["_forward_hooks"]
                or own["_forward_pre_hooks"]
                or own["_backward_hooks"]
                or own["_backward_pre_hooks"]
                or GLOBAL
            ):
                return Call(self, args, kwargs).run()
            return self.forward(*args, **kwargs)
        except Exception as e:
            note(e, path, self)
            if e.__class__ is AttributeError:
                refuse_foreign(e, path, self, args)
            raise
        finally:
            mode.module_path = before
            if path and not before:
                mode.renew()

    _call_impl = __call__

    # --- registering --------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or None for one that may come later.

        >>> m = votive.nn.Module()
        >>> m.register_parameter("bias", None)
        >>> print(m.bias)
        None
        """
        self._check_name("parameter", name, "_parameters")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' (votive.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                f"created explicitly. To express '{name}' as a function of another Tensor, compute "
                "the value in the forward() method."
            )
        if param is not None:
            param = registered("parameter", self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but no parameter; `persistent` ones are saved.

        >>> m = votive.nn.Module()
        >>> m.register_buffer("cache", votive.zeros(2), persistent=False)
        >>> m.cache, list(m.state_dict())
        (tensor([0., 0.]), [])
        """
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (votive Tensor or None required)"
            )
        self._buffers[name] = registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule.

        >>> m = votive.nn.Module()
        >>> m.add_module("inner", votive.nn.Identity())
        >>> m.inner
        Identity()
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, "_modules")
        self._modules[name] = registered("module", self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Another name of `add_module`.

        >>> m = votive.nn.Module()
        >>> m.register_module("inner", None)
        """
        self.add_module(name, module)

    def _check_name(self, kind: str, name: object, table: str) -> None:
        if table not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if "." in name:
            got = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{got}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in self.__dict__[table] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    # --- attributes ---------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_modules" in own:
            # Spelled out, as this is how forward reads its weights.
            if name in own["_parameters"]:
                return own["_parameters"][name]
            if name in own["_buffers"]:
                return own["_buffers"][name]
            if name in own["_modules"]:
                return own["_modules"][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: object) -> None:
        own = self.__dict__
        params = own.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._release(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (votive.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._release(name, "_parameters", "_buffers")
            own["_modules"][name] = registered("module", self, name, value)
        elif params is None:
            super().__setattr__(name, value)
        elif name in own["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (votive.nn.Module or None expected)"
                )
            own["_modules"][name] = registered("module", self, name, value)
        elif name in own["_buffers"] or isinstance(value, Buffer):
            self._set_buffer(name, value)
        elif name == "_modules":
            own["_modules"].clear()
            own["_modules"].update(value)
        else:
            super().__setattr__(name, value)

    def _release(self, name: str, *tables: str) -> None:
        """Forget what else bears this name, now that something new is registered under it."""
        own = self.__dict__
        own.pop(name, None)
        for table in tables:
            own[table].pop(name, None)
        own["_non_persistent_buffers_set"].discard(name)

    def _set_buffer(self, name: str, value: object) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' "
                "(votive.nn.Buffer, votive.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            persistent = value.persistent
        else:
            persistent = name not in self._non_persistent_buffers_set
        if persistent:
            # Subclasses may override register_buffer without the argument.
            self.register_buffer(name, value)
        else:
            self.register_buffer(name, value, False)

    def __delattr__(self, name: str) -> None:
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            if name in own[table]:
                del own[table][name]
                if table == "_buffers":
                    own["_non_persistent_buffers_set"].discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        own = self.__dict__
        names = [*dir(type(self)), *own, *own["_parameters"], *own["_modules"], *own["_buffers"]]
        # Numbers are names of list entries, not attributes one can write.
        return sorted(n for n in names if not n[0].isdigit())

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({k: v for k, v in _fresh_tables().items() if k not in state})
        self.__dict__.update(state)

    # --- modes --------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Switch this module and all below it to training or evaluation.

        >>> votive.nn.Identity().train(False).training
        False
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Switch to evaluation.

        >>> votive.nn.Identity().eval().training
        False
        """
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Switch gradients of all parameters on or off.

        >>> votive.nn.ParameterList([votive.ones(1)]).requires_grad_(False)[0].requires_grad
        False
        """
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros.

        >>> m = votive.nn.ParameterList([votive.ones(1)])
        >>> m[0].sum().backward()
        >>> m.zero_grad()
        >>> print(m[0].grad)
        None
        """
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
                continue
            if param.grad.grad_fn is not None:
                param.grad.detach_()
            else:
                param.grad.requires_grad_(False)
            param.grad.zero_()

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Let calls of this module run its compiled `forward`; arguments are those of `votive.compile`.

        >>> layer = votive.nn.Linear(2, 2)
        >>> layer.compile()
        >>> layer(votive.zeros(1, 2)).shape
        votive.Size([1, 2])
        """
        from .compiled import compile

        self.__dict__["forward"] = compile(self.forward, *args, **kwargs)

    # --- text ---------------------------------------------------------------------------------

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the parentheses; override it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        inline = len(lines) == 1 and not self._modules
        lines += [f"({name}): {indented(repr(m))}" for name, m in self._modules.items()]
        if inline or not lines:
            return f"{self._get_name()}({extra})"
        body = "".join(f"\n  {line}" for line in lines)
        return f"{self._get_name()}({body}\n)"


record_methods(Module)


def _fresh_tables() -> dict[str, Any]:
    """The attributes of a module that has nothing yet."""
    tables: dict[str, Any] = {
        "training": True,
        "_parameters": {},
        "_buffers": {},
        "_non_persistent_buffers_set": set(),
        "_is_full_backward_hook": None,
        "_modules": Children(),
    }
    tables.update((name, OrderedDict()) for name in _HOOK_TABLES)
    return tables
