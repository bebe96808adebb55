"""All rooms of a server: found again after a lost connection, freed some time after their tab went.

Knows no sockets.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path

from .keeping import Shelter
from .models import Shelf
from .room import Room

# Seconds that a room waits for its tab to come back.
GRACE = 120.0
# Rooms whose tabs are away; beyond it those that wait longest are freed.
WAITING = 64


class Rooms:
    """Rooms by id. Ids are made here, so that no page can know another one's."""

    def __init__(self, shelf: Shelf, folder: Path, grace: float = GRACE, *, autosave: bool = True) -> None:
        self.shelf, self.folder, self.grace = shelf, folder, grace
        self.shelter = Shelter(folder if autosave else None)
        self._rooms: dict[str, Room] = {}
        self._closing: list[Room] = []

    def enter(self, id: str | None) -> tuple[Room, bool]:
        """The room of this id, and whether it is new; an id that is not known gives a new one."""
        room = None if id is None else self._rooms.get(id)
        fresh = room is None
        if room is None:
            room = Room(secrets.token_urlsafe(16), self.shelf, self.folder, self.shelter)
            self._rooms[room.id] = room
        room.left_at = None
        return room, fresh

    def leave(self, room: Room) -> None:
        """The room's tab is gone, perhaps not for long."""
        room.left_at = time.monotonic()

    def sweep(self) -> None:
        """Free the rooms whose tabs have been away for too long."""
        away = sorted((r for r in self._rooms.values() if r.left_at is not None), key=lambda r: -r.away)
        surplus = len(away) - WAITING
        for i, room in enumerate(away):
            if room.away >= self.grace or i < surplus:
                self.close(room)
        self._closing = [r for r in self._closing if not r.join(0)]

    def close(self, room: Room) -> None:
        """Free a room."""
        self._rooms.pop(room.id, None)
        room.close()
        self._closing.append(room)

    def close_all(self, timeout: float = 5.0) -> None:
        """Free all, and wait a moment for their work to end."""
        for room in list(self._rooms.values()):
            self.close(room)
        end = time.monotonic() + timeout
        self._closing = [r for r in self._closing if not r.join(max(0.0, end - time.monotonic()))]

    def __len__(self) -> int:
        return len(self._rooms)
