"""PyTorch programs as they are: `import torch` leads to votive.

    python -m votive.torch script.py arguments…
    python -m votive.torch -m module arguments…

and in code `votive.torch.install()`, or `with votive.torch.as_torch():` for a while. What only torch's older programs
need (legacy constructors, `Variable`, deprecated spellings) stands in `overlays`, the same path below `torch` per file,
and wins over votive's own names; what votive does not do stands in `refusals`, with the reason and what to use.
"""

from __future__ import annotations

from .finder import as_torch, install, installed, uninstall
from .refusals import Refusal, refusal
from .version import VERSION

__all__ = ["VERSION", "Refusal", "as_torch", "install", "installed", "refusal", "uninstall"]
