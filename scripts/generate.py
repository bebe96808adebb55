"""Writes every generated file: the public functions, the type stubs and the operator reference.

Works without importing the package as a whole, since that needs the files written here.
"""

import sys
import types
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Generate `_functions.py` first; the rest reads the finished package."""
    package = types.ModuleType("votive")
    package.__path__ = [str(ROOT / "votive")]  # type: ignore[attr-defined]
    sys.modules["votive"] = package
    sys.path.insert(0, str(ROOT))
    functions = ROOT / "votive" / "_functions.py"
    functions.touch()
    # Some operators stand beside Tensor rather than in ops/.
    for name in ("ops", "interchange", "window"):
        import_module(f"votive.{name}")
    from votive import codegen

    codegen.write_functions()
    for name in [n for n in sys.modules if n == "votive" or n.startswith("votive.")]:
        del sys.modules[name]
    from votive import codegen

    codegen.write_rest()
    write_pages(ROOT / "docs")


def write_pages(folder: Path) -> None:
    """Renew the pages that describe the finished package; that of native kernels only where these were built."""
    from scripts.pages import native_kernels, operators
    from votive.backends.cpu import native

    (folder / "operators.md").write_text(operators.page())
    if native.available:
        (folder / "native_kernels.md").write_text(native_kernels.page())


if __name__ == "__main__":
    main()
