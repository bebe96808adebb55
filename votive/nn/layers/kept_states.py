"""What layers keep of a text besides keys and values: states in which all positions so far are summed up.

A state has no positions: it can be replaced and reordered, and not be cropped. Knows no layer.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tensor import Tensor

States = tuple[Tensor, ...]


class StateKeeper:
    """States by layer, whose first dimension is the sample; what was given is never written over."""

    def __init__(self) -> None:
        self._states: dict[int, States] = {}
        self._seen: list[int] = []

    def states(self, layer_idx: int) -> States | None:
        """What a layer has kept; None before its first position.

        >>> votive.nn.DynamicCache().states(0)
        """
        return self._states.get(layer_idx)

    def keep(self, layer_idx: int, states: Sequence[Tensor], positions: int) -> None:
        """Let a layer keep these states, after so many more positions.

        A layer that adds keys as well passes 0 positions: `update` counts them.

        >>> cache = votive.nn.DynamicCache()
        >>> cache.keep(0, [votive.zeros(1, 4)], 3)
        >>> cache.get_seq_length(), cache.states(0)[0].shape
        (3, votive.Size([1, 4]))
        """
        self._reach(layer_idx)
        self._states[layer_idx] = tuple(states)
        self._seen[layer_idx] += positions

    def keeps_states(self) -> bool:
        """Whether a layer has kept a state, so that the cache cannot be cropped."""
        return any(self._states.values())

    def _reach(self, layer_idx: int) -> None:
        """Know all layers up to this one."""
        raise NotImplementedError

    def _check_state(self, layer_idx: int, length: int) -> None:
        """Raise if a layer would have to go back to a state that it no longer has."""
        if length and self._states.get(layer_idx):
            raise ValueError(
                f"{type(self).__name__}: cannot crop to {length}, as layer {layer_idx} keeps a state of all "
                f"{self._seen[layer_idx]} positions and none of fewer; use mark() before and rewind(), or reset() and "
                "run the text again."
            )

    def _reorder_states(self, index: Tensor) -> None:
        self._states = {i: tuple(s.index_select(0, index) for s in kept) for i, kept in self._states.items()}

    def _state_bytes(self) -> int:
        return sum(int(s.nbytes) for kept in self._states.values() for s in kept)
