"""Drawings of a check."""

from __future__ import annotations

import os
import tempfile

from . import _page
from ._arguments import StrPath, path
from ._command import Call
from ._native import RondelError


class Drawing:
    """Verdicts and fields over time. Notebooks show it; ``svg`` is the picture."""

    def __init__(self, call: Call, status: int) -> None:
        self._call = call
        self._status = status
        with tempfile.TemporaryDirectory(prefix="rondel-") as folder:
            file = os.path.join(folder, "plot.svg")
            call.repeat("plot", [f"--out={file}", "--quiet"], status)
            with open(file, encoding="utf-8", newline="") as content:
                self.svg = content.read()

    def save(self, file: StrPath) -> None:
        """Write the picture (``.svg``), or a page with the causes of each violation (``.html``)."""
        name = path("file", file)
        if name.endswith(".svg"):
            try:
                with open(name, "w", encoding="utf-8", newline="") as content:
                    content.write(self.svg)
            except OSError as error:
                raise RondelError(f"cannot write {name}: {error.strerror or error}") from error
        elif name.endswith((".html", ".htm")):
            self._call.repeat("plot", [f"--out={name}", "--quiet"], self._status)
        else:
            raise ValueError(f"{name}: the name of the picture ends in .svg or .html")

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return _page.picture(self.svg)

    def __repr__(self) -> str:
        return f"<Drawing: {len(self.svg)} characters of SVG>"
