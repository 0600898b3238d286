# SPDX-License-Identifier: Apache-2.0
"""README's commands, as they are written, from the root of a clone; those of deploy/README.md that need no other program."""
import glob
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

from cluster import PATIENCE_S, Cluster, Process
from namespaces import Network, why_not
from readme import SOURCE, block, blocks, clone_into

# A text of each block, and the test that runs it.
TRIED = {
    "./deploy/quickstart": "by .ci/run, which runs both",
    "export PATH=": "Commands.test_a_worker_is_run",
    "-- digits --seconds": "Commands.test_a_run_is_looked_at",
    "sumac stats --watch": "Commands.test_a_run_is_looked_at",
    '"worker": ["h1:2223"': "Hosts",
}


class Commands(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        clone_into(self.root)

    def start(self, line):
        """In a shell of its own, with what README exports."""
        script = f"cd {self.root}\n{block('export PATH=')[0]}\nset -o pipefail\n{line}"
        process = Process(["bash", "-c", script], {"XDG_RUNTIME_DIR": self.root, "TF_CONFIG": ""}, subprocess.DEVNULL)
        self.addCleanup(process.kill)
        return process

    def run_line(self, line):
        process = self.start(line)
        code = process.wait()
        self.assertEqual(code, 0, f"{line}\n{process.text()}")
        return process.text()

    def test_every_block_of_commands_is_tried(self):
        for text in blocks():
            with self.subTest(text):
                self.assertEqual(sum(has in text for has in TRIED), 1)
        for line in block("./deploy/quickstart"):
            self.assertTrue(os.access(os.path.join(self.root, line.split()[0]), os.X_OK), line)

    def test_every_link_leads_to_a_file(self):
        pages = [os.path.join(SOURCE, name) for name in ("README.md", "SECURITY.md", "CHANGELOG.md")]
        pages += glob.glob(os.path.join(SOURCE, "docs", "**", "*.md"), recursive=True)
        for page in pages:
            with open(page, encoding="utf-8") as file:
                for target in re.findall(r"\]\((?!https?:)([^)#]+)", file.read()):
                    self.assertTrue(os.path.exists(os.path.join(os.path.dirname(page), target)), f"{page}: {target}")

    def test_a_run_is_looked_at(self):
        run = self.start("exec " + block("-- digits --seconds")[0])
        until = time.monotonic() + PATIENCE_S
        while self.start("sumac get W2 b2").wait() != 0:        # no worker has made them yet
            self.assertLess(time.monotonic(), until, run.text())
        for line in block("sumac stats --watch"):
            with self.subTest(line):
                if "--watch" in line:
                    watch = self.start(f"exec {line}")
                    watch.wait_for("2 workers: .* steps/s")
                    watch.signal(signal.SIGINT)
                    watch.wait()
                else:
                    self.assertNotEqual(self.run_line(line), "" if "-o " not in line else None)
        self.assertEqual(sorted(name for name in os.listdir(self.root) if name.startswith("w.") or name.startswith("w1.")),
                         ["w.npz", "w1.npy"])
        run.signal(signal.SIGINT)                               # Ctrl-C
        run.wait()
        run.wait_for("ps 0: run ends with code")

    def test_a_worker_is_run(self):
        for line in block("export PATH=")[1:]:
            with self.subTest(line):
                self.assertIn("| y = 3.00 x + 2.00", self.run_line(line))
        for worker in range(2):
            self.assertTrue(os.path.getsize(os.path.join(self.root, f"steps.worker-{worker}.json")))

    def test_one_program_has_all_strategies(self):
        losses = [[float(loss) for loss in re.findall(r"step \d+: loss (\S+)", self.run_line(line))]
                  for line in block("SUMAC_REPLICAS=4 logistic", "docs/guides/workers.md")]
        self.assertEqual([len(each) for each in losses], [4, 4, 4, 8])
        for others in losses[1:3]:
            for loss, other in zip(losses[0], others):
                self.assertAlmostEqual(loss, other, delta=2e-6)     # as of test_strategies.py

    def test_the_worker_is_the_example(self):
        """README leaves out the arithmetic, and changes comments."""
        with open(os.path.join(SOURCE, "examples", "line.c"), encoding="utf-8") as file:
            example = file.read()
        shown = "".join(blocks(language="c"))
        squeezed = re.sub(r"\s", "", re.sub(r"(?s)/\*.*?\*/", "", example))
        for line in re.sub(r"(?s)/\*.*?\*/", "", shown).splitlines():
            self.assertIn(re.sub(r"\s", "", line), squeezed)

    def test_values_are_saved_and_restored_by_hand(self):
        save, *restore = block("sumac get '*'", "deploy/README.md")
        with Cluster(ps=2, workers=1) as cluster:
            member = cluster.member()
            member.wait_for("^joined$")

            def ask(line, answer):
                before = len(member.lines)
                member.say(line)
                return member.wait_for(f"^{answer}", after=before).group()

            def run(lines):
                script = "\n".join([f"cd {self.root}", block("export PATH=")[0], "set -eo pipefail", *lines])
                process = cluster.add(Process(["bash", "-c", script], cluster.environment("worker", 0)))
                self.assertEqual(process.wait(), 0, process.text())

            for name in ("w", "layer/b"):
                ask(f"create {name} float32 4 2 2 assign_add", "created")
                ask(f"push {name} 3", "pushed")
            run([save])
            ask("push w 4", "pushed")
            ask("push layer/b 5", "pushed")
            run(restore)
            for name in ("w", "layer/b"):
                self.assertEqual(ask(f"pull {name}", "pulled .*"), f"pulled {name} 3 3 same")


class Tutorial(unittest.TestCase):
    def test_every_command_runs_as_it_is_written(self):
        quickstart, *pages = blocks("docs/tutorial.md")
        self.assertEqual(quickstart, "./deploy/quickstart\n")      # .ci/run runs it
        with tempfile.TemporaryDirectory() as root:
            clone_into(root)
            (program,) = blocks("docs/tutorial.md", language="c")
            with open(os.path.join(root, "curve.c"), "w", encoding="utf-8") as file:
                file.write(program)

            def start(script):
                process = Process(["bash", "-c", f"cd {root}\nset -eo pipefail\n{script}"],
                                  {"XDG_RUNTIME_DIR": root, "TF_CONFIG": ""}, subprocess.DEVNULL)
                self.addCleanup(process.kill)
                return process

            exports = next(line for line in pages[0].splitlines() if line.startswith("export "))
            lasting = None
            for page in pages:
                if "Ctrl-C" in page:
                    lasting = start(f"{exports}\nexec {page}")
                    until = time.monotonic() + PATIENCE_S
                    while start(f"{exports}\nsumac get model").wait() != 0:    # no worker has made it yet
                        self.assertLess(time.monotonic(), until, lasting.text())
                    continue
                process = start(f"{exports}\n{page}")
                self.assertEqual(process.wait(), 0, f"{page}\n{process.text()}")
                if "./curve" in page:
                    process.wait_for(r"y = 3\.00 x² \+ -2\.00 x \+ 1\.00")
            lasting.signal(signal.SIGINT)
            lasting.wait()
            lasting.wait_for("ps 0: run ends with code")


class Hosts(unittest.TestCase):
    """Two ps and three workers on three hosts with names of their own."""

    def setUp(self):
        reason = why_not()
        if reason is not None:
            print(f"skipped: no hosts of their own: {reason}")
            self.skipTest(reason)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        clone_into(self.root)
        addresses = {f"h{number}": f"10.78.0.{number}" for number in (1, 2, 3)}
        try:
            self.network = Network(addresses)
        except (AssertionError, subprocess.CalledProcessError) as error:
            print(f"skipped: no network between hosts of their own: {error}")
            self.skipTest(str(error))
        self.addCleanup(self.network.close)
        names = os.path.join(self.root, "hosts")
        with open(names, "w", encoding="ascii") as file:
            file.write("127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in addresses.items()))
        for host in self.network.hosts.values():
            host.run("mount", "--bind", names, "/etc/hosts")
            host.run("mount", "--bind", "/dev/null", "/etc/resolv.conf")

    def start(self, line):
        host = re.search(r"# on (h\d)$", line).group(1)
        script = f"cd {self.root}\n{block('export PATH=')[0]}\n{block('# on each host')[0]}\n{line}"
        return self.network.hosts[host].start("bash", "-c", script)

    def test_the_commands_train_in_any_order(self):
        lines = block("# on each host")[1:]
        self.assertEqual(len(lines), 5)
        for order in (lines, lines[::-1]):
            processes = [self.start(line) for line in order]
            for line, process in zip(order, processes):
                with self.subTest(line, reversed=order is not lines):
                    self.assertEqual(process.wait(), 0, process.text())
                    if '"worker\\"' in line:
                        process.wait_for(r"^y = 3\.00 x \+ 2\.00$")


if __name__ == "__main__":
    unittest.main()
