"""The case and training-data generators, without a tokenizer or a model."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python-convert" / "reference"))

import tiny_templates  # noqa: E402
from case import Case  # noqa: E402
from cases import build_cases  # noqa: E402
from tiny_data import OPTION_CLASSES, rows  # noqa: E402


class WordFitter:
    """Counts words where the real one counts tokens."""

    max_len = 256
    special_tokens = ("<s>", "<mask>")

    class tok:
        mask_token = "<mask>"

    def __init__(self):
        self.asked = []

    def state_for(self, question, row, words):
        self.asked.append(row)
        return " ".join(next(words) for _ in range(row))

    def longer_by(self, question, tokens):
        return {**question, "instructions": question["instructions"] + " more" * tokens}


class Cases(unittest.TestCase):
    def test_are_the_same_every_time(self):
        self.assertEqual(build_cases(WordFitter()), build_cases(WordFitter()))

    def test_fit_the_buckets_up_to_max_len_and_max_len_itself(self):
        fitter = WordFitter()
        fitter.max_len = 100
        build_cases(fitter, (64, 96, 128))
        self.assertEqual({row + 1 for row in fitter.asked} - {101}, {64, 96, 100})

    def test_put_the_checkpoints_own_mask_token_everywhere(self):
        case = next(case for case in build_cases(WordFitter()) if case.name == "special-mask-text")
        self.assertTrue(all("<mask>" in json.dumps(question) for question in case.questions.values()))

    def test_a_list_of_texts_is_asked_as_nouls_named_after_themselves(self):
        case = Case("x", "", ["10", "2"])
        self.assertEqual(list(case.question_dict), ["10", "2"])
        self.assertEqual(case.question_dict["2"], {"type": "noul", "instructions": "2"})

    def test_are_all_json(self):
        for case in build_cases(WordFitter()):
            json.dumps([case.state, case.questions], allow_nan=False)


class TrainingData(unittest.TestCase):
    def test_training_and_held_out_templates_are_disjoint(self):
        groups = [value for value in vars(tiny_templates).values() if isinstance(value, dict) and "held-out" in value]
        self.assertEqual(len(groups), 7)
        for group in groups:
            train, held_out = (self.texts(group[split]) for split in ("train", "held-out"))
            self.assertEqual(train & held_out, set())
            self.assertTrue(held_out)

    def texts(self, value):
        if isinstance(value, str):
            return {value}
        parts = value.values() if isinstance(value, dict) else value
        return set().union(*map(self.texts, parts))

    def test_labels_point_at_an_option_and_its_class(self):
        for row in rows(3, "train", 500):
            criteria = row.question.get("criteria", ("false", "true"))
            self.assertEqual(len(row.options), len(criteria))
            self.assertIn(row.label, range(len(criteria)))
            self.assertTrue(all(0 <= option < OPTION_CLASSES for option in row.options))
            if row.question["type"] == "choice":
                self.assertEqual(list(criteria)[row.label], tiny_templates.TOPICS[row.topic])

    def test_rows_are_the_same_every_time_and_balanced(self):
        self.assertEqual(rows(3, "held-out", 200), rows(3, "held-out", 200))
        nouls = [row.label for row in rows(3, "train", 4000) if row.question["type"] == "noul"]
        self.assertLess(abs(sum(nouls) / len(nouls) - 0.5), 0.05)


if __name__ == "__main__":
    unittest.main()
