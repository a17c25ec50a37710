"""Templates in rubrics and prompts: rendered with the variables of a case, and with declared environment variables."""

from __future__ import annotations

from rubric.formats.templates.environments import show_environment
from rubric.formats.templates.rendering import is_template, names_in, render

__all__ = ["is_template", "names_in", "render", "show_environment"]
