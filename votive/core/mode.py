"""Per-thread switches that change what a call does. Knows nothing of what reads them."""

from __future__ import annotations

import threading


class Mode(threading.local):
    """Grad recording, inference mode, and anomaly mode of the running thread."""

    grad: bool = True
    inference: bool = False
    anomaly: bool = False
    anomaly_nan: bool = True
    # Pairs (pack, unpack) that see every value autograd saves.
    saved_hooks: tuple[tuple[object, object], ...] = ()
    # Whether nodes must note more than the usual: anomaly mode or a module path is set.
    noted: bool = False
    # Path of the module whose call is running, for errors, anomaly reports and observers.
    module_path: str = ""


mode = Mode()
