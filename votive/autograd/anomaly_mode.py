"""`votive.autograd.anomaly_mode`: the search for numbers that are not finite, at the path torch has it."""

from .modes import detect_anomaly as detect_anomaly
from .modes import set_detect_anomaly as set_detect_anomaly
