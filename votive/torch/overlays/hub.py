"""`torch.hub`: names that libraries import beside its functions."""

from __future__ import annotations

import re
from urllib.parse import urlparse

__all__ = ["HASH_REGEX", "urlparse"]

# The first characters of a file's SHA-256, before the ending of its name: resnet18-f37072fd.pth.
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
