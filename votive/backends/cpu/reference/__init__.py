"""Complete, short NumPy kernels for every operator: the oracle that faster kernels are tested
against.

Every module in this folder is imported, and so puts its rows into the kernel table.
"""

from importlib import import_module
from pathlib import Path

for _file in sorted(Path(__file__).parent.glob("*.py")):
    if _file.stem != "__init__":
        import_module(f"{__name__}.{_file.stem}")
