"""The members of zip archives as ranges of a file. Knows zip's headers, not what members hold.

Sizes are believed only where the file bears them out: members may not overlap, repeat a name, or
claim more than their compressed bytes could become.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from ..serialization.container import FileFormatError

_LOCAL = struct.Struct("<4s5H3I2H")
# Deflate cannot do better than 258 bytes for two bits, and a few for the frame.
_RATIO = 1032


@dataclass(frozen=True)
class Record:
    """One member: its bytes in the file, and its size when unpacked."""

    name: str
    begin: int
    stored: int
    size: int
    method: int
    crc: int

    @property
    def plain(self) -> bool:
        return self.method == zipfile.ZIP_STORED


def records(file: IO[bytes], label: str) -> dict[str, Record]:
    """All members of the archive in a seekable file, by name."""
    try:
        with zipfile.ZipFile(file) as z:
            infos, directory = z.infolist(), z.start_dir
            file.seek(0, 2)
            size = file.tell()
            out = [_record(file, info, min(directory, size)) for info in infos]
    except FileFormatError as e:
        raise FileFormatError(f"{label}: {e}") from None
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        ValueError,
        ArithmeticError,
        LookupError,
        struct.error,
        RuntimeError,
        EOFError,
    ) as e:
        raise FileFormatError(f"{label}: the zip archive is cut off or damaged ({e}).") from None
    end, before = 0, ""
    for r, start in sorted(out, key=lambda item: item[1]):
        if start < end:
            raise FileFormatError(f"{label}: {r.name!r} and {before!r} overlap in the archive.")
        end, before = r.begin + r.stored, r.name
    found = {r.name: r for r, _ in out}
    if len(found) != len(out):
        raise FileFormatError(f"{label}: a name occurs twice in the archive.")
    return found


def _record(file: IO[bytes], info: zipfile.ZipInfo, limit: int) -> tuple[Record, int]:
    def bad(why: str) -> FileFormatError:
        return FileFormatError(f"the member {info.filename!r} {why}.")

    if info.header_offset < 0:
        raise bad("begins before the archive does; it is damaged")
    file.seek(info.header_offset)
    head = file.read(_LOCAL.size)
    if len(head) < _LOCAL.size or head[:4] != b"PK\x03\x04":
        raise bad("has no header where it should begin; the archive is damaged")
    fields = _LOCAL.unpack(head)
    begin = info.header_offset + _LOCAL.size + fields[9] + fields[10]
    if info.flag_bits & 1:
        raise bad("is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise bad(f"is compressed by method {info.compress_type}, which is not supported")
    if begin + info.compress_size > limit:
        raise bad("reaches beyond the end of the archive; it is cut off, or its stated size is wrong")
    if info.compress_type == zipfile.ZIP_STORED and info.file_size != info.compress_size:
        raise bad("claims two different sizes")
    if info.file_size > _RATIO * info.compress_size + 64:
        raise bad(f"claims {info.file_size:,} bytes, which {info.compress_size:,} cannot hold")
    return (
        Record(info.filename, begin, info.compress_size, info.file_size, info.compress_type, info.CRC),
        info.header_offset,
    )


def unpack(raw: np.ndarray, record: Record, limit: int | None = None) -> np.ndarray:
    """The bytes of a member, of which `raw` are the stored ones; at most `limit` if given."""
    size = record.size if limit is None else min(limit, record.size)
    if record.plain:
        return raw[:size]
    engine = zlib.decompressobj(-15)
    out = np.empty(size, np.uint8)
    done, fed, step = 0, raw.data, 1 << 20
    at = 0
    try:
        while done < size:
            piece: Any = engine.unconsumed_tail
            if not piece:
                piece = fed[at : at + step]
                at += len(piece)
                if not len(piece):
                    break
            got = engine.decompress(piece, min(step, size - done))
            out[done : done + len(got)] = np.frombuffer(got, np.uint8)
            done += len(got)
        whole = done == record.size
        more = engine.decompress(engine.unconsumed_tail + bytes(fed[at:]), 1) if whole else b""
    except zlib.error as e:
        raise FileFormatError(f"the member {record.name!r} is damaged ({e}).") from None
    if done < size:
        raise FileFormatError(f"the member {record.name!r} holds less than it claims.")
    if whole:
        if more:
            raise FileFormatError(f"the member {record.name!r} holds more than it claims.")
        if zlib.crc32(out.data) != record.crc:
            raise FileFormatError(f"the member {record.name!r} is damaged: its checksum differs.")
    return out
