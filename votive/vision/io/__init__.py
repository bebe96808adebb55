"""Image files and frames as tensors, read and written by Pillow. Knows bytes, no transform.

Formats: whatever the installed Pillow reads (JPEG, PNG, WebP, GIF, BMP, TIFF, AVIF …). Videos are
folders of frames or animated GIF, WebP and PNG files; containers such as MP4 are not decoded.
"""

from .decoding import ImageReadMode, decode_gif, decode_image, decode_jpeg, decode_png, decode_webp, read_image
from .encoding import encode_jpeg, encode_png, write_jpeg, write_png
from .frames import read_frames, write_frames
from .raw import read_file, write_file

__all__ = [
    "ImageReadMode",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_webp",
    "encode_jpeg",
    "encode_png",
    "read_file",
    "read_frames",
    "read_image",
    "write_file",
    "write_frames",
    "write_jpeg",
    "write_png",
]
