"""Keys and values that all processes see: in memory or in a file. Knows bytes, not ranks.

Values are bytes. `wait` and `get` return when somebody has set the key, or raise after the store's timeout.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from .errors import DistStoreError

DEFAULT_TIMEOUT = timedelta(minutes=30)
POLL = 0.02


def seconds(timeout: timedelta | float | None, default: timedelta = DEFAULT_TIMEOUT) -> float:
    """A timeout as a number.

    >>> from datetime import timedelta
    >>> votive.distributed.store.seconds(timedelta(minutes=1))
    60.0
    """
    if timeout is None:
        timeout = default
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


class Store:
    """What every store can do.

    >>> store = votive.distributed.HashStore()
    >>> store.set("a", "1")
    >>> store.get("a"), store.add("count", 2)
    (b'1', 2)
    """

    timeout = DEFAULT_TIMEOUT

    def set(self, key: str, value: str | bytes) -> None:
        """Keep a value."""
        raise NotImplementedError

    def find(self, key: str) -> bytes | None:
        """The value of a key, None if nobody has set it."""
        raise NotImplementedError

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which begins at 0, and give it."""
        raise NotImplementedError

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Keep the desired value if the key has the expected one, or none where "" is expected; gives what is kept."""
        raise NotImplementedError

    def delete_key(self, key: str) -> bool:
        """Forget a key; whether it was there."""
        raise NotImplementedError

    def num_keys(self) -> int:
        """How many keys there are."""
        raise NotImplementedError

    def get(self, key: str) -> bytes:
        """The value of a key, as soon as somebody sets it."""
        self.wait([key])
        found = self.find(key)
        if found is None:
            raise DistStoreError(f"the key {key!r} was deleted while it was read.")
        return found

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return all(self.find(key) is not None for key in keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Return when all keys are there."""
        limit = seconds(timeout, self.timeout)
        end = time.monotonic() + limit
        while not self.check(keys):
            if time.monotonic() > end:
                missing = [key for key in keys if self.find(key) is None]
                raise DistStoreError(f"wait timeout after {limit * 1000:.0f}ms, keys: {', '.join(missing)}")
            time.sleep(POLL)

    def append(self, key: str, value: str | bytes) -> None:
        """Put a value behind the one that is kept."""
        self.set(key, (self.find(key) or b"") + as_bytes(value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Keep several values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def set_timeout(self, timeout: timedelta) -> None:
        """How long `wait` and `get` wait."""
        self.timeout = timeout


def as_bytes(value: str | bytes) -> bytes:
    """Text as the bytes that are kept.

    >>> votive.distributed.store.as_bytes("a")
    b'a'
    """
    return value.encode() if isinstance(value, str) else bytes(value)


class HashStore(Store):
    """A store of one process, for its threads.

    >>> votive.distributed.HashStore().num_keys()
    0
    """

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.lock = threading.RLock()

    def set(self, key: str, value: str | bytes) -> None:
        with self.lock:
            self.kept[key] = as_bytes(value)

    def find(self, key: str) -> bytes | None:
        return self.kept.get(key)

    def add(self, key: str, amount: int) -> int:
        with self.lock:
            total = int(self.kept.get(key, b"0")) + amount
            self.kept[key] = str(total).encode()
            return total

    def append(self, key: str, value: str | bytes) -> None:
        with self.lock:
            super().append(key, value)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        with self.lock:
            found, expected = self.kept.get(key), as_bytes(expected_value)
            if (found is None and not expected) or found == expected:
                self.kept[key] = as_bytes(desired_value)
            elif found is None:
                return expected
            return self.kept[key]

    def delete_key(self, key: str) -> bool:
        with self.lock:
            return self.kept.pop(key, None) is not None

    def num_keys(self) -> int:
        return len(self.kept)


class PrefixStore(Store):
    """Another store's keys that begin alike.

    >>> inner = votive.distributed.HashStore()
    >>> votive.distributed.PrefixStore("mine", inner).set("a", "1")
    >>> inner.get("mine/a")
    b'1'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        self.prefix, self.underlying_store, self.timeout = prefix, store, store.timeout

    def _of(self, key: str) -> str:
        return f"{self.prefix}/{key}"

    def set(self, key: str, value: str | bytes) -> None:
        self.underlying_store.set(self._of(key), value)

    def find(self, key: str) -> bytes | None:
        return self.underlying_store.find(self._of(key))

    def add(self, key: str, amount: int) -> int:
        return self.underlying_store.add(self._of(key), amount)

    def append(self, key: str, value: str | bytes) -> None:
        self.underlying_store.append(self._of(key), value)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        return self.underlying_store.compare_set(self._of(key), expected_value, desired_value)

    def delete_key(self, key: str) -> bool:
        return self.underlying_store.delete_key(self._of(key))

    def num_keys(self) -> int:
        return self.underlying_store.num_keys()


class FileStore(Store):
    """A store in a file that all processes can reach; each change is one line behind the others.

    >>> import tempfile, os
    >>> store = votive.distributed.FileStore(os.path.join(tempfile.mkdtemp(), "store"), 1)
    >>> store.add("n", 3)
    3
    """

    def __init__(self, file_name: str | os.PathLike[str], world_size: int = -1) -> None:
        self.path, self.world_size = str(file_name), world_size
        Path(self.path).parent.mkdir(parents=True, exist_ok=True)

    def _locked(self, change: Callable[[HashStore], object]) -> object:
        import fcntl

        with open(self.path, "a+b") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            f.seek(0)
            state = HashStore()
            for line in f.read().splitlines():
                key, _, value = line.partition(b" ")
                state.kept[bytes.fromhex(key.decode()).decode()] = bytes.fromhex(value.decode())
            before = dict(state.kept)
            result = change(state)
            if state.kept != before:
                f.seek(0)
                f.truncate()
                f.writelines(k.encode().hex().encode() + b" " + v.hex().encode() + b"\n" for k, v in state.kept.items())
            return result

    def set(self, key: str, value: str | bytes) -> None:
        self._locked(lambda s: s.set(key, value))

    def find(self, key: str) -> bytes | None:
        return self._locked(lambda s: s.find(key))  # type: ignore[return-value]

    def add(self, key: str, amount: int) -> int:
        return self._locked(lambda s: s.add(key, amount))  # type: ignore[return-value]

    def append(self, key: str, value: str | bytes) -> None:
        self._locked(lambda s: s.append(key, value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        return self._locked(lambda s: s.compare_set(key, expected_value, desired_value))  # type: ignore[return-value]

    def delete_key(self, key: str) -> bool:
        return self._locked(lambda s: s.delete_key(key))  # type: ignore[return-value]

    def num_keys(self) -> int:
        return self._locked(lambda s: s.num_keys())  # type: ignore[return-value]
