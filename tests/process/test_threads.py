# SPDX-License-Identifier: Apache-2.0
"""Threads that share one client: each of their pushes counts once, over both ps, and each thread reads what it has pushed.
And a process that may not start the threads that it needs: it says so, and ends."""
import json
import os
import signal
import unittest

from cluster import BUILD, PATIENCE_S, SUMAC, Cluster, Process, free_ports

THREADS, PUSHES = 8, 300


class Threads(unittest.TestCase):
    def test_sums_are_exact_and_every_thread_reads_its_own_pushes(self):
        with Cluster(workers=2) as cluster:
            programs = [cluster.add(Process([f"{BUILD}/threads", str(THREADS), str(PUSHES)], cluster.environment("worker", index)))
                        for index in range(2)]
            for program in programs:
                self.assertEqual(program.wait(PATIENCE_S * 5), 0, program.text())      # it computes all the time
            totals = [int(program.wait_for(r"^total (\d+)$").group(1)) for program in programs]
            self.assertEqual(max(totals), 2 * THREADS * PUSHES)
            self.assertGreaterEqual(min(totals), THREADS * PUSHES)
            self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])

    @unittest.skipIf(os.environ.get("SUMAC_SANITIZED") == "1", "a sanitizer's shadow is larger than any such limit")
    def test_a_process_that_lacks_threads_or_memory_ends_with_what_to_raise(self):
        port = free_ports(1)[0]
        config = {"cluster": {"ps": [f"127.0.0.1:{port}"]}, "task": {"type": "ps", "index": 0}}
        ps = Process(["bash", "-c", f"ulimit -v 80000; exec {SUMAC} ps"], {"TF_CONFIG": json.dumps(config)})
        self.addCleanup(ps.kill)
        ps.wait_for("ps 0 cannot start: this process may start [0-9]+ threads more, and needs [0-9]+: raise its limit of threads")
        self.assertEqual(ps.wait(), 137)
        ls = Process(["bash", "-c", f"ulimit -v 80000; exec {SUMAC} ls --ps 127.0.0.1:{port}"])
        ls.wait_for("^sumac ls: this process may start [0-9]+ threads more, and needs [0-9]+: raise its limit of threads")
        self.assertEqual(ls.wait(), 2)

    @unittest.skipIf(os.environ.get("SUMAC_SANITIZED") == "1", "a sanitizer's shadow is larger than any such limit")
    def test_a_ps_that_cannot_start_ends_whatever_it_lacks(self):
        config = {"cluster": {"ps": [f"127.0.0.1:{free_ports(1)[0]}"]}, "task": {"type": "ps", "index": 0}}
        for kilobytes in range(100000, 260001, 20000):
            ps = Process(["bash", "-c", f"ulimit -v {kilobytes}; exec {SUMAC} ps"], {"TF_CONFIG": json.dumps(config)})
            self.addCleanup(ps.kill)
            if "listens on" in ps.wait_for("cannot start: |listens on|bad_alloc").group():      # gRPC aborts where it finds no memory
                ps.signal(signal.SIGTERM)
            self.assertNotEqual(ps.wait(), 0, ps.text())


if __name__ == "__main__":
    unittest.main()
