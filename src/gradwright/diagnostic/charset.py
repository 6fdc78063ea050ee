"""The characters a stream can show: box drawing, its ASCII stand-in, and escapes for the rest."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Charset:
    """The drawing characters of an encoding, and how it shows every other character."""

    encoding: str
    bar: str
    gap: str
    rule: str
    ellipsis: str

    def visible(self, text: str) -> str:
        """``text`` with every character escaped that is not for show or not encodable.

        Escape sequences, control characters and bidirectional overrides come out as ``\\x1b`` or
        ``\\u202e``: a terminal never gets them raw.
        """
        if text.isascii() and text.isprintable():
            return text
        return "".join(self._shown(char) for char in text)

    def _shown(self, char: str) -> str:
        if char.isprintable() and _can_encode(char, self.encoding):
            return char
        return char.encode("unicode_escape").decode("ascii")


def charset_for(encoding: str | None) -> Charset:
    """Box characters where ``encoding`` has them, else ASCII. None is UTF-8."""
    name = encoding or "utf-8"
    if _can_encode("│⋮─…", name):
        return Charset(name, bar="│", gap="⋮", rule="─", ellipsis="…")
    return Charset(name, bar="|", gap=":", rule="-", ellipsis="...")


def _can_encode(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True


UTF8 = charset_for("utf-8")
