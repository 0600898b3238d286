"""`sumac ls`, `get`, `stats` when a ps is gone or a disk is full: soon an error that names the thing, and no half file."""
import os
import signal
import subprocess
import tempfile
import unittest

from cluster import PATIENCE_S, Cluster, Process, SUMAC


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
                done = subprocess.run([SUMAC, *arguments, "--ps", self.cluster.addresses()[0]], stdout=full, text=True,
                                      stderr=subprocess.PIPE, timeout=PATIENCE_S)
                self.assertEqual(done.returncode, 1, arguments)
                self.assertIn("standard output", done.stderr)

    def test_a_ps_that_is_gone_or_stands_still_is_named_by_every_command(self):
        """Side by side: whoever waits has 10 s."""
        other = self.cluster_with_w()
        self.cluster.ps[1].kill()
        other.ps[1].signal(signal.SIGSTOP)
        commands = [(cluster, cluster.add(Process([SUMAC, *arguments, "--ps", cluster.addresses()[0]])))
                    for cluster in (self.cluster, other)
                    for arguments in (("ls",), ("stats", "--interval-ms", "10"), ("get", "w"))]
        for cluster, command in commands:
            self.assertGreaterEqual(command.wait(), 128, command.text())
            self.assertIn(cluster.addresses()[1], command.text())


if __name__ == "__main__":
    unittest.main()
