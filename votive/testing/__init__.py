"""`votive.testing`: comparing values and making tensors for tests. The names are torch's."""

from .comparison import assert_allclose as assert_allclose
from .comparison import assert_close as assert_close
from .creation import make_tensor as make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
