"""Errors as clients of OpenAI's interface expect them. Knows no engine's insides."""

from __future__ import annotations

from typing import Any

from .blocks import TooLong
from .engine import ContextExceeded
from .events import Busy, Closing


class ApiError(Exception):
    """What goes back to a client instead of an answer.

    >>> from votive.serve.errors import ApiError
    >>> ApiError(404, "there is no such model.", code="model_not_found").body()["error"]["code"]
    'model_not_found'
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str | None = None,
        param: str | None = None,
        code: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code
        self.kind = kind or ("invalid_request_error" if status < 500 else "server_error")
        self.retry_after = retry_after

    def body(self) -> dict[str, Any]:
        """The JSON of it."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}


def wrong(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """A request that cannot be answered as it is."""
    return ApiError(400, message, param=param, code=code)


def as_api_error(error: Exception) -> ApiError:
    """What is told to the client of an error; the insides of the server are not.

    >>> from votive.serve.errors import as_api_error
    >>> as_api_error(RuntimeError("/secret/path")).message
    'the server could not answer this request; its log says why.'
    """
    if isinstance(error, ApiError):
        return error
    if isinstance(error, Busy):
        return ApiError(429, str(error), kind="rate_limit_error", code="busy", retry_after=error.retry_after)
    if isinstance(error, Closing):
        return ApiError(503, str(error), code="closing", retry_after=5)
    if isinstance(error, MemoryError):
        return ApiError(503, "there is not enough memory for this request now.", retry_after=5)
    return ApiError(500, "the server could not answer this request; its log says why.")


def of_request(error: Exception) -> Exception:
    """What is wrong with a request, of an error that came up while it was read.

    >>> from votive.serve.errors import of_request
    >>> of_request(ValueError("temperature must be positive.")).status
    400
    """
    if isinstance(error, (ApiError, Busy)):
        return error
    if isinstance(error, ContextExceeded):
        return wrong(str(error), "messages", "context_length_exceeded")
    if isinstance(error, TooLong):
        return wrong(str(error), "max_tokens", "context_length_exceeded")
    # A package that is missing is told by what would install it.
    if isinstance(error, (ValueError, TypeError, IndexError, LookupError, ImportError)):
        return wrong(str(error) or type(error).__name__)
    return error
