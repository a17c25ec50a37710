"""Rubrics as files: the native YAML and JSON, and the formats of other tools."""

from __future__ import annotations

from rubric.formats.native import dump, dumps, load, loads, schema

__all__ = ["dump", "dumps", "load", "loads", "schema"]
