"""Instance norms that learn their number of channels from the first input."""

from __future__ import annotations

from .normalization import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, _InstanceNorm, _LazyNormBase


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm1d that learns `num_features` from its first input.

    >>> votive.nn.LazyInstanceNorm1d()(votive.ones(2, 3, 4)).shape
    votive.Size([2, 3, 4])
    """

    cls_to_become = InstanceNorm1d
    _unbatched_dim = InstanceNorm1d._unbatched_dim
    _check_input_dim = InstanceNorm1d._check_input_dim


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm2d that learns `num_features` from its first input.

    >>> votive.nn.LazyInstanceNorm2d()(votive.ones(2, 3, 4, 4)).shape
    votive.Size([2, 3, 4, 4])
    """

    cls_to_become = InstanceNorm2d
    _unbatched_dim = InstanceNorm2d._unbatched_dim
    _check_input_dim = InstanceNorm2d._check_input_dim


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm3d that learns `num_features` from its first input.

    >>> votive.nn.LazyInstanceNorm3d()(votive.ones(2, 3, 2, 2, 2)).shape
    votive.Size([2, 3, 2, 2, 2])
    """

    cls_to_become = InstanceNorm3d
    _unbatched_dim = InstanceNorm3d._unbatched_dim
    _check_input_dim = InstanceNorm3d._check_input_dim
