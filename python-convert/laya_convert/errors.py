"""The one error class of the converter."""


class ConvertError(Exception):
    """A refusal that a caller can act on.

    code: stable UPPER_SNAKE name. message: one sentence. expected, found: JSON values or None.
    where: the file, tensor or field the refusal is about. hint: what to do next.
    """

    def __init__(self, code, message, *, expected=None, found=None, where=None, hint=None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.expected = expected
        self.found = found
        self.where = where
        self.hint = hint

    def record(self):
        """The error as it stands in the result document."""
        return {
            "code": self.code,
            "message": self.message,
            "expected": self.expected,
            "found": self.found,
            "where": self.where,
            "hint": self.hint,
        }
