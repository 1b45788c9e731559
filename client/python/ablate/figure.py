"""Figures that the server draws."""
from __future__ import annotations

import base64
from pathlib import Path


class Figure(bytes):
    """The bytes of an SVG, PDF or PNG file. Notebooks display it.

    `csv` has the numbers in the figure; empty if they are too many.
    """

    media_type: str
    csv: str

    def __new__(cls, data: bytes, media_type: str, csv: str) -> Figure:
        figure = super().__new__(cls, data)
        figure.media_type, figure.csv = media_type, csv
        return figure

    def __repr__(self) -> str:
        return f"Figure({self.media_type}, {len(self)} bytes)"

    def _repr_html_(self) -> str:
        # As an image, so that styles and names in the file stay its own.
        if self.media_type == "application/pdf":
            return f"<p>{self!r}</p>"
        data = base64.b64encode(self).decode()
        return f'<img src="data:{self.media_type};base64,{data}">'

    def save(self, path: str | Path) -> Path:
        """Writes the file."""
        Path(path).write_bytes(self)
        return Path(path)
