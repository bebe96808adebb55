"""`votive.data.dataloader`, where torch users look for it."""

from ...data.collate import default_collate, default_convert
from ...data.dataloader import DataLoader
from ...data.worker import get_worker_info

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
