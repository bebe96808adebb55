"""Writes every generated file: the type stubs and the pages of reference."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Renew the files that describe the package; the page of native kernels only where these were built."""
    sys.path.insert(0, str(ROOT))
    from scripts.pages import native_kernels, operators, stubs, torch_coverage
    from votive.backends.cpu import native

    (ROOT / "votive" / "_operators.pyi").write_text(stubs.operators_stub())
    (ROOT / "votive" / "__init__.pyi").write_text(stubs.package_stub())
    (ROOT / "docs" / "operators.md").write_text(operators.page())
    (ROOT / "docs" / "torch_coverage.md").write_text(torch_coverage.page())
    if native.available:
        (ROOT / "docs" / "native_kernels.md").write_text(native_kernels.page())


if __name__ == "__main__":
    main()
