"""Pages of the reference: each public namespace with the signatures and docstrings of what it holds.

`write(folder)` makes a page for each namespace and an index. Formulas and gradients of operators are in operators.md.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import votive

# An operator is an object, whatever namespace it is bound to.
OPERATORS = tuple({type(votive.softmax), type(votive.add), type(votive.cat), type(votive.linalg.svd)})
# In the order of the index.
NAMESPACES = {
    "votive": "Tensors and operators",
    "votive.nn": "Layers",
    "votive.nn.functional": "Layers as functions",
    "votive.nn.init": "Initial values",
    "votive.nn.utils": "Tools for modules",
    "votive.optim": "Optimizers",
    "votive.optim.lr_scheduler": "Schedules",
    "votive.autograd": "Gradients",
    "votive.func": "Functional transforms",
    "votive.linalg": "Linear algebra",
    "votive.fft": "Fourier transforms",
    "votive.special": "Special functions",
    "votive.sparse": "Sparse tensors",
    "votive.distributions": "Distributions",
    "votive.data": "Data",
    "votive.io": "Files",
    "votive.glass": "Looking inside",
    "votive.models": "Models",
    "votive.generation": "Generation",
    "votive.quant": "Quantization",
    "votive.train": "Training",
    "votive.compiler": "Compiling",
    "votive.cuda": "CUDA",
    "votive.distributed": "Several processes",
    "votive.profiler": "Profiler",
    "votive.np": "NumPy's names",
}


def _names(module: ModuleType) -> list[str]:
    """What a namespace lists, and operators that are bound to it beside."""
    mine = lambda v: str(getattr(v, "__module__", "")).startswith(module.__name__)
    listed = set(getattr(module, "__all__", None) or (n for n, v in vars(module).items() if mine(v)))
    listed |= {name for name, value in vars(module).items() if isinstance(value, OPERATORS)}
    if module is votive:
        listed |= set(dir(module))
    return sorted({name for name in listed if not name.startswith("_")}, key=str.lower)


def _kind(value: Any) -> str | None:
    if isinstance(value, ModuleType) or not callable(value) or not inspect.getdoc(value):
        return None
    if not str(getattr(value, "__module__", "votive")).startswith("votive"):
        return None
    return "class" if inspect.isclass(value) else "function"


def _signature(value: Any) -> str:
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return "(...)"
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", text)
    return text.removesuffix(" -> None") if inspect.isclass(value) else text


def _indented(text: str, by: str) -> str:
    return "\n".join(by + line if line.strip() else "" for line in text.splitlines())


def _marked(prose: str) -> str:
    """Text whose code is between single backticks, in the marks of the site's pages."""
    pieces = re.split(r"`+([^`]+)`+", prose)
    out = []
    for i, piece in enumerate(pieces):
        if i % 2:
            behind = pieces[i + 1][:1]
            out.append(f"``{piece}``" + ("" if not behind or behind in " \n.,;:!?)" else "\\ "))
        else:
            out.append(re.sub(r"([\\*|_`])", r"\\\1", piece))
    return "".join(out)


def _literal(doc: str) -> str:
    """A docstring as it is: prose before the first example, and examples as code."""
    prose, found, example = doc.partition(">>>")
    parts = [_indented(_marked(prose.strip()), "   ")]
    if found:
        parts += ["   .. code-block:: pycon", _indented(f">>>{example}".rstrip(), "      ")]
    return "\n\n".join(part for part in parts if part.strip())


def _entry(name: str, value: Any, kind: str) -> str:
    shown = " ".join(_signature(value).split())
    return f".. py:{kind}:: {name}{shown}\n\n{_literal(inspect.getdoc(value) or '')}\n"


def _page(module: str, title: str) -> str:
    held = importlib.import_module(module)
    found = []
    for name in _names(held):
        value = getattr(held, name, None)
        kind = _kind(value)
        if kind is not None:
            found.append(_entry(name, value, kind))
    head = f"{title}\n{'=' * len(title)}\n\n.. py:currentmodule:: {module}\n\n``{module}``\n\n"
    return head + "\n".join(found)


def write(folder: Path) -> None:
    """Write all pages anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for module, title in NAMESPACES.items():
        (folder / f"{module}.rst").write_text(_page(module, title), encoding="utf-8")
    pages = "\n".join(f"   {module}" for module in NAMESPACES)
    index = f"Reference\n=========\n\n.. toctree::\n   :maxdepth: 1\n\n{pages}\n   ../operators\n"
    (folder / "index.rst").write_text(index, encoding="utf-8")
