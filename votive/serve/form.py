"""Forms with files, as browsers and clients send them (RFC 7578). Pure bytes; bounded before anything looks at them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.requests import Request

from .body import read_bytes
from .errors import ApiError, wrong

LARGEST = 32 << 20
_PARTS, _HEAD = 64, 4096
_NAME = re.compile(r';\s*name="([^"\r\n]*)"')
_BOUNDARY = re.compile(r'boundary=(?:"([^"\r\n]{1,70})"|([^\s;,"]{1,70}))\s*(?:;|$)')


@dataclass(frozen=True)
class Part:
    """A field; `is_file` where it bears the name of a file, which is not looked at."""

    name: str
    data: bytes
    is_file: bool


async def read_form(request: Request) -> list[Part]:
    """The parts of the form that a request brings."""
    kind = request.headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "multipart/form-data":
        raise ApiError(415, "send a form: Content-Type: multipart/form-data.")
    found = _BOUNDARY.search(kind)
    if found is None:
        raise wrong("the form's Content-Type names no boundary.")
    return parsed_form(await read_bytes(request, LARGEST), found[1] or found[2])


def parsed_form(body: bytes, boundary: str) -> list[Part]:
    """The parts between boundaries.

    >>> from votive.serve.form import parsed_form
    >>> head = b'--x\\r\\nContent-Disposition: form-data; name="a"'
    >>> parsed_form(head + b"\\r\\n\\r\\none\\r\\n--x--\\r\\n", "x")
    [Part(name='a', data=b'one', is_file=False)]
    """
    mark = b"\r\n--" + boundary.encode("latin-1", "replace")
    pieces = (b"\r\n" + body).split(mark, _PARTS + 2)
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise wrong(f"the form has no end, or more than {_PARTS} parts.")
    found = []
    for piece in pieces[1:-1]:
        head, gap, data = piece.partition(b"\r\n\r\n")
        if not gap or not head.startswith(b"\r\n") or len(head) > _HEAD:
            raise wrong("a part of the form has no head, or too long a one.")
        lines = head.decode("utf-8", "replace").split("\r\n")
        told = next((line for line in lines if line.lower().startswith("content-disposition:")), "")
        name = _NAME.search(told)
        if name is None or "form-data" not in told.lower():
            raise wrong("a part of the form has no name.")
        found.append(Part(name[1], data, "filename" in told.lower()))
    return found
