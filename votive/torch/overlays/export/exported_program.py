"""`torch.export.exported_program`."""

from __future__ import annotations

from ...export.program import ExportedProgram, ModuleCallEntry, ModuleCallSignature

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature"]
