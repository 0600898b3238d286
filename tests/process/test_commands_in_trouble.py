# SPDX-License-Identifier: Apache-2.0
"""`sumac ls`, `get`, `stats` when a ps is gone or a disk is full: what is known, soon, an error that names the thing, and no half file."""
import json
import os
import signal
import subprocess
import tempfile
import threading
import unittest
from concurrent import futures

import grpc

from cluster import GONE, PATIENCE_S, SILENT, SUMAC, Cluster, answered
from wire import observe_pb2, observe_pb2_grpc, transfer_pb2_grpc, types_pb2, variables_pb2, variables_pb2_grpc


class Ending(variables_pb2_grpc.VariablesServicer):
    """A ps in the last instant of its run, which is over before a test could ask a real one."""

    def List(self, request, context):
        context.set_trailing_metadata([("a-proxy", "7"), ("sumac-reason", str(types_pb2.REASON_RUN_ENDED))])
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "every listed member has left as done")


class GoneBeforeItsWord(variables_pb2_grpc.VariablesServicer, observe_pb2_grpc.ObserveServicer, transfer_pb2_grpc.TransferServicer):
    """A ps that answers twice, and says a little later why it is gone."""

    def __init__(self):
        self.looks = 0
        self.gone = threading.Event()

    def List(self, request, context):
        return variables_pb2.ListReply(cluster_id=7, epoch=1, position=1, ps_incarnation=9, ps_addresses=[self.address])

    def Stats(self, request, context):
        self.looks += 1
        if self.looks > 2:
            self.gone.set()
            context.abort(grpc.StatusCode.UNAVAILABLE, "gone")
        return observe_pb2.StatsReply(cluster_id=7, epoch=1, ps_incarnation=9)

    def Pull(self, requests, context):
        self.gone.wait(PATIENCE_S)
        threading.Event().wait(0.3)         # nobody sets it: the word is late
        context.set_trailing_metadata([("sumac-reason", str(types_pb2.REASON_RUN_ENDED))])
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "every listed member has left as done")
        yield


class AtTheEnd(unittest.TestCase):
    def test_a_watch_waits_for_the_last_word_of_a_ps_that_is_gone(self):
        server = grpc.server(futures.ThreadPoolExecutor(4))
        ps = GoneBeforeItsWord()
        variables_pb2_grpc.add_VariablesServicer_to_server(ps, server)
        observe_pb2_grpc.add_ObserveServicer_to_server(ps, server)
        transfer_pb2_grpc.add_TransferServicer_to_server(ps, server)
        ps.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        self.addCleanup(server.stop, None)
        self.assertEqual(self.ended("stats", "--watch", "--interval-ms", "10", "--ps", ps.address),
                         (0, "sumac stats: the run has ended: every listed member has left as done\n"))

    def test_that_the_run_has_ended_is_a_whole_sentence(self):
        server = grpc.server(futures.ThreadPoolExecutor(1))
        variables_pb2_grpc.add_VariablesServicer_to_server(Ending(), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(server.stop, None)
        for arguments in (("ls",), ("get", "w"), ("stats",)):
            with self.subTest(arguments):
                self.assertEqual(
                    answered(lambda words=(*arguments, "--ps", f"127.0.0.1:{port}"): self.ended(*words)),
                    (138, f"sumac {arguments[0]}: the run has ended: every listed member has left as done\n"))

    @staticmethod
    def ended(*words):
        done = subprocess.run([SUMAC, *words], capture_output=True, text=True, timeout=PATIENCE_S)
        return done.returncode, done.stderr


class Trouble(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.cluster = self.cluster_with_w()

    def cluster_with_w(self):
        cluster = Cluster(ps=2, workers=1)
        self.addCleanup(cluster.stop)
        member = cluster.member()
        member.wait_for("^joined$")
        for name, rows in (("w", 1024), ("small", 2)):
            member.say(f"create {name} float32 {rows} 64 2 assign_add")
            member.wait_for(f"^created {name}$")
        return cluster

    def test_a_full_disk_is_named_and_leaves_no_file(self):
        for name in ("w", "small"):         # found when it is written, and when it is closed
            code, text = self.cluster.sumac("get", name, "-o", "/dev/full")
            self.assertNotEqual(code, 0)
            self.assertRegex(text, "/dev/full.*No space left")

    def test_a_folder_that_may_not_be_written_to_is_named(self):
        path = os.path.join(self.folder.name, "no_such_folder", "w.npy")
        code, text = self.cluster.sumac("get", "w", "-o", path)
        self.assertNotEqual(code, 0)
        self.assertIn(path, text)

    def test_a_folder_as_file_is_named(self):
        code, text = self.cluster.sumac("get", "w", "-o", self.folder.name)
        self.assertNotEqual(code, 0)
        self.assertRegex(text, f"{self.folder.name}.*directory")

    def test_standard_output_that_is_full_is_an_error(self):
        with open("/dev/full", "w") as full:
            for arguments in (("get", "w"), ("ls",), ("stats", "--interval-ms", "10"), ("ls", "--json"), ("get", "w", "--json")):
                code, _, errors = self.run_command(*arguments, stdout=full)
                self.assertEqual(code, 1, arguments)
                self.assertIn(f"sumac {arguments[0]}: standard output cannot be written: No space left on device\n", errors)

    def test_what_is_known_is_shown_when_a_ps_is_gone_or_stands_still(self):
        """Side by side: whoever waits has some seconds."""
        other = self.cluster_with_w()
        self.cluster.ps[1].kill()
        other.ps[1].signal(signal.SIGSTOP)
        for cluster, silence in ((self.cluster, GONE), (other, SILENT)):
            address = cluster.addresses()[1]
            with self.subTest(silence=silence), futures.ThreadPoolExecutor(3) as threads:
                listed, stats, whole = threads.map(lambda arguments, of=cluster: self.known(of, *arguments), (
                    ("ls",), ("stats", "--interval-ms", "10"), ("get", "w")))
                self.assertEqual((listed[0], stats[0], whole[0]), (138, 138, 138), (listed, stats, whole))
                self.assertRegex(listed[1], r"w +float32 +\[1024, 64\] +NONE +assign_add +0 +256K")
                self.assertRegex(listed[1], f"sumac ls: ps 1 at {address}: {silence}; versions of its shards are not shown")
                self.assertRegex(stats[1], r"(?m)^ps 0 +0 ")
                self.assertRegex(stats[1], rf"(?m)^ps 1  {silence} at {address}$")
                self.assertRegex(stats[1], f"sumac stats: ps 1 at {address}: {silence}")
                self.assertIn(address, whole[1])

    def test_a_command_that_changes_a_run_waits_as_long_as_it_was_told(self):
        path = os.path.join(self.folder.name, "f.txt")
        with open(path, "w", encoding="ascii") as file:
            file.write("value = value - g")
        self.cluster.ps[1].kill()
        code, _, errors = self.run_command("define", "f", path, "--timeout-ms", "300", by=self.cluster.addresses()[0])
        self.assertEqual(code, 138, errors)
        self.assertRegex(errors, r"ps 1 at .* did not appear within (\d+ ms|\d\.\d+ s) ")       # 10 s are the default

    def test_who_is_missing_is_in_the_json_too(self):
        self.cluster.ps[1].kill()
        for arguments in (("ls",), ("stats", "--interval-ms", "10")):
            code, output, errors = self.run_command(*arguments, "--json", by=self.cluster.addresses()[0])
            self.assertEqual(code, 138, errors)
            document = json.loads(output)
            (missing,) = document["missing"]
            self.assertRegex(missing.pop("error"), f"^{GONE}$")
            self.assertEqual(missing, {"ps": 1, "address": self.cluster.addresses()[1]})
            if arguments == ("ls",):
                (w,) = [variable for variable in document["variables"] if variable["name"] == "w"]
                self.assertEqual({shard["ps"]: "version" in shard for shard in w["shards"]}, {0: True, 1: False})
            else:
                self.assertEqual([ps["name"] for ps in document["ps"]], ["ps 0"])

    def test_the_ps_of_two_runs_are_not_shown_as_one(self):
        """TF_CONFIG, or --ps, has the ps of one run, and one of another."""
        other = self.cluster_with_w()
        mine, theirs = self.cluster.addresses(), other.addresses()
        for arguments in (("ls",), ("get", "w"), ("stats", "--interval-ms", "10")):
            with self.subTest(arguments):
                code, output, errors = self.run_command(*arguments, of=f"{mine[0]},{theirs[1]}", by=theirs[1])
                self.assertEqual((code, output), (2, ""))
                self.assertRegex(errors, rf"^sumac {arguments[0]}: the ps at \S+ is of cluster [0-9a-f]{{16}}, and the one at \S+ of "
                                         r"cluster [0-9a-f]{16}: these are two runs; name the ps of one of them")
                for address in (mine[0], theirs[1]):
                    self.assertIn(f"at {address} ", errors)

    def test_any_ps_that_answers_will_do(self):
        """Two are named, and the first of them stands still."""
        self.cluster.ps[0].signal(signal.SIGSTOP)
        silent, there = self.cluster.addresses()
        code, output, errors = self.run_command("ls", of=f"{silent},{there}", by=there)
        self.assertEqual(code, 138, errors)
        self.assertRegex(output, r"w +float32 +\[1024, 64\]")
        self.assertRegex(errors, f"ps 0 at {silent}: {SILENT}")

    def test_a_ps_that_stands_still_is_not_taken_for_one_that_is_gone(self):
        self.cluster.ps[0].signal(signal.SIGSTOP)
        address = self.cluster.addresses()[0]
        done = subprocess.run([SUMAC, "ls", "--ps", address], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual((done.returncode, done.stdout), (138, ""), done.stderr)
        self.assertRegex(done.stderr, f"^sumac ls: no ps answers at {address}: {SILENT}: that process may be suspended, or too busy; check "
                                      "the address\n$")

    def run_command(self, *arguments, of=None, by="", stdout=subprocess.PIPE):
        """(exit code, standard output, standard error), when the ps with the address `by` has answered."""
        def attempt():
            done = subprocess.run([SUMAC, *arguments, "--ps", of or self.cluster.addresses()[0]], stdout=stdout, text=True,
                                  stderr=subprocess.PIPE, timeout=PATIENCE_S)
            return done.returncode, done.stdout, done.stderr
        return answered(attempt, by)

    @staticmethod
    def known(cluster, *arguments):
        """(exit code, output), when ps 0 has answered."""
        return answered(lambda: cluster.sumac_once(*arguments), by=cluster.addresses()[0])


if __name__ == "__main__":
    unittest.main()
