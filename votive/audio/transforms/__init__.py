"""`votive.audio.transforms`: torchaudio's transforms, modules over `votive.audio.functional`."""

__all__: list[str] = []
