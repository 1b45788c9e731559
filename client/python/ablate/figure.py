"""Figures that the server draws."""
from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path

from ablate.errors import InvalidArgument

_SUFFIXES = {"image/svg+xml": ".svg", "application/pdf": ".pdf", "image/png": ".png"}


@dataclass(frozen=True)
class Figure:
    """An SVG, PDF or PNG file. Notebooks display it.

    `data` is the file, and `csv` has the numbers in the figure; it is empty if they are too many.
    """

    data: bytes = field(repr=False)
    media_type: str
    csv: str = field(repr=False)

    def save(self, path: str | Path) -> Path:
        """Writes the file. A suffix of another format than the figure's is an error."""
        path = Path(path)
        own = _SUFFIXES[self.media_type]
        if path.suffix.lower() in _SUFFIXES.values() and path.suffix.lower() != own:
            raise InvalidArgument(f'path: "{path}" ends in {path.suffix}, and the figure is '
                                  f'{own[1:].upper()}; expected {own}, or '
                                  f'figure(..., format="{path.suffix.lower()[1:]}")')
        path.write_bytes(self.data)
        return path

    def _repr_html_(self) -> str:
        # As an image, so that styles and names in the file stay its own.
        if self.media_type == "application/pdf":
            return f"<p>{self!r}</p>"
        data = base64.b64encode(self.data).decode()
        return f'<img src="data:{self.media_type};base64,{data}">'
