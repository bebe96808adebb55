"""Videos as frames: folders of images, and animated files. Containers such as MP4 are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...core import dtype as dt
from ...ops.registry import F
from ...tensor import Tensor
from .decoding import ImageReadMode, Mode, frames_of, opened, read_image, read_mode
from .encoding import write_png

_CONTAINERS = (".mp4", ".mkv", ".webm", ".avi", ".mov", ".m4v", ".mpg", ".mpeg", ".ogv", ".flv")
_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".gif")


def read_frames(
    source: str | Path, mode: Mode = ImageReadMode.RGB, start: int = 0, end: int | None = None, step: int = 1
) -> tuple[Tensor, dict[str, Any]]:
    """(T, C, H, W) frames start, start + step, … before `end`, and what is known about them.

    `source` is a folder of images of one size, taken in the order of their names, or an animated
    GIF, WebP or PNG file. The second result has "frames", how many there are in all, and "fps",
    None for a folder.

    >>> import tempfile, os
    >>> name = os.path.join(tempfile.mkdtemp(), "a.gif")
    >>> video = votive.arange(4, dtype=votive.uint8).reshape(4, 1, 1, 1).expand(4, 3, 8, 8) * 60
    >>> votive.vision.io.write_frames(name, video, fps=10)
    >>> frames, info = votive.vision.io.read_frames(name, step=2)
    >>> frames.shape, info
    (votive.Size([2, 3, 8, 8]), {'frames': 4, 'fps': 10.0})
    """
    op, path, wanted = "read_frames", Path(source), read_mode("read_frames", mode)
    if wanted is ImageReadMode.UNCHANGED:
        raise ValueError(f"{op}: all frames need the same mode, so UNCHANGED cannot be used.")
    if step < 1:
        raise ValueError(f"{op}: step must be at least 1, got {step}.")
    if path.suffix.lower() in _CONTAINERS:
        raise NotImplementedError(
            f"{op}: {path.suffix} files are not decoded here; write their frames to a folder first."
        )
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix.lower() in _SUFFIXES)
        if not files:
            raise FileNotFoundError(f"{op}: no image files in the folder {path}.")
        found = [read_image(p, wanted) for p in files[start:end:step]]
        total, fps = len(files), None
    else:
        shown = list(frames_of(op, opened(op, path.read_bytes()), wanted))
        seconds = sum(duration for _, duration in shown)
        total, fps = len(shown), len(shown) / seconds if seconds else None
        found = [frame for frame, _ in shown[start:end:step]]
    sizes = {tuple(frame.shape) for frame in found}
    if len(sizes) > 1:
        raise ValueError(f"{op}: the frames differ in size, {sorted(sizes)}.")
    if not found:
        raise ValueError(f"{op}: no frames in {start}..{end} of {total}.")
    return F.stack(found), {"frames": total, "fps": fps}


def write_frames(target: str | Path, frames: Tensor, fps: float = 10.0) -> None:
    """Write (T, C, H, W) bytes as an animated .gif, .webp or .png, or into a folder of PNG files.

    Animated WebP and PNG are written without loss; GIF reduces each frame to 256 colours.

    >>> import tempfile, os
    >>> folder = os.path.join(tempfile.mkdtemp(), "frames")
    >>> votive.vision.io.write_frames(folder, votive.zeros(2, 3, 4, 4, dtype=votive.uint8))
    >>> sorted(os.listdir(folder))
    ['00000.png', '00001.png']
    """
    from ..transforms.functional.conversion import to_pil_image

    op, path = "write_frames", Path(target)
    if frames.ndim != 4 or frames.dtype is not dt.uint8 or not frames.shape[0]:
        raise ValueError(f"{op}: needs uint8 frames (T, C, H, W), got {frames.dtype} {tuple(frames.shape)}.")
    if fps <= 0:
        raise ValueError(f"{op}: fps must be positive, got {fps}.")
    suffix = path.suffix.lower()
    if not suffix:
        path.mkdir(parents=True, exist_ok=True)
        for k, frame in enumerate(frames):
            write_png(frame, path / f"{k:05d}.png")
        return
    if suffix not in (".gif", ".png", ".webp"):
        raise ValueError(f"{op}: the name must end in .gif, .png or .webp, or have no ending.")
    options: dict[str, Any] = {"lossless": True} if suffix == ".webp" else {}
    first, *rest = (to_pil_image(frame) for frame in frames)
    first.save(path, save_all=True, append_images=rest, duration=round(1000 / fps), loop=0, **options)
