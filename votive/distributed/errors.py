"""What goes wrong between processes, by torch's names. Knows nothing else."""

from __future__ import annotations


class DistError(RuntimeError):
    """Something that several processes do together failed.

    >>> issubclass(votive.distributed.DistError, RuntimeError)
    True
    """


class DistBackendError(DistError):
    """A collective failed: a rank is missing, calls something else, or does not answer.

    >>> issubclass(votive.distributed.DistBackendError, votive.distributed.DistError)
    True
    """


class DistNetworkError(DistError):
    """A connection between processes failed.

    >>> issubclass(votive.distributed.DistNetworkError, votive.distributed.DistError)
    True
    """


class DistStoreError(DistError):
    """The store of keys and values did not answer as asked.

    >>> issubclass(votive.distributed.DistStoreError, votive.distributed.DistError)
    True
    """
