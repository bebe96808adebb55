"""`votive.utils.tensorboard`: files for TensorBoard, written without TensorFlow, protobuf or TensorBoard itself."""

from .records import EventFile as EventFile
from .records import RecordWriter as RecordWriter
from .writer import SummaryWriter as SummaryWriter

FileWriter = EventFile
__all__ = ["EventFile", "FileWriter", "RecordWriter", "SummaryWriter"]
