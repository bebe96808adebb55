"""Charts as PNG bytes, with lines and letters drawn by hand. Knows pixels only."""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise
from typing import Any

import numpy as np

from .chart import Chart

Pixels = np.ndarray[Any, Any]

# Letters of three by five pixels; each digit is a row, its three bits are the pixels.
_FONT = {
    "0": "75557", "1": "26227", "2": "71747", "3": "71717", "4": "55711", "5": "74717",
    "6": "74757", "7": "71122", "8": "75757", "9": "75717", ".": "00002", "-": "00700",
    "+": "02720", "_": "00007", "/": "11244", ":": "02020", "=": "07070", "%": "51245",
    "(": "24442", ")": "21112", ",": "00024", " ": "00000", "A": "75755", "B": "65656",
    "C": "74447", "D": "65556", "E": "74747", "F": "74744", "G": "74557", "H": "55755",
    "I": "72227", "J": "11157", "K": "55655", "L": "44447", "M": "57755", "N": "75555",
    "O": "75557", "P": "75744", "Q": "75571", "R": "75655", "S": "74717", "T": "72222",
    "U": "55557", "V": "55552", "W": "55775", "X": "55255", "Y": "55222", "Z": "71247",
    "!": "22202", "?": "71202", "'": "22000", '"': "55000", "#": "57575", "*": "52500",
    "<": "12421", ">": "42124", "[": "64446", "]": "31113", "|": "22222", ";": "02024",
    "·": "00200", "…": "00005", "×": "05250", "−": "00700", "↵": "11574", "&": "65257",
}  # fmt: skip
_SCALE = 2
_ADVANCE = 4 * _SCALE
# Everything is drawn twice as large and averaged down, which smooths the lines.
_FINE = 2


def draw(chart: Chart) -> bytes:
    """The chart as a PNG file.

    >>> from votive.train import chart, png
    >>> png.draw(chart.build([chart.Curve("loss", [1, 2], [2.0, 1.0])]))[1:4]
    b'PNG'
    """
    x, y = chart.x, chart.y
    page = np.full((chart.height * _FINE, chart.width * _FINE, 3), 255, np.float32)
    for value, _ in y.ticks:
        _line(page, x.start, y.place(value), x.end, y.place(value), "#dddddd", 1)
    _line(page, x.start, y.start, x.end, y.start, "#888888", 1)
    for curve, colour in chart.curves:
        points = [(x.place(a), y.place(b)) for a, b in zip(curve.xs, curve.ys)]
        ink = _mixed(colour) if curve.faint else colour
        for (a, b), (c, d) in pairwise(points):
            _line(page, a, b, c, d, ink, 1 if curve.faint else 2)
        for a, b in points if curve.marked or len(points) == 1 else ():
            _line(page, a, b, a, b, colour, 6)
    small = page.reshape(chart.height, _FINE, chart.width, _FINE, 3).mean(axis=(1, 3))
    pixels = np.rint(small).astype(np.uint8)
    for value, label in y.ticks:
        write(pixels, x.start - 6 - _ADVANCE * len(label), y.place(value) - 5, label)
    for value, label in x.ticks:
        write(pixels, x.place(value) - _ADVANCE * len(label) / 2, y.start + 10, label)
    write(pixels, (chart.width - _ADVANCE * len(chart.title)) / 2, 14, chart.title)
    middle = (x.start + x.end - _ADVANCE * len(chart.x_name)) / 2
    write(pixels, middle, chart.height - 16, chart.x_name)
    for i, (name, colour) in enumerate({c.name: colour for c, colour in chart.curves}.items()):
        write(pixels, x.end - _ADVANCE * len(name), y.end + 8 + 16 * i, name, colour)
    return encode(pixels)


def encode(pixels: Pixels) -> bytes:
    """RGB pixels of shape (height, width, 3) as a PNG file (W3C PNG specification, section 5)."""
    height, width, _ = pixels.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)  # a zero before each row: no filter
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(rows.tobytes(), 9)
    start = b"\x89PNG\r\n\x1a\n"
    return start + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def rgb(colour: str) -> Pixels:
    """A colour such as "#0072b2" as three numbers."""
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], np.float32)


def _mixed(colour: str) -> str:
    """The colour at a third of its strength on white."""
    return "#" + "".join(f"{round(255 - (255 - v) * 0.35):02x}" for v in rgb(colour))


def _line(page: Pixels, x0: float, y0: float, x1: float, y1: float, colour: str, thick: float) -> None:
    """Paint squares of the pen's size along a line."""
    height, width, _ = page.shape
    n = int(max(abs(x1 - x0), abs(y1 - y0)) * _FINE) + 1
    xs = np.rint(np.linspace(x0, x1, n) * _FINE).astype(int)
    ys = np.rint(np.linspace(y0, y1, n) * _FINE).astype(int)
    pen = np.arange(round(thick * _FINE)) - round(thick * _FINE) // 2
    cols = np.clip(xs[:, None, None] + pen[:, None], 0, width - 1)
    rows = np.clip(ys[:, None, None] + pen[None, :], 0, height - 1)
    page[rows, cols] = rgb(colour)


def write(pixels: Pixels, left: float, top: float, text: str, colour: str = "#222222") -> None:
    """Letters of 6 by 10 pixels, each 8 from the next; letters that are not known become dots."""
    height, width, _ = pixels.shape
    for i, letter in enumerate(text.upper()):
        glyph = _FONT.get(letter, _FONT["."])
        for r, bits in enumerate(glyph):
            for c in range(3):
                if int(bits) >> (2 - c) & 1:
                    y0 = int(top) + r * _SCALE
                    x0 = int(left) + i * _ADVANCE + c * _SCALE
                    if 0 <= y0 < height and 0 <= x0 < width:
                        pixels[y0 : y0 + _SCALE, x0 : x0 + _SCALE] = rgb(colour)
