# SPDX-License-Identifier: Apache-2.0
"""A ps holds no more than its published formula gives, after many large pushes."""
import json
import os
import unittest

from cluster import Cluster

MIB = 1 << 20

# Of a sanitizer, if there is one: freed memory is given back, and a failed allocation is the program's to handle.
os.environ.setdefault("ASAN_OPTIONS", "quarantine_size_mb=1:allocator_may_return_null=1")


def status_kib(process, key):
    """A line of /proc/PID/status in KiB: VmHWM, the most that was ever resident; VmSize, the addresses in use."""
    with open(f"/proc/{process.child.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key + ":"))


def ask(member, line, answer):
    before = len(member.lines)
    member.say(line)
    return member.wait_for(f"^(?:{answer})", after=before)


class Memory(unittest.TestCase):
    def test_many_large_pushes_leave_no_more_than_the_formula_gives(self):
        """Pushes of 32 MiB over two ps, pulls between them; twice what the bound allows goes through each ps."""
        with Cluster(options=["--staging-max", "64M", "--sessions-max", "1", "--grpc-memory-max", "32M", "--calls-max", "256"]) as cluster:
            member = cluster.member()
            member.wait_for("^joined$")
            ask(member, "create w float32 8192 1024 2 adam", "created")
            for _ in range(4):
                ask(member, "flood w 1 8", "flooding")
                member.wait_for("^flooded$", after=len(member.lines) - 1)
                ask(member, "pull w", "pulled w .* same")
            code, text = cluster.sumac("stats", "--json", "--interval-ms", "10")
            self.assertEqual(code, 0, text)
            for process, ps in zip(cluster.ps, json.loads(text)["ps"]):
                memory = ps["memory"]
                self.assertEqual(ps["pushes"], 32)
                self.assertGreaterEqual(memory["state_bytes"], 3 * 16 * MIB)        # the value, m and v
                self.assertLess(memory["state_bytes"], 4 * 16 * MIB)
                self.assertLessEqual(status_kib(process, "VmHWM") * 1024, memory["bound_bytes"])
            ask(member, "leave done", "left")
            self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])


if __name__ == "__main__":
    unittest.main()
