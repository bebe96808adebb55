"""Complete, short NumPy kernels for every operator: the oracle that faster kernels are tested
against.

Every module in this folder is imported, and so puts its rows into the kernel table.
"""

from importlib import import_module
from os import listdir

from .. import rows  # noqa: F401 - how functions become rows

for _file in sorted(listdir(__path__[0])):
    if _file.endswith(".py") and _file != "__init__.py":
        import_module(f"{__name__}.{_file.removesuffix('.py')}")
