"""Runs the converter's tests. Needs only the conversion environment.

Usage: PYTHON -I -X utf8 test/python-convert/run.py [pattern]

Exit code 0 when everything passed, else 1; the last line is `N passed, N failed`.
"""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))


def main(argv):
    pattern = argv[1] if len(argv) > 1 else "test_*.py"
    sys.dont_write_bytecode = True
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as the converter sets it; here numpy loads first
    sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "python-convert")]
    suite = unittest.defaultTestLoader.discover(HERE, pattern=pattern, top_level_dir=HERE)
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    print(f"{result.testsRun - failed} passed, {failed} failed", flush=True)
    return 0 if failed == 0 and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
