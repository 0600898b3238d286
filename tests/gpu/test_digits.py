# SPDX-License-Identifier: Apache-2.0
"""The digits on GPUs that are stand-ins: the real programs, whose losses are those on CPUs, and what they say of GPUs that are not there."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "process"))
from cluster import BUILD, SUMAC, Process  # pylint: disable=wrong-import-position

DIGITS = os.path.join(BUILD, "digits")
# The leak detector itself crashes at the end of one such program in a hundred. gpu/worker and gpu/strategy look for leaks.
os.environ.setdefault("LSAN_OPTIONS", "detect_leaks=0")


class Digits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.runtime = os.path.join(folder.name, "runtime")
        os.mkdir(self.runtime, 0o700)

    def run_digits(self, *arguments, steps=100, environment=None):
        """Its exit code, and what was said."""
        command = [SUMAC, "run", "--ps", "1", "--workers", "1", *arguments, "--", DIGITS, "--target", "0.5", "--steps", str(steps), "--json"]
        run = Process(command, {"XDG_RUNTIME_DIR": self.runtime, **(environment or {})}, stdin=subprocess.DEVNULL)
        self.addCleanup(run.kill)
        return run.wait(), run.text()

    def loss(self, *arguments, **options):
        code, said = self.run_digits("--synchronous", *arguments, **options)
        self.assertEqual(code, 0, said)
        return next(json.loads(line.split("| ", 1)[1])["loss"] for line in said.splitlines() if '"loss"' in line)

    def test_the_loss_is_that_of_as_many_replicas_on_cpus(self):
        for gpus, cpus in (("gpu:0", "cpu:1"), ("gpu:1,0", "cpu:2"), ("auto", "cpu:2")):
            with self.subTest(gpus=gpus):
                on_cpus, on_gpus = self.loss("--devices", cpus), self.loss("--devices", gpus)
                # A replica's loss is a sum of doubles of probabilities that have the same bits; NCCL may add two gradients in another order.
                self.assertAlmostEqual(on_gpus, on_cpus, delta=1e-6 * on_cpus)

    def test_gpus_that_cannot_be_had_end_the_program_with_2_and_the_remedy(self):
        for devices, environment, said in (
                ("gpu:2", {}, "there is no GPU:2: the program sees 2, from GPU:0 on (`sumac devices` lists them)"),
                ("gpu:0", {"CUDA_VISIBLE_DEVICES": "7"}, 'CUDA_VISIBLE_DEVICES is "7", and no GPU is left to be seen'),
                ("gpu:0", {"SUMAC_STANDIN_VERSION": "12040"}, "the NVIDIA driver here knows CUDA 12.4"),
                ("gpu:0,1", {"SUMAC_NCCL_LIBRARY": "/nowhere/libnccl.so.2"}, "SUMAC_NCCL_LIBRARY is no library that can be opened"),
                ("gpu:0,1", {"SUMAC_STANDIN_NCCL_VERSION": "21903"}, "NCCL here is 2.19.3, and several GPUs need 2.27.3 or later"),
                ("gpu:0,1", {"NCCL_COMM_BLOCKING": "1"}, "NCCL_COMM_BLOCKING is 1, and several GPUs need communicators that do not block"),
                ("gpu:0", {"SUMAC_STANDIN_MEMORY": "1000"}, "GPU:0 gives no memory for ")):
            with self.subTest(devices=devices, environment=environment):
                code, printed = self.run_digits("--devices", devices, environment=environment)
                self.assertEqual((code, said in printed), (2, True), printed)

    def test_without_a_gpu_auto_is_a_cpu(self):
        code, printed = self.run_digits(environment={"CUDA_VISIBLE_DEVICES": ""})
        self.assertEqual(code, 0, printed)

    def test_a_rank_that_fails_ends_the_worker_with_its_name(self):
        code, printed = self.run_digits("--devices", "gpu", environment={"SUMAC_STANDIN_NCCL": "break:1:5"})
        self.assertNotEqual(code, 0, printed)
        self.assertIn("failed at replica 1 (GPU:1): NCCL says", printed)


if __name__ == "__main__":
    unittest.main()
