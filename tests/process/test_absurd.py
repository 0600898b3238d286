# SPDX-License-Identifier: Apache-2.0
"""The C interface called wrongly: every public function, every pointer NULL, every number absurd."""
import glob
import os
import re
import unittest

from cluster import BUILD, Cluster, Process

SOURCE = os.environ["SUMAC_SOURCE"]


def public_functions():
    """What the public headers declare."""
    names = set()
    for header in glob.glob(f"{SOURCE}/lib/*/sumac/*.h") + glob.glob(f"{SOURCE}/worker/sumac/*.h"):
        with open(header, encoding="utf-8") as file:
            names.update(re.findall(r"^SUMAC_API[^;(]*?\b(sumac_\w+)\(", file.read(), flags=re.M))
    return names


class Absurd(unittest.TestCase):
    def test_every_public_function_refuses_what_makes_no_sense(self):
        with Cluster(options=["--rejoin-ms", "60000"]) as cluster:
            program = cluster.add(Process([f"{BUILD}/absurd"], cluster.environment("worker", 0)))
            code = program.wait()
            wrong = [f"{program.lines[i - 1]}: {line}" for i, line in enumerate(program.lines) if "WRONG" in line]
            self.assertEqual(wrong, [])
            self.assertEqual(code, 0, program.text()[-1000:])
            tried = {line.split(":")[0] for line in program.lines}
            self.assertEqual(public_functions() - tried, set())
            self.assertGreater(len(public_functions()), 40)
            self.assertEqual([ps.wait() for ps in cluster.ps], [0, 0])


if __name__ == "__main__":
    unittest.main()
