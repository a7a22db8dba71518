"""The converter as a process: packages, result document, protocol, refusals that leave nothing behind."""

import json
import os
import resource
import shutil
import subprocess
import sys
import textwrap

import numpy as np
from support import CONVERT, ROOT, FolderTest, golden_row, make_checkpoint, make_request, run_convert, tree

BUCKETS = [64, 96, 128, 256]
DATA = "Data/com.apple.CoreML"


class Converts(FolderTest):
    def test_writes_one_package_for_each_bucket_and_says_how(self):
        rows = {str(length): golden_row(length) for length in BUCKETS}
        code, result, lines, out = run_convert(self.folder, buckets=BUCKETS, layout_rows=rows)
        self.assertEqual((code, result["ok"], result["protocol"]), (0, True, 1))
        self.assertEqual(sorted(os.listdir(out)), sorted(f"L{length}.mlpackage" for length in BUCKETS))
        self.assertEqual(result["packages"]["coremltools"], "9.0")
        self.assertGreater(result["peak_rss_bytes"], 0)
        for length in BUCKETS:
            bucket = result["buckets"][str(length)]
            self.assertEqual(bucket["package"], f"L{length}.mlpackage")
            self.assertLess(bucket["layout_check_max_abs_logit_fp32"], 1e-4)
            self.assertEqual(bucket["operations"]["conv"], 26)
        events = [json.loads(line.removeprefix("@progress ")) for line in lines]
        self.assertEqual([event["length"] for event in events if event["event"] == "bucket_done"], BUCKETS)

    def test_result_is_one_document_with_sorted_keys(self):
        code, result, _, _ = run_convert(self.folder)
        text = (self.folder / "result.json").read_text(encoding="utf-8")
        self.assertEqual(code, 0)
        self.assertEqual(text, json.dumps(result, sort_keys=True, indent=1) + "\n")
        self.assertEqual(sorted(os.listdir(self.folder)), ["out", "request.json", "result.json"])

    def test_same_bytes_in_any_folder_locale_and_zone(self):
        # B13, B20: nothing random, dated or locale-bound inside a package.
        first, second = self.folder / "a", self.folder / "b-ü"
        first.mkdir()
        second.mkdir()
        _, _, _, one = run_convert(first, buckets=BUCKETS)
        odd = {"LC_ALL": "de_DE.UTF-8", "TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "7", "PYTHONIOENCODING": "ascii"}
        code, _, _, two = run_convert(second, buckets=BUCKETS[::-1], env=odd)
        self.assertEqual(code, 0)
        self.assertEqual(len(tree(one)), 16)
        self.assertEqual(tree(one), tree(two))

    def test_a_bucket_alone_has_the_bytes_it_has_among_others(self):
        first, second = self.folder / "a", self.folder / "b"
        first.mkdir()
        second.mkdir()
        _, _, _, one = run_convert(first, buckets=[96])
        _, _, _, all_of_them = run_convert(second, buckets=BUCKETS)
        self.assertEqual(tree(one / "L96.mlpackage"), tree(all_of_them / "L96.mlpackage"))

    def test_weights_are_stored_once_and_only_the_rotary_tables_differ(self):
        _, _, _, out = run_convert(self.folder, buckets=BUCKETS)
        files = {length: out / f"L{length}.mlpackage" / DATA / "weights" for length in BUCKETS}
        self.assertEqual(len({(path / "weight.bin").stat().st_ino for path in files.values()}), 1)
        self.assertEqual(len({(path / "rope.bin").read_bytes() for path in files.values()}), len(BUCKETS))

    def test_fp16_weights_give_the_packages_of_the_same_numbers_in_fp32(self):
        first, second = self.folder / "a", self.folder / "b"
        for folder, dtype in ((first, "F16"), (second, "F32")):
            folder.mkdir()

            def rounded(tensors, dtype=dtype):
                for name, (_, array) in tensors.items():
                    tensors[name] = (dtype, array.astype(np.float16))

            code, _, _, _ = run_convert(folder, checkpoint=make_checkpoint(folder / "checkpoint", tensors=rounded))
            self.assertEqual(code, 0)
        self.assertEqual(tree(first / "out"), tree(second / "out"))


class Refuses(FolderTest):
    def refuse(self, code, **changes):
        """The run must fail with this code and leave the output folder empty; returns the error record."""
        exit_code, result, _, out = run_convert(self.folder, **changes)
        self.assertEqual((exit_code, result["ok"]), (1, False))
        self.assertEqual(result["error"]["code"], code)
        self.assertEqual(sorted(result["error"]), ["code", "expected", "found", "hint", "message", "where"])
        self.assertEqual(os.listdir(out), [])
        return result["error"]

    def test_logits_of_another_model(self):
        row = golden_row(64)
        row["logits"] = [value + 0.01 for value in row["logits"]]
        error = self.refuse("LAYOUT_CHECK", layout_rows={"64": row})
        self.assertAlmostEqual(error["found"], 0.01, places=4)

    def test_a_renamed_rope_key(self):
        # B04: the base of the rotary tables must not fall back to a default because a key changed its name.
        def rename(config):
            config["rope_params"] = config.pop("rope_parameters")

        checkpoint = make_checkpoint(self.folder / "checkpoint", encoder=rename)
        self.refuse("CONFIG_KEY_UNKNOWN", checkpoint=checkpoint)

    def test_another_rope_base_than_the_reference_used(self):
        # B04: a value that is merely wrong is caught by the reference's own logits.
        def change(config):
            config["rope_parameters"]["sliding_attention"]["rope_theta"] = 500.0

        checkpoint = make_checkpoint(self.folder / "checkpoint", encoder=change)
        self.refuse("LAYOUT_CHECK", checkpoint=checkpoint, layout_rows={"96": golden_row(96)}, buckets=[96])

    def test_weights_that_overflow_fp16(self):
        # B05: the graph would be full of infinities and answer NaN.
        def overflow(tensors):
            dtype, array = tensors["scorer.1.weight"]
            array = array.copy()
            array[3, 5] = 7e4
            tensors["scorer.1.weight"] = (dtype, array)

        checkpoint = make_checkpoint(self.folder / "checkpoint", tensors=overflow)
        error = self.refuse("WEIGHTS_RANGE", checkpoint=checkpoint, buckets=BUCKETS)
        self.assertTrue(error["where"].endswith("scorer.1.weight"))

    def test_a_full_disk_and_then_works_once_there_is_room(self):
        # B12: a failed write leaves nothing that the next run could trip over.
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

        self.refuse("WRITE_FAILED", limit=limit)
        code, _, _, out = run_convert(self.folder)
        self.assertEqual((code, os.listdir(out)), (0, ["L64.mlpackage"]))

    def test_an_output_folder_in_use_is_left_as_it_was(self):
        (self.folder / "out").mkdir()
        (self.folder / "out" / "mine").write_text("kept")
        code, result, _, out = run_convert(self.folder)
        self.assertEqual((code, result["error"]["code"]), (1, "OUT_INVALID"))
        self.assertEqual((out / "mine").read_text(), "kept")

    def test_a_request_that_is_not_json_still_gets_a_result(self):
        request, result, _ = make_request(self.folder)
        request.write_text("{")
        command = [sys.executable, "-I", "-X", "utf8", str(CONVERT), str(request), str(result)]
        self.assertEqual(subprocess.run(command, capture_output=True).returncode, 1)
        self.assertEqual(json.loads(result.read_text())["error"]["code"], "REQUEST_INVALID")


class Process(FolderTest):
    def script(self, text, *arguments):
        """Runs a script that has the converter's entry module as `entry`."""
        head = f"""
            import importlib.util, os, signal, sys
            sys.dont_write_bytecode = True
            spec = importlib.util.spec_from_file_location("entry", {str(CONVERT)!r})
            entry = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(entry)
        """
        code = textwrap.dedent(head) + textwrap.dedent(text)
        command = [sys.executable, "-I", "-X", "utf8", "-c", code, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, cwd=self.folder)

    def interrupted(self, signal_name):
        request, result, out = make_request(self.folder, buckets=BUCKETS)
        result.write_text("a result of an earlier run")
        text = f"""
            sys.meta_path.insert(0, entry._PackageFinder)
            from laya_convert.run import main
            def progress(event):
                if event["event"] == "bucket_done":
                    os.kill(os.getpid(), signal.{signal_name})
            sys.exit(main(sys.argv[1], sys.argv[2], progress))
        """
        return self.script(text, request, result), result, out

    def test_a_signal_between_buckets_leaves_no_package(self):
        for name, code in (("SIGTERM", 143), ("SIGINT", 130)):
            done, result, out = self.interrupted(name)
            self.assertEqual(done.returncode, code)
            self.assertEqual(json.loads(result.read_text())["error"]["code"], "INTERRUPTED")
            self.assertEqual(os.listdir(out), [])

    def test_a_killed_run_does_not_leave_the_result_of_an_earlier_one(self):
        done, result, _ = self.interrupted("SIGKILL")
        self.assertEqual(done.returncode, -9)
        self.assertFalse(result.exists())

    def test_what_libraries_print_never_reaches_the_protocol(self):
        # B15: native code writes to descriptor 1, Python code to sys.stdout.
        text = """
            progress = entry._progress_on_stdout()
            os.write(1, b"from native code\\n")
            print("from python", flush=True)
            progress({"event": "done"})
        """
        done = self.script(text)
        self.assertEqual(done.stdout, b'@progress {"event": "done"}\n')
        self.assertEqual(done.stderr, b"from native code\nfrom python\n")

    def test_runs_its_sources_and_leaves_no_bytecode_beside_them(self):
        home = self.folder / "python-convert"
        shutil.copytree(CONVERT.parent, home, ignore=shutil.ignore_patterns("__pycache__", "reference"))
        before = tree(home)
        request, result, _ = make_request(self.folder)
        command = [sys.executable, "-I", "-X", "utf8", str(home / "convert.py"), str(request), str(result)]
        for _ in range(2):
            self.assertEqual(subprocess.run(command, capture_output=True).returncode, 0)
            self.assertEqual(tree(home), before)
            shutil.rmtree(self.folder / "out" / "L64.mlpackage")

    def test_the_code_in_the_repository_names_no_machine(self):
        for path in (ROOT / "python-convert").glob("requirements.*"):
            self.assertNotRegex(path.read_text(encoding="utf-8"), r"https?://|(?m:^| )/(root|tmp|home|work)/")
