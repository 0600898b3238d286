# SPDX-License-Identifier: Apache-2.0
"""A catalogue of more than one answer, and names that are hard to print: read by Python, by the C client, by the commands."""
import contextlib
import json
import os
import re
import subprocess
import unittest

import grpc

from cluster import PATIENCE_S, SUMAC, Cluster, answered
from wire import DEADLINE_S, Client, commit, floats, part, sessions_pb2, types_pb2, variables_pb2

SHARDS = 4096       # the most that a variable may have: two such variables are more than one answer
VARIABLES = 7
ANSWER_BYTES_MAX = 1 << 20


def sumac(*arguments):
    def attempt():
        done = subprocess.run([SUMAC, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr
    return answered(attempt)


class Catalogue(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(ps=2, workers=1)
        cls.client = Client(cls.cluster.addresses())
        cls.names = [f"v{number}" for number in range(VARIABLES)]
        for name in cls.names:
            cls.client.create(name, [SHARDS], shards=SHARDS)
        cls.ps = ("--ps", cls.cluster.addresses()[0])

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.cluster.stop()

    def test_pages_have_every_variable_once_and_end_at_about_1_mib(self):
        for ps in self.client.ps:
            pages = list(ps.pages())
            self.assertGreater(len(pages), 1)
            for page in pages:
                self.assertLessEqual(page.ByteSize(), ANSWER_BYTES_MAX)
            self.assertEqual([variable.name for page in pages for variable in page.variables], self.names)

    def test_ls_goes_through_all_pages(self):
        code, output, errors = sumac("ls", "--json", *self.ps)
        self.assertEqual((code, errors), (0, ""))
        listed = json.loads(output)["variables"]
        self.assertEqual([variable["name"] for variable in listed], self.names)
        for variable in listed:     # each shard was found at the ps that holds it
            self.assertEqual([shard["version"] for shard in variable["shards"]], [0] * SHARDS)

    def test_ls_of_more_names_than_fit_in_one_answer(self):
        names = self.names[::-1]
        code, output, errors = sumac("ls", "--json", *names, *self.ps)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual([variable["name"] for variable in json.loads(output)["variables"]], names)
        _, line, _ = sumac("ls", names[0], *self.ps)[1].splitlines()
        self.assertEqual(sorted(re.split("  +", line)[-1].split()), ["0", "1"])     # each ps once, whatever it holds

    def test_ls_of_a_name_said_twice_lists_it_once(self):
        code, output, errors = sumac("ls", "--json", "v0", "v1", "v0", *self.ps)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual([variable["name"] for variable in json.loads(output)["variables"]], ["v0", "v1"])

    def test_get_finds_the_last_one(self):
        code, output, errors = sumac("get", self.names[-1], "--slice", "4094:", "--json", *self.ps)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(json.loads(output)["values"], [0, 0])

    def test_a_name_that_is_said_1500_times_is_refused(self):
        for count in (2, 1000, 1500, 50_000):
            with self.assertRaises(grpc.RpcError) as raised:
                self.client.ps[1].variables.List(variables_pb2.ListRequest(names=["v0"] * count), timeout=DEADLINE_S)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn("twice" if count <= 1000 else "1000 are the most", raised.exception.details())


class Placement(unittest.TestCase):
    def where(self, *options):
        """The ps of each shard of a large variable, of a small one in two shards, and of two more small ones."""
        with Cluster(ps=2, workers=1, options=options) as cluster, contextlib.closing(Client(cluster.addresses())) as client:
            made = [client.create("large", [1000], shards=1), client.create("split", [8]), client.create("a", [4], shards=1),
                    client.create("b", [4], shards=1)]
            return [[shard.ps for shard in variable.shards] for variable in made]

    def test_shards_take_turns_or_go_where_the_fewest_bytes_are(self):
        self.assertEqual(self.where(), [[0], [1, 0], [1], [0]])
        self.assertEqual(self.where("--placement", "round-robin"), [[0], [1, 0], [1], [0]])
        self.assertEqual(self.where("--placement", "bytes"), [[0], [1, 1], [1], [1]])

    def test_another_word_is_refused_with_those_that_there_are(self):
        done = subprocess.run([SUMAC, "ps", "--placement", "size"], capture_output=True, text=True, timeout=PATIENCE_S,
                              stdin=subprocess.DEVNULL)
        self.assertEqual((done.returncode, done.stderr), (2, "sumac ps: --placement size is neither round-robin nor bytes\n"))


class HardToPrint(unittest.TestCase):
    """Names that would write to a terminal, forge a line of the log, or be cut in two."""

    def setUp(self):
        self.cluster = Cluster(ps=1, workers=1)
        self.addCleanup(self.cluster.stop)
        self.client = Client(self.cluster.addresses())
        self.addCleanup(self.client.close)
        self.ps = ("--ps", self.cluster.addresses()[0])

    def assert_refused(self, call, *arguments):
        with self.assertRaises(grpc.RpcError) as raised:
            call(*arguments)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertTrue(raised.exception.details().isprintable())

    def test_control_characters_are_refused_and_nul_is_not_cut(self):
        for name in ("a\0b", "\x1b]0;title\x07", "a\nb", "\x7f", "\u009b2J"):
            self.assert_refused(self.client.create, name, [1], types_pb2.DATA_TYPE_FLOAT32, 1)
            self.assert_refused(self.join, name)
        self.assertEqual([list(page.variables) for page in self.client.ps[0].pages()], [[]])
        for process in self.cluster.processes:
            self.assertTrue(all(line.isprintable() for line in process.lines))

    def join(self, job, role=sessions_pb2.ROLE_MEMBER):
        return self.client.ps[0].sessions.Join(sessions_pb2.JoinRequest(
            protocol_version=2, nonce=os.urandom(16), role=role, local_replicas=1,
            task=sessions_pb2.TaskName(job=job, index=0)), timeout=DEADLINE_S)

    def test_a_long_job_name_is_whole_wherever_it_is_said(self):
        job = "é" * 31
        shard = self.client.create("w", [4], shards=1).shards[0]
        self.client.joined = self.join(job, sessions_pb2.ROLE_OBSERVER)
        push, _ = self.client.open_push(0)
        push.send(part(1, shard, floats(1, 2, 3, 4)))
        push.send(commit(1))
        while not push.next().done:
            pass
        push.end()
        self.assertEqual(next(self.client.ps[0].pages()).variables[0].shards[0].last_worker, f"{job} 0")
        for command in (("ls", "--shards"), ("stats", "--interval-ms", "10"), ("get", "w")):
            code, output, errors = sumac(*command, *self.ps)
            self.assertEqual((code, errors), (0, ""))
            self.assertTrue(f"{job} 0" in output or command[0] == "get")
        member = self.cluster.member()     # who joins asks for the ps first
        member.wait_for("joined")

    def test_a_long_name_that_is_refused_is_said_in_whole_characters(self):
        shard = self.client.create("x" + "é" * 511, [4], shards=1).shards[0]
        push, _ = self.client.open_push(0)
        for sequence, offset in ((1, 4), (2, 400), (3, 40000)):
            push.send(part(sequence, shard, floats(1, 2, 3, 4), previous=sequence - 1, offset=offset))
            answer = push.next()
            while not answer.refused:
                answer = push.next()
            self.assertIn("é", answer.refused[0].message)
        push.end()


if __name__ == "__main__":
    unittest.main()
