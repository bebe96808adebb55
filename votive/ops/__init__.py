"""What each operator is: schema, shape rule, dtype rule, gradient. Importing this declares them
all.
"""

from importlib import import_module
from pathlib import Path

for _file in sorted(Path(__file__).parent.glob("*.py")):
    if _file.stem != "__init__":
        import_module(f"{__name__}.{_file.stem}")
