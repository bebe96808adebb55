"""Names of NumPy that are not here, each with the reason and what to use instead."""

from __future__ import annotations

from typing import Any

_TEXT = "votive.np holds numbers and truth values, no text; use NumPy for it"
_DATES = "votive.np holds no dates; use NumPy for them and convert to numbers"
_RECORDS = "votive.np holds no records; use one array for each field"
_EXTENDED = "there is no type wider than float64 and complex128"
_MATRIX = "the matrix class is a relic of NumPy; use arrays of two dimensions and @"
_WALK = "walking over memory element by element is NumPy's own affair; use array operations or ndindex"
_BUILD = "it tells about NumPy's own build; call it on NumPy"

REASONS: dict[str, str] = {
    "asmatrix": _MATRIX,
    "bmat": _MATRIX,
    "matrix": _MATRIX,
    "busday_count": _DATES,
    "busday_offset": _DATES,
    "busdaycalendar": _DATES,
    "datetime64": _DATES,
    "datetime_as_string": _DATES,
    "datetime_data": _DATES,
    "is_busday": _DATES,
    "isnat": _DATES,
    "timedelta64": _DATES,
    "bytes_": _TEXT,
    "char": _TEXT,
    "character": _TEXT,
    "flexible": _TEXT,
    "str_": _TEXT,
    "strings": _TEXT,
    "fromregex": _TEXT,
    "object_": "votive.np holds no Python objects; use lists for them",
    "rec": _RECORDS,
    "recarray": _RECORDS,
    "record": _RECORDS,
    "void": _RECORDS,
    "clongdouble": _EXTENDED,
    "complex256": _EXTENDED,
    "float128": _EXTENDED,
    "longdouble": _EXTENDED,
    "nditer": _WALK,
    "nested_iters": _WALK,
    "getbufsize": _WALK,
    "setbufsize": _WALK,
    "geterrcall": "votive does not watch for floating-point errors; test results with isfinite()",
    "seterrcall": "votive does not watch for floating-point errors; test results with isfinite()",
    "ma": "masked arrays are not here; use `where=` arguments, nan-functions, or votive.masked",
    "memmap": "files are mapped by NumPy; wrap numpy.memmap with votive.np.asarray, which shares its memory",
    "ctypeslib": "it is about NumPy's memory; use votive.np.asarray on what it gives",
    "core": "it is NumPy's inside",
    "f2py": "it wraps Fortran for NumPy",
    "get_include": _BUILD,
    "info": "use help()",
    "show_config": _BUILD,
    "show_runtime": _BUILD,
    "test": _BUILD,
    "typing": "use the annotations of numpy.typing",
    "dtypes": "classes of dtypes are NumPy's; dtype objects are shared: votive.np.dtype is numpy.dtype",
    "poly1d": "an old class; use the functions polyval, polyadd, roots …",
    "polynomial": "classes of polynomials compute in NumPy; use polyval, polyfit, roots …, or votive.special",
}


def refuse(name: str) -> Any:
    """Raise the error for a name that is not here."""
    if name in REASONS:
        raise AttributeError(f"votive.np has no {name!r}: {REASONS[name]}.")
    raise AttributeError(f"module 'votive.np' has no attribute {name!r}")
