"""`torch.hub`: names that libraries import beside its functions."""

from __future__ import annotations

import os
import re
from urllib.parse import urlparse

__all__ = ["HASH_REGEX", "_get_torch_home", "urlparse"]

# The first characters of a file's SHA-256, before the ending of its name: resnet18-f37072fd.pth.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")


def _get_torch_home() -> str:
    """The folder of torch's caches, as TORCH_HOME says."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))
