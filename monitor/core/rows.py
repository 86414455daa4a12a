"""The rows of a plain sitemap, made when they are looked at (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from monitor.core.sitemap_rows import row_of_texts
from monitor.model import Row


class Rows(Sequence[Row]):
    """Rows over the lines of `sitemap_lines.read_lines`: a million cost what their text does."""

    __slots__ = ("_lines", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines: list[str] | None = None

    def __len__(self) -> int:
        return self._text.count("\n")

    def __iter__(self) -> Iterator[Row]:
        return map(_row, self._text[:-1].split("\n")) if self._text else iter(())

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Row, ...]: ...

    def __getitem__(self, place: int | slice) -> Row | tuple[Row, ...]:
        if self._lines is None:
            self._lines = self._text[:-1].split("\n") if self._text else []
        if isinstance(place, slice):
            return tuple(map(_row, self._lines[place]))
        return _row(self._lines[place])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Rows):
            return self._text == other._text
        return isinstance(other, (tuple, list)) and len(self) == len(other) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} rows>"


def _row(line: str) -> Row:
    url, _, lastmod = line.partition("\t")
    return row_of_texts(url, lastmod or None)
