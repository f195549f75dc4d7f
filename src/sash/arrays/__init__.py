"""Whole arrays at once: slide()."""

from sash.arrays.slides import explain_slide, slide

__all__ = ["explain_slide", "slide"]
