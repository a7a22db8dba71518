"""Refusals before any work: interpreter, locked versions, native parts, free space."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

from laya_convert import environment
from support import LOCK, FolderTest, run_convert

HASH = "--hash=sha256:" + "0" * 64
SITE = Path(os.path.dirname(os.path.dirname(os.path.realpath(sys.modules["numpy"].__file__))))


class Refusals(FolderTest):
    def refuse(self, code, **changes):
        exit_code, result, lines, out = run_convert(self.folder, **changes)
        self.assertEqual((exit_code, result["error"]["code"]), (1, code))
        self.assertEqual((lines, os.listdir(out)), ([], []))
        return result["error"]

    def lock(self, text):
        path = self.folder / "lock.txt"
        path.write_text(text, encoding="utf-8")
        return str(path)

    def test_an_interpreter_that_takes_settings_from_outside(self):
        self.refuse("ENVIRONMENT_NOT_ISOLATED", flags=("-X", "utf8"))
        self.refuse("ENVIRONMENT_NOT_ISOLATED", flags=("-I", "-X", "utf8=0"))

    def test_another_version_than_the_lock_says(self):
        # B04: a library that drifted must stop the build before it converts anything.
        text = LOCK.read_text(encoding="utf-8").replace("numpy==2.4.", "numpy==2.3.")
        error = self.refuse("ENVIRONMENT_PACKAGE", lock=self.lock(text))
        self.assertEqual(error["where"], "numpy")
        self.assertTrue(error["expected"].startswith("numpy==2.3."))

    def test_a_locked_package_that_is_absent(self):
        text = LOCK.read_text(encoding="utf-8") + f"not-there==1.0 {HASH}\n"
        self.assertEqual(self.refuse("ENVIRONMENT_PACKAGE", lock=self.lock(text))["found"], None)

    def test_a_lock_without_hashes_or_without_the_converter(self):
        for text in ("numpy==2.4.6\n", "numpy>=2 " + HASH + "\n", "-e .\n", f"attrs==26.1.0 {HASH}\n", "\ud7ff\n"):
            self.refuse("ENVIRONMENT_LOCK", lock=self.lock(text))
        self.refuse("ENVIRONMENT_LOCK", lock=str(self.folder / "absent"))


class BrokenEnvironments(FolderTest):
    """Environments put together by hand, with packages linked from the real one."""

    def environment(self, names):
        home = self.folder / "venv"
        subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(home)], check=True)
        site = next((home / "lib").glob("python*/site-packages"))
        for entry in SITE.iterdir():
            if entry.name.split("-")[0] in names or entry.name.endswith(".dist-info"):
                os.symlink(entry, site / entry.name)
        return home / "bin" / "python", site

    def test_coremltools_without_its_native_part(self):
        # B10: told at once, with the interpreter and the pin, not after the conversion.
        python, site = self.environment({"numpy", "numpy.libs", "google", "packaging"})
        (site / "coremltools").mkdir()
        for entry in (SITE / "coremltools").iterdir():
            if not entry.name.startswith("libmilstoragepython"):
                os.symlink(entry, site / "coremltools" / entry.name)
        code, result, _, out = run_convert(self.folder, python=python)
        self.assertEqual((code, result["error"]["code"]), (1, "ENVIRONMENT_NATIVE"))
        self.assertEqual(result["error"]["where"], str(python))
        self.assertEqual(os.listdir(out), [])

    def test_modules_from_outside_the_environment(self):
        python, _ = self.environment({"numpy", "numpy.libs", "google", "packaging", "coremltools"})
        code, result, _, _ = run_convert(self.folder, python=python)
        self.assertEqual((code, result["error"]["code"]), (1, "ENVIRONMENT_FOREIGN_MODULE"))
        self.assertEqual(result["error"]["where"], str(python))

    def test_a_package_that_is_recorded_as_installed_but_is_not_there(self):
        python, _ = self.environment({"numpy", "google", "coremltools"})
        code, result, _, _ = run_convert(self.folder, python=python)
        self.assertEqual((code, result["error"]["code"]), (1, "ENVIRONMENT_PACKAGE"))

    def test_packages_from_outside_the_environment(self):
        python, site = self.environment(set())
        for entry in site.iterdir():
            entry.unlink()
        (site / "elsewhere.pth").write_text(str(SITE))
        code, result, _, _ = run_convert(self.folder, python=python)
        self.assertEqual((code, result["error"]["code"]), (1, "ENVIRONMENT_FOREIGN_MODULE"))


class Checks(FolderTest):
    def test_a_lock_is_read_with_its_markers(self):
        path = self.folder / "lock"
        path.write_text(
            f"# c\nA.b_c==1.0 ; sys_platform == 'win32' \\\n    {HASH} \\\n    {HASH}\n    # via x\nd==2 {HASH}\n"
        )
        self.assertEqual(environment.read_lock(path), [("a-b-c", "1.0", "sys_platform == 'win32'"), ("d", "2", None)])

    def test_a_python_without_native_parts(self):
        with mock.patch.object(environment.sys, "version_info", (3, 14, 0)):
            self.assertEqual(self.code_of(environment.check_environment, None), "ENVIRONMENT_PYTHON")

    def test_too_little_free_space(self):
        # B12: told before the first byte is written.
        usage = shutil.disk_usage(self.folder)
        with mock.patch.object(environment.shutil, "disk_usage", return_value=usage._replace(free=100 << 20)):
            environment.check_space(self.folder, 36 << 20)
            self.assertEqual(self.code_of(environment.check_space, self.folder, (36 << 20) + 1), "DISK_SPACE")
