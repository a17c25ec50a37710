"""Where the checkout, its test files and the shared data beside it are."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
"""Data that may stand beside the checkout; tests skip without it."""
