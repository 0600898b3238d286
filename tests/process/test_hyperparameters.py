# SPDX-License-Identifier: Apache-2.0
"""Hyperparameters over time: what a push sets counts on every ps from then on, and schedules go by the versions of each shard."""
import json
import math
import unittest

import numpy

from test_values import Talk

ONES = numpy.ones((4, 2), numpy.float32)


class Hyperparameters(Talk):
    def value(self, name):
        """That of all elements, on both ps."""
        values = self.fetch(name, numpy.float32, (4, 2))
        self.assertEqual(len(set(values.ravel())), 1, values)
        return float(values[0, 0])

    def listed(self, name):
        return json.loads(self.cluster.sumac("ls", name, "--json")[1])["variables"][0]

    def assert_near(self, value, expected):
        self.assertAlmostEqual(value, expected, delta=1e-6 * abs(expected))

    def test_what_a_push_sets_counts_for_those_after_it(self):
        self.make("w", "float32", (4, 2), 2, "sgd,learning_rate=1")
        self.put("w", ONES)
        self.ask("set w sgd,learning_rate=0.25", "set")
        self.assertEqual(self.value("w"), -1)
        self.put("w", ONES)
        self.assertEqual(self.value("w"), -1.25)
        self.put("w", ONES, "sgd,learning_rate=2")              # of this push alone
        self.put("w", ONES)
        self.assertEqual(self.value("w"), -3.5)

    def test_what_is_refused_changes_nothing_on_either_ps(self):
        self.make("refused", "float32", (4, 2), 2, "rmsprop,learning_rate=0.5")
        for given, reason, words in (
                ("rmsprop,learning_rate=-1", "INVALID_ARGUMENT BAD_HYPERPARAMETER", "learning_rate of rmsprop is -1"),
                ("rmsprop,centered=1", "FAILED_PRECONDITION MISSING_SLOTS", "mean_gradient"),
                ("adam,learning_rate=1", "INVALID_ARGUMENT BAD_HYPERPARAMETER|FAILED_PRECONDITION MISSING_SLOTS", "rmsprop"),
                ("rmsprop,schedule=cosine_decay", "INVALID_ARGUMENT BAD_HYPERPARAMETER", "decay_steps of the schedule cosine_decay is 0"),
                ("rmsprop,schedule=constant,alpha=1", "INVALID_ARGUMENT BAD_HYPERPARAMETER", "alpha of the schedule constant")):
            answer = self.ask(f"set refused {given}", f"refused (?:{reason}) (.*)")
            self.assertIn(words, answer.group(1))
        self.assertNotIn("current", self.listed("refused"))
        self.assertEqual([shard["version"] for shard in self.listed("refused")["shards"]], [0, 0])

    def test_a_schedule_is_evaluated_at_each_push(self):
        self.make("decays", "float32", (4, 2), 2, "sgd,learning_rate=1,schedule=exponential_decay,decay_steps=2,decay_rate=0.25")
        expected = 0
        for version in range(6):
            self.put("decays", ONES)
            expected -= 0.25 ** (version / 2)
            self.assert_near(self.value("decays"), expected)
        self.ask("set decays sgd,learning_rate=0,schedule=cosine_decay,decay_steps=4,alpha=0.5,warmup_steps=2,warmup_target=2,"
                 "first_version=7", "set")
        for step in range(8):
            self.put("decays", ONES)
            turn = math.cos(math.pi * min(step - 2, 4) / 4)
            expected -= step if step < 2 else 2 * (0.5 * (1 + turn) / 2 + 0.5)
            self.assert_near(self.value("decays"), expected)

    def test_a_push_of_some_rows_moves_the_schedule_on_all_shards(self):
        self.make("apart", "float32", (4, 2), 2, "sgd,learning_rate=1,schedule=exponential_decay,decay_steps=1,decay_rate=0.5")
        for _ in range(2):
            self.put("apart", ONES[:2], "- - 0")                # rows of the first shard: 1 and a half
        self.put("apart", ONES)                                 # a quarter in both
        values = self.fetch("apart", numpy.float32, (4, 2))
        self.assertEqual(values[:, 0].tolist(), [-1.75, -1.75, -0.25, -0.25])
        self.assertEqual([shard["version"] for shard in self.listed("apart")["shards"]], [3, 3])

    def test_a_list_says_both_what_was_created_and_what_counts(self):
        self.make("both", "float32", (4, 2), 2, "momentum,learning_rate=0.5")
        self.assertNotIn("current", self.listed("both"))
        self.ask("set both momentum,momentum=0.75,schedule=cosine_decay,decay_steps=100", "set")
        listed = self.listed("both")
        self.assertEqual(listed["function"]["momentum"], 0.9)
        self.assertNotIn("schedule", listed["function"])
        self.assertEqual((listed["current"]["momentum"], listed["current"]["learning_rate"]), (0.75, 0.5))
        self.assertEqual(listed["current"]["schedule"],
                         {"name": "cosine_decay", "decay_steps": 100, "alpha": 0.0, "first_version": 0})

    def test_a_create_is_compared_with_what_was_created(self):
        self.make("again", "float32", (4, 2), 2, "sgd,learning_rate=1,schedule=constant,warmup_steps=4,warmup_target=2")
        self.ask("set again sgd,learning_rate=3", "set")
        self.make("again", "float32", (4, 2), 2, "sgd,learning_rate=1,schedule=constant,warmup_steps=4,warmup_target=2")
        answer = self.ask("make again float32 4,2 2 sgd,learning_rate=3", "refused ALREADY_EXISTS ALREADY_EXISTS (.*)")
        self.assertIn("learning_rate", answer.group(1))
        answer = self.ask("make again float32 4,2 2 sgd,learning_rate=1", "refused ALREADY_EXISTS ALREADY_EXISTS (.*)")
        self.assertIn("schedule constant(warmup_steps 4, warmup_target 2), this create says none", answer.group(1))
        self.put("again", ONES)
        self.assertEqual(self.value("again"), -3)

    def test_a_list_says_what_each_schedule_has(self):
        self.make("warms", "float32", (4, 2), 2, "sgd,schedule=exponential_decay,decay_steps=3,decay_rate=0.25,warmup_steps=4,warmup_target=2")
        self.assertEqual(self.listed("warms")["function"]["schedule"],
                         {"name": "exponential_decay", "decay_steps": 3, "decay_rate": 0.25, "staircase": False, "warmup_steps": 4,
                          "warmup_target": 2.0, "first_version": 0})


if __name__ == "__main__":
    unittest.main()
