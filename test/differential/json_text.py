"""JSON texts in the many spellings that clients send."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Raw:
    """A number by its text, such as 1.50 or 1E+3."""

    text: str


NUMBERS = ("0", "-0", "-0.0", "1", "7", "42", "1.0", "1.50", "2.50", "1e5", "1E+3", "1e-7", "0.1", "-12.25", "1e16")
NUMBERS += ("1e22", "123456789012345678901234567890", "5e-324", "1.7976931348623157e308", "0.30000000000000004", "1e2")
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}


class JsonWriter:
    """Writes a value; escapes and white space are drawn from `rng`, keys keep their order."""

    def __init__(self, rng):
        self.rng = rng
        self.ascii = rng.random() < 0.3
        self.loose = rng.random() < 0.3

    def text(self, value):
        """The value as JSON text."""
        if isinstance(value, Raw):
            return value.text
        if value is None:
            return "null"
        if value is True or value is False:
            return "true" if value else "false"
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, (int, float)):
            return repr(value)
        if isinstance(value, dict):
            members = (f"{self.string(key)}{self.space()}:{self.space()}{self.text(one)}" for key, one in value.items())
            return self.joined("{", members, "}")
        return self.joined("[", (self.text(one) for one in value), "]")

    def joined(self, start, parts, end):
        """The parts between brackets."""
        return start + self.space() + f",{self.space()}".join(parts) + self.space() + end

    def space(self):
        """White space that JSON allows."""
        return self.rng.choice(("", " ", "\n", "\t ", "\r\n")) if self.loose else ""

    def string(self, text):
        """A JSON string."""
        return '"' + "".join(self.character(char) for char in text) + '"'

    def character(self, char):
        """One character, escaped where JSON asks for it or the draw does."""
        code = ord(char)
        if char in ESCAPES:
            return ESCAPES[char]
        lone = 0xD800 <= code <= 0xDFFF
        if code >= 0x20 and not lone and not (self.ascii and code > 0x7E):
            return char
        units = [code] if code < 0x10000 else [0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF)]
        return "".join(f"\\u{unit:04x}" for unit in units)
