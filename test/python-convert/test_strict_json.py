"""JSON from others: one value, unique keys, finite numbers, bounded depth."""

from laya_convert.strict_json import NotStrictJson, is_int, is_number, parse
from support import FolderTest


class Json(FolderTest):
    def test_takes_plain_json(self):
        self.assertEqual(parse(b'{"a": [1, 2.5, "\\u00e9", null, true]}'), {"a": [1, 2.5, "é", None, True]})
        self.assertEqual(parse('{"ü": -0.0}'.encode()), {"ü": 0.0})

    def test_refuses_everything_else(self):
        for text in (
            b"", b"{", b"1 2", b"NaN", b"-Infinity", b"1e999", b"-1e999", b'{"a":1,"a":1}', b'[{"b":{"c":1,"c":2}}]',
            b"\xff", b"\xef\xbb\xbf{}", b"[" * 200_000, b'{"a":' * 200_000, b"9" * 5_000, b"'a'", b"{a:1}", b"[1,]",
        ):  # fmt: skip
            self.assertRaises(NotStrictJson, parse, text)

    def test_booleans_are_not_numbers(self):
        self.assertEqual(
            [is_int(value, 0, 5) for value in (0, 5, 6, -1, True, 1.0, "1", None)], [True, True] + [False] * 6
        )
        self.assertEqual([is_number(value) for value in (0, 0.5, True, "1", None)], [True, True, False, False, False])
