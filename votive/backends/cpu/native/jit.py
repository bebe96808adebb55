"""C++ text compiled while a program runs, where there is a compiler; kept on disk with its source.

VOTIVE_JIT=0        compile nothing
VOTIVE_CACHE=DIR    where compiled text is kept (default: votive in the user's cache folder)
CXX                 the compiler
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from typing import TYPE_CHECKING

from .loader import module

if TYPE_CHECKING:
    from pathlib import Path

_FLAGS = ["-std=c++20", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fPIC", "-shared", "-w"]
_LEVEL = {"baseline": [], "avx2": ["-march=x86-64-v3"], "avx512": ["-march=x86-64-v4", "-mprefer-vector-width=512"]}
_functions: dict[str, int] = {}
_libraries: list[ctypes.CDLL] = []
_lock = threading.Lock()
failures: list[str] = []  # what the compiler said when it refused


def _headers() -> Path:
    from pathlib import Path

    return Path(__file__).parent / "src"


def folder() -> Path:
    """Where compiled text is kept."""
    from pathlib import Path

    own = os.environ.get("VOTIVE_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(own) if own else Path(base) / "votive" / "kernels"


@functools.cache
def compiler() -> str | None:
    """The C++ compiler, or None where nothing can be compiled."""
    import shutil

    if module is None or os.environ.get("VOTIVE_JIT") == "0" or not (_headers() / "vt" / "primitives.h").exists():
        return None
    for name in (os.environ.get("CXX"), "g++", "clang++", "c++"):
        found = name and shutil.which(name)
        if found:
            return found
    return None


@functools.cache
def _environment() -> str:
    """What beside the text decides how it is compiled."""
    import hashlib
    import subprocess

    told = subprocess.run([compiler() or "", "--version"], capture_output=True, text=True, check=False).stdout
    text = hashlib.sha256(told.encode())
    for header in sorted((_headers() / "vt").rglob("*.h")):
        text.update(header.read_bytes())
    text.update(" ".join([*_FLAGS, *_flags()]).encode())
    return text.hexdigest()


def _flags() -> list[str]:
    level = module.__name__.rpartition("_native_")[2]
    flags = _LEVEL[level]
    return flags


def functions(texts: dict[str, str], prelude: str) -> dict[str, int]:
    """Addresses of C functions by name; `texts` holds the definition of each, `prelude` goes before them.

    All that are not known yet are compiled together. Empty where there is no compiler, or it refuses.
    """
    with _lock:
        missing = {n: t for n, t in texts.items() if n not in _functions}
        if missing and compiler() is not None:
            _load(missing, prelude)
        return {n: _functions[n] for n in texts if n in _functions}


def _load(texts: dict[str, str], prelude: str) -> None:
    import hashlib
    import tempfile
    from pathlib import Path

    text = prelude + "\n" + "\n".join(texts.values())
    key = hashlib.sha256((_environment() + text).encode()).hexdigest()[:32]
    for root in (folder(), Path(tempfile.gettempdir()) / f"votive-{os.getuid()}"):
        try:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
            if root.stat().st_uid != os.getuid():
                raise OSError(f"{root} belongs to another user")
            path = root / f"{key}.so"
            if not path.exists():
                _compile(text, root, key)
            library = ctypes.CDLL(str(path))
        except (OSError, RuntimeError) as e:
            failures.append(str(e))
            continue
        _libraries.append(library)
        for name in texts:
            _functions[name] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
        return


def _compile(text: str, root: Path, key: str) -> None:
    import subprocess
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory(dir=root) as scratch:
        source, made = Path(scratch) / f"{key}.cpp", Path(scratch) / f"{key}.so"
        source.write_text(text)
        command = [compiler() or "", *_FLAGS, *_flags(), "-I", str(_headers()), str(source), "-o", str(made)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise RuntimeError(f"{' '.join(command[:2])} ...: {ran.stderr[-2000:]}")
        source.replace(root / source.name)  # the text stays beside what it became
        made.replace(root / made.name)
