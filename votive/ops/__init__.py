"""What each operator is: schema, shape rule, dtype rule, gradient. Importing this declares them
all.
"""

from importlib import import_module
from os import listdir

for _file in sorted(listdir(__path__[0])):
    if _file.endswith(".py") and _file != "__init__.py":
        import_module(f"{__name__}.{_file.removesuffix('.py')}")
