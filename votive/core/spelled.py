"""The name of the package in what values print of themselves: "votive", or "torch" for programs on the alias."""

from __future__ import annotations

package = "votive"
