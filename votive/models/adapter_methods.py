"""What models can do with adapters, by the names of transformers and PEFT. Knows no kind of adapter."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Self

from votive import nn

from ..tensor import Tensor
from . import adapter_files as files
from . import adapters as named
from .adapter_layers import adapters_of, disabled_adapters
from .config import StrPath


class AdapterMethods(nn.Module):
    """Adapters of one model: added, loaded, switched, merged and saved.

    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> model.add_adapter(votive.models.LoraConfig(r=2, target_modules=["q_proj"]), "first")
    >>> model.add_adapter(votive.models.LoraConfig(r=4, target_modules="all-linear"), "second")
    >>> model.set_adapter(["first", "second"])
    >>> model.active_adapters()
    ['first', 'second']
    """

    @property
    def peft_config(self) -> dict[str, Any]:
        """The configuration of each adapter, by name."""
        state = adapters_of(self)
        return {} if state is None else {name: made.config for name, made in state.made.items()}

    def add_adapter(self, adapter_config: Any, adapter_name: str = "default") -> None:
        """Put a new adapter into the model, to be trained; everything else is frozen."""
        named.add_adapter(self, adapter_config, adapter_name)

    def load_adapter(
        self, peft_model_id: StrPath, adapter_name: str = "default", *, is_trainable: bool = False, **places: Any
    ) -> list[str]:
        """Put the adapter of a folder, or of a repository, into the model; gives the paths of what is adapted."""
        return files.load_adapter(self, peft_model_id, adapter_name, is_trainable=is_trainable, **places)

    def save_adapter(self, folder: StrPath, adapter_name: str | None = None) -> list[str]:
        """Write one adapter (None: the active one) as PEFT does; gives the paths of what is adapted."""
        return files.save_adapter(self, folder, adapter_name)

    def set_adapter(self, adapter_name: str | Sequence[str]) -> None:
        """Make one adapter, or several that act one after the other, the active ones, and let them learn."""
        named.set_adapter(self, adapter_name)

    def active_adapters(self) -> list[str]:
        """The names of the active adapters."""
        state = adapters_of(self)
        return [] if state is None else list(state.active)

    def enable_adapters(self) -> None:
        """Let the active adapters act again."""
        named.switch_adapters(self, True)

    def disable_adapters(self) -> None:
        """Let the model be as it was without adapters."""
        named.switch_adapters(self, False)

    def disabled_adapters(self) -> AbstractContextManager[None]:
        """The model without its adapters while a block runs."""
        return disabled_adapters(self)

    def delete_adapter(self, adapter_names: str | Sequence[str]) -> None:
        """Take adapters out of the model."""
        named.delete_adapter(self, adapter_names)

    def add_weighted_adapter(
        self,
        adapters: Sequence[str],
        weights: Sequence[float],
        adapter_name: str,
        combination_type: str = "svd",
        svd_rank: int | None = None,
    ) -> None:
        """Make a LoRA adapter of others: see `votive.models.add_weighted_adapter`."""
        from .adapter_mixing import add_weighted_adapter

        add_weighted_adapter(self, adapters, weights, adapter_name, combination_type, svd_rank)

    def merge_adapter(self, adapter_names: Sequence[str] | None = None) -> None:
        """Let the layers themselves do the work of adapters (None: of the active ones)."""
        named.merge_adapter(self, adapter_names)

    def unmerge_adapter(self) -> None:
        """Give the layers their own weights back, bit by bit."""
        named.unmerge_adapter(self)

    def merge_and_unload(self) -> Self:
        """The model with its active adapters merged for good, and none left."""
        named.merge_and_unload(self)
        return self

    def unload(self) -> Self:
        """The model without adapters."""
        named.unload(self)
        return self

    def get_adapter_state_dict(self, adapter_name: str | None = None) -> dict[str, Tensor]:
        """The weights of one adapter by the names of PEFT's files."""
        return files.adapter_state_dict(self, adapter_name)
