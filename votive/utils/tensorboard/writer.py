"""`SummaryWriter`: a run as files that TensorBoard shows. The names are torch's."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

import numpy as np

from ...tensor import Tensor
from . import pictures, summaries
from .records import EventFile


def _array(x: object) -> Any:
    """A tensor, an array or numbers as an array."""
    if isinstance(x, Tensor):
        kept = x.detach().cpu()
        return (kept.float() if kept.is_floating_point() and kept.element_size() < 4 else kept).numpy()
    if isinstance(x, (list, tuple)) and any(isinstance(v, Tensor) for v in x):
        return np.asarray([_array(v) for v in x])
    return np.asarray(x)


def _number(x: object) -> float:
    found = _array(x).squeeze()
    if found.ndim:
        raise AssertionError(f"scalar should be 0D, got shape {found.shape}")
    return float(found)


class SummaryWriter:
    """Writes what happens in a run to `log_dir`, which is `runs/<time>_<host><comment>` unless it is given.

    `purge_step` hides what an earlier run wrote from that step on. Events wait for `max_queue` others or `flush_secs`
    seconds, and for `flush()` or `close()`.

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with votive.utils.tensorboard.SummaryWriter(folder) as writer:
    ...     writer.add_scalar("loss", 0.5, global_step=1)
    >>> os.listdir(folder)[0].startswith("events.out.tfevents.")
    True
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = os.fspath(log_dir)
        self.purge_step, self.max_queue = purge_step, max_queue
        self.flush_secs, self.filename_suffix = flush_secs, filename_suffix
        self._files: dict[str, EventFile] = {}
        self._bins: Any = None
        main = self._file(self.log_dir)
        if purge_step is not None:
            from . import protobuf as pb

            main.add(pb.data(7, pb.integer(1, 1)), purge_step)  # SessionLog.START

    # --- files ---

    def _file(self, folder: str) -> EventFile:
        if folder not in self._files:
            self._files[folder] = EventFile(folder, self.max_queue, self.flush_secs, self.filename_suffix)
        return self._files[folder]

    def _add(self, step: int | None, walltime: float | None, *values: bytes) -> None:
        self._file(self.log_dir).add(summaries.event(*values), step, walltime)

    def get_logdir(self) -> str:
        """The folder of the run."""
        return self.log_dir

    def flush(self) -> None:
        """Hand all events to the system."""
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """End the files; events that come later begin new ones."""
        for file in self._files.values():
            file.close()
        self._files = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # --- what happens ---

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """One number."""
        value = summaries.scalar(tag, _number(scalar_value), new_style, double_precision)
        self._add(global_step, walltime, value)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: dict[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Numbers to be drawn together, each as a run of its own below this one."""
        when = time.time() if walltime is None else walltime
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            written = summaries.event(summaries.scalar(main_tag, _number(value)))
            self._file(folder).add(written, global_step, when)

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """The numbers of a tensor, as float32."""
        self._add(global_step, walltime, summaries.tensor(tag, _array(tensor)))

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """How the numbers of a tensor are distributed."""
        if isinstance(bins, str) and bins == "tensorflow":
            if self._bins is None:
                self._bins = summaries.default_bins()
            bins = self._bins
        self._add(global_step, walltime, summaries.histogram(tag, _array(values), bins, max_bins))

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: float,
        sum: float,
        sum_squares: float,
        bucket_limits: Sequence[float],
        bucket_counts: Sequence[float],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """A histogram that was counted elsewhere."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        moments = (min, max, num, sum, sum_squares)
        self._add(global_step, walltime, summaries.histogram_raw(tag, moments, bucket_limits, bucket_counts))

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """An image: bytes, or numbers between 0 and 1."""
        self._add(global_step, walltime, summaries.image(tag, _array(img_tensor), dataformats))

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Images of one size, side by side."""
        given = _array(img_tensor)
        if isinstance(img_tensor, list):
            dataformats = dataformats if len(dataformats) == 4 else "N" + dataformats
        self._add(global_step, walltime, summaries.image(tag, given, dataformats))

    def add_figure(
        self, tag: str, figure: Any, global_step: int | None = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """A figure of Matplotlib, or several."""
        many = isinstance(figure, list)
        drawn = [_drawn(one, close) for one in (figure if many else [figure])]
        if many:
            self.add_images(tag, np.stack(drawn), global_step, walltime, dataformats="NHWC")
        else:
            self.add_image(tag, drawn[0], global_step, walltime, dataformats="HWC")

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """A sound: numbers between -1 and 1."""
        self._add(global_step, walltime, summaries.audio(tag, _array(snd_tensor), sample_rate))

    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """A text, shown as Markdown."""
        self._add(global_step, walltime, summaries.text(tag, text_string))

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision and recall of predictions between 0 and 1, for labels of 0 and 1."""
        rows = summaries.pr_rows(_array(labels), _array(predictions), num_thresholds, weights)
        self._add(global_step, walltime, summaries.pr_curve(tag, rows, min(num_thresholds, 127)))

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Precision and recall that were counted elsewhere, with their weights."""
        if weights is not None:
            raise NotImplementedError("add_pr_curve_raw: counts are given, so weights have no effect.")
        counts = (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts)
        rows = np.stack([_array(x) for x in (*counts, precision, recall)])
        self._add(global_step, walltime, summaries.pr_curve(tag, rows, min(num_thresholds, 127)))

    def add_custom_scalars(self, layout: dict[str, dict[str, Any]]) -> None:
        """Charts of several scalars: {category: {title: ["Multiline" or "Margin", [tags]]}}."""
        self._add(None, None, summaries.layout(layout))

    def add_custom_scalars_multilinechart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """A chart of several lines."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: list[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """A chart of a line with its margins: value, lower and upper tag."""
        if len(tags) != 3:
            raise AssertionError("tags must have 3 elements")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Settings and results, as a run of its own below this one."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        plain = {k: v.item() if isinstance(v, (Tensor, np.generic)) else v for k, v in hparam_dict.items()}
        values = summaries.hparams(plain, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(folder) as writer:
            for value in values:
                writer._add(None, None, value)
            for key, result in metric_dict.items():
                writer.add_scalar(key, result, global_step)

    def add_embedding(
        self,
        mat: Any,
        metadata: Sequence[Any] | None = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Vectors for the projector, with labels and small pictures (N, C, H, W)."""
        vectors = _array(mat)
        if vectors.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        for name, given in (("labels", metadata), ("images", label_img)):
            if given is not None and len(given) != len(vectors):
                raise AssertionError(f"#{name} should equal with #data points")
        folder = f"{str(global_step or 0).zfill(5)}/{tag}"
        path = os.path.join(self.log_dir, folder)
        os.makedirs(path, exist_ok=True)
        np.savetxt(os.path.join(path, "tensors.tsv"), vectors, delimiter="\t", fmt="%.9g")
        if metadata is not None:
            rows = [str(x) for x in metadata]
            if metadata_header:
                rows = ["\t".join(metadata_header), *("\t".join(str(x) for x in row) for row in metadata)]
            with open(os.path.join(path, "metadata.tsv"), "w", encoding="utf-8") as file:
                file.write("\n".join(rows) + "\n")
        sprite = None
        if label_img is not None:
            images = pictures.as_bytes(_array(label_img)).transpose(0, 2, 3, 1)
            sprite = images.shape[2], images.shape[1]
            with open(os.path.join(path, "sprite.png"), "wb") as raw:
                raw.write(pictures.png(pictures.sprite(images)))
        with open(os.path.join(self.log_dir, "projector_config.pbtxt"), "a", encoding="utf-8") as file:
            file.write(summaries.projector_entry(folder, tag, metadata is not None, sprite))

    # --- what votive does not write ---

    def add_graph(
        self, model: Any, input_to_model: Any = None, verbose: bool = False, use_strict_trace: bool = True
    ) -> None:
        """torch's graph of a traced model, which votive has none of."""
        raise NotImplementedError(
            "add_graph: votive does not trace models to TensorFlow graphs; votive.explain and votive.onnx.export show "
            "what a model does."
        )

    def add_onnx_graph(self, prototxt: Any) -> None:
        """A graph of ONNX in TensorFlow's form."""
        raise NotImplementedError("add_onnx_graph: votive writes no TensorFlow graphs; open the .onnx file itself.")

    def add_video(
        self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4, walltime: float | None = None
    ) -> None:
        """A film, which would need an encoder."""
        raise NotImplementedError("add_video: votive encodes no films; use add_images with the frames.")

    def add_mesh(self, tag: str, vertices: Any, *args: Any, **kwargs: Any) -> None:
        """A mesh of triangles."""
        raise NotImplementedError("add_mesh: votive writes no meshes; use add_embedding for points in space.")


def _drawn(figure: Any, close: bool) -> Any:
    """The pixels of a figure (height, width, 3)."""
    from importlib import import_module  # Matplotlib is there where a figure is

    canvas = import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.asarray(canvas.buffer_rgba())[..., :3].copy()
    if close:
        import_module("matplotlib.pyplot").close(figure)
    return pixels
