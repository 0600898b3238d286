# SPDX-License-Identifier: Apache-2.0
"""deploy/systemd as systemd itself reads it."""
import os
import shutil
import subprocess
import tempfile
import unittest

from cluster import PATIENCE_S, SUMAC

UNIT = os.path.join(os.environ["SUMAC_SOURCE"], "deploy", "systemd", "sumac-ps@.service")


def settings():
    """What the unit sets, by name; a name has one value here."""
    with open(UNIT, encoding="utf-8") as file:
        pairs = [line.strip().split("=", 1) for line in file if "=" in line and not line.startswith("#")]
    return {name: value for name, value in pairs}


class Systemd(unittest.TestCase):
    def test_systemd_finds_nothing_wrong_with_the_unit(self):
        if shutil.which("systemd-analyze") is None:
            print("skipped: systemd-analyze is not installed")
            self.skipTest("systemd-analyze is not installed")
        with tempfile.TemporaryDirectory() as folder, open(UNIT, encoding="utf-8") as file:
            copy = os.path.join(folder, os.path.basename(UNIT))
            with open(copy, "w", encoding="utf-8") as changed:
                changed.write(file.read().replace("/usr/bin/sumac", SUMAC))     # it must be there
            done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, timeout=PATIENCE_S)
        said = [line for line in (done.stdout + done.stderr).splitlines() if "sumac" in line]
        self.assertEqual((done.returncode, said), (0, []))

    def test_a_ps_may_do_little_beside_its_work(self):
        """By systemd's own measure, of 10; 1.5 when this was written."""
        if shutil.which("systemd-analyze") is None:
            print("skipped: systemd-analyze is not installed")
            self.skipTest("systemd-analyze is not installed")
        done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--threshold=20", UNIT],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout[-200:] + done.stderr)
        self.assertIn("MemoryMax", settings())

    def test_a_ps_that_was_stopped_has_not_failed_and_one_whose_run_was_lost_is_started_again(self):
        """systemd counts death by SIGTERM as success, not the code 143."""
        unit = settings()
        self.assertEqual(unit["SuccessExitStatus"], "143")
        self.assertEqual(unit["RestartForceExitStatus"], "143")
        self.assertEqual((unit["Restart"], unit["RestartPreventExitStatus"]), ("on-failure", "1 2"))


if __name__ == "__main__":
    unittest.main()
