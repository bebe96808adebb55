"""A model that is served under several names: by itself, and with each of its adapters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..models.adapter_layers import activate, needed
from ..models.adapter_methods import AdapterMethods
from ..models.adapters import switch_adapters

if TYPE_CHECKING:
    from ..models.config import StrPath


class AdapterSwitch:
    """Loads adapters into a model, and puts one of them in force, or none.

    >>> from votive.serve.adapters import AdapterSwitch
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> AdapterSwitch(votive.models.LlamaForCausalLM(config).eval()).names
    {}
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.names: dict[str, str] = {}  # by what an adapter is called here, what it is called in the model
        self._now: str | None = None

    def load(self, name: str, folder: StrPath) -> None:
        """Read an adapter from a folder or a repository, as PEFT writes them."""
        if not isinstance(self.model, AdapterMethods):
            raise ValueError(f"adapters go into text generators; {name} is for a {type(self.model).__name__}.")
        inside = f"served{len(self.names)}"
        self.model.load_adapter(folder, inside)
        if needed(self.model, "serve").made[inside].prompt is not None:
            raise ValueError(
                f'the adapter "{name}" is a learned prompt, which stands before texts and shifts their positions; '
                "serve takes adapters of layers."
            )
        self.names[name], self._now = inside, name
        self.model.eval()

    def use(self, name: str | None) -> None:
        """Put an adapter in force; None for the model by itself."""
        if name == self._now or not self.names:
            return
        switch_adapters(self.model, name is not None)
        if name is not None:
            activate(self.model, [self.names[name]])
        self._now = name

    def using(self, name: str | None) -> Callable[[], None]:
        """What puts it in force, to be called before the model runs."""
        return partial(self.use, name)
