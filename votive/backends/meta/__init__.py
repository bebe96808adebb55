"""A device whose tensors have shapes, dtypes and layouts, but no memory: operators are planned, nothing is computed.

What a result looks like comes from the operator's own rule, so whatever has one works here without a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from ...core.layout import Spec
from ...core.storage import Storage
from ..base import MUTATES, Bound, Request, Row, add_row


class MetaStorage(Storage):
    """So many bytes of memory that is not there."""

    device_type = "meta"

    def __init__(self, nbytes: int) -> None:
        self._nbytes = nbytes
        self.memory = None

    @property
    def nbytes(self) -> int:
        return self._nbytes

    def bytes_view(self) -> NoReturn:
        _no_values()

    def data_ptr(self) -> int:
        return 0


class Nothing:
    """The values of every tensor here."""

    def __repr__(self) -> str:
        return "..."


NOTHING = Nothing()


def _no_values(*args: Any) -> NoReturn:
    raise NotImplementedError("Cannot copy out of meta tensor; no data!")


def _nothing_to_do(values: Any, out: Any) -> None:
    return None


class MetaBackend:
    """See `backends.base.Backend`; `data` is nothing."""

    name = "meta"

    def pointwise(self, formula: Any, names: Any, roles: Any, inputs: Any, out: Spec, empty: Any) -> tuple[Any, Any]:
        def compute(*values: Any) -> tuple[Storage, Any]:
            return self.empty(out)

        return compute, _nothing_to_do

    def empty(self, spec: Spec) -> tuple[Storage, Any]:
        return MetaStorage(spec.nbytes), NOTHING

    def view(self, storage: Storage, spec: Spec, offset: int) -> Any:
        return NOTHING

    def adopt(self, data: Any, spec: Spec | None, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        assert spec is not None
        return (*self.empty(spec), spec)

    def receive(self, array: Any, spec: Spec, non_blocking: bool = False) -> tuple[Storage, Any, Spec]:
        """What is sent here loses its values."""
        return (*self.empty(spec), spec)

    def copy(self, out: Any, data: Any) -> None:
        if data is NOTHING and out is not NOTHING:
            _no_values()

    def item(self, data: Any) -> NoReturn:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")

    def window(self, spec: Spec) -> None:
        return None

    def clone_storage(self, storage: Storage) -> Storage:
        return MetaStorage(storage.nbytes)

    to_numpy = staticmethod(_no_values)


@dataclass(frozen=True, kw_only=True)
class MetaRow(Row):
    """Serves every operator whose results can be told without looking at numbers."""

    def bind(self, request: Request) -> Bound:
        outs, backend = request.outs, request.backend
        written = MUTATES[request.op]() if request.op in MUTATES else ()
        values = [v for i, v in zip(request.slots, request.values, strict=True) if i in written]
        if any(s.device.type != "meta" for s in (*_specs(values), *(outs or ()))):
            _no_values()
        if outs is None:
            raise NotImplementedError(
                f"{request.op.lstrip('_')}: what it gives depends on numbers, and tensors on the meta device have none."
            )

        def compute(*values: Any) -> tuple[Any, ...]:
            return tuple([(*backend.empty(s), s) for s in outs])

        return Bound(compute, _nothing_to_do)


def _specs(values: list[Any]) -> list[Spec]:
    found: list[Spec] = []
    for v in values:
        found += [x for x in (v if isinstance(v, tuple) else (v,)) if isinstance(x, Spec)]
    return found


add_row(MetaRow(op="*", device="meta", fn=_nothing_to_do, label="meta"))
