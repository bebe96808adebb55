"""The transforms under the name that torchvision gives them: `transforms.v2`."""

from .. import *  # noqa: F403
from . import functional  # type: ignore[no-redef]  # noqa: F401
