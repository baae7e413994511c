"""Places in texts of users, for messages."""

from __future__ import annotations

from typing import NamedTuple


class Place(NamedTuple):
    """A range of characters of a text."""

    text: str
    begin: int
    end: int

    def describe(self, message: str, first_column: int = 1) -> str:
        """The message behind line and column, and the line with marks below the characters."""
        line = self.text.count("\n", 0, self.begin) + 1
        start = self.text.rfind("\n", 0, self.begin) + 1
        stop = self.text.find("\n", self.begin)
        shown = self.text[start : len(self.text) if stop < 0 else stop]
        column = self.begin - start
        length = max(1, min(self.end, start + len(shown)) - self.begin)
        # Tabs stay tabs, so that the marks stand below their characters.
        margin = "".join("\t" if character == "\t" else " " for character in shown[:column])
        return f"{line}:{column + first_column}: {message}\n  {shown}\n  {margin}{'^' * length}"
