"""The request document: anything unexpected is refused before the checkpoint is opened."""

from laya_convert.architecture import read_architecture
from laya_convert.request import check_against, read_request
from support import TINY, FolderTest, golden_row, make_request


class Requests(FolderTest):
    def refused(self, code="REQUEST_INVALID", **changes):
        path, _, _ = make_request(self.folder, **changes)
        self.assertEqual(self.code_of(read_request, str(path)), code, changes)

    def test_reads_a_request_with_its_buckets_in_order(self):
        path, _, out = make_request(self.folder, buckets=[128, 64], layout_rows={"64": golden_row(64)})
        request = read_request(str(path))
        self.assertEqual((request.buckets, request.out, list(request.layout_rows)), ((64, 128), str(out), [64]))

    def test_refuses_other_protocols_and_unknown_fields(self):
        self.refused(protocol=2)
        self.refused(protocol=None)
        self.refused(quantization="w8")
        self.refused(max_options=64)
        self.refused(max_options=True)

    def test_refuses_bad_buckets(self):
        for buckets in ([], [64, 64], [0], [-64], [64.0], ["64"], [True], 64, None, [1 << 20], list(range(8, 40))):
            self.refused(buckets=buckets)

    def test_refuses_bad_paths(self):
        good = {"weights": "/a", "encoder_config": "/b", "agent_config": "/c"}
        for checkpoint in (None, [], {}, good | {"weights": "relative"}, good | {"weights": 7}, good | {"more": "/d"}):
            self.refused(checkpoint=checkpoint)
        self.refused(lock="relative")
        self.refused(lock=7)
        self.refused(out="relative")
        self.refused(out="/a\0b")
        self.refused(out="/a\ud800")
        self.refused("OUT_INVALID", out=str(self.folder / "absent"))
        self.refused("OUT_INVALID", out=str(self.folder))

    def test_refuses_bad_layout_rows(self):
        good = golden_row(64)
        for change in (
            {"ids": []}, {"ids": [1] * 65}, {"ids": [1.5]}, {"ids": [-1]}, {"ids": "abc"}, {"markers": []},
            {"markers": [64]}, {"markers": [3, 3]}, {"markers": [True]}, {"qtype": 3}, {"qtype": None}, {"pad_id": -1},
            {"logits": []}, {"logits": [1.0] * 33}, {"logits": ["1"] * len(good["logits"])}, {"more": 1},
        ):  # fmt: skip
            self.refused(layout_rows={"64": good | change})
        for rows in ([], {"96": good}, {"x": good}, {"64": None}, {"64": {}}):
            self.refused(layout_rows=rows)

    def test_refuses_what_the_checkpoint_cannot_serve(self):
        arch = read_architecture(TINY / "encoder/config.json", TINY / "rl_agent_config.json")
        for changes in (
            {"buckets": [64, 512]},
            {"layout_rows": {"64": golden_row(64) | {"pad_id": 3072}}},
            {"layout_rows": {"64": golden_row(64) | {"ids": [3071, 3072] * 32}}},
        ):
            path, _, _ = make_request(self.folder, **changes)
            request = read_request(str(path))
            self.assertEqual(self.code_of(check_against, request, arch), "REQUEST_INVALID")
