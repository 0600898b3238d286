# SPDX-License-Identifier: Apache-2.0
"""`sumac devices` on machines with and without what GPUs need; tests/gpu/standins plays the driver and NCCL."""
import json
import os
import subprocess
import unittest

from cluster import PATIENCE_S, SUMAC

STANDINS = os.path.join(os.environ["SUMAC_BUILD"], "tests", "gpu", "standins")
HAS_GPUS = os.path.isdir(STANDINS)
NEEDED = json.loads(subprocess.run([SUMAC, "devices", "--json"], capture_output=True, check=True, timeout=PATIENCE_S,
                                   env={**os.environ, "LD_LIBRARY_PATH": STANDINS}).stdout).get("cuda")
# On the machine that this runs on there may be a driver or NCCL: no library is found where the tests do not want one.
NOWHERE = "/nowhere/libnccl.so.2"


def devices(*arguments, standins=True, **variables):
    """(exit code, standard output, standard error)"""
    outside = {name: value for name, value in os.environ.items() if name not in ("CUDA_VISIBLE_DEVICES", "SUMAC_NCCL_LIBRARY")}
    if standins:
        outside["LD_LIBRARY_PATH"] = STANDINS
    done = subprocess.run([SUMAC, "devices", *arguments], capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
                          env={**outside, **variables})
    return done.returncode, done.stdout, done.stderr


class Anywhere(unittest.TestCase):
    def test_the_cpu_is_always_there(self):
        code, output, _ = devices("--json", standins=False)
        self.assertEqual(code, 0)
        cpu = json.loads(output)["cpu"]
        self.assertEqual(cpu["cores"], len(os.sched_getaffinity(0)))
        self.assertEqual(cpu["memory_bytes"], os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))

    def test_the_cores_are_those_that_the_process_may_use(self):
        cores = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, cores)
        os.sched_setaffinity(0, {min(cores)})
        self.assertIn("  1 core ", devices(standins=False)[1])

    def test_no_cuda_library_is_linked(self):
        needed = subprocess.run(["readelf", "--dynamic", SUMAC], capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout
        self.assertIn("libgrpc", needed)
        self.assertNotRegex(needed, r"(?i)cuda|nccl")

    def test_a_word_that_means_nothing_is_refused(self):
        code, output, errors = devices("GPU:0")
        self.assertEqual((code, output), (2, ""))
        self.assertEqual(errors, "sumac devices: GPU:0 means nothing here; see `sumac devices --help`\n")

    @unittest.skipIf(HAS_GPUS, "this build has GPUs")
    def test_a_build_without_gpus_says_so(self):
        code, output, _ = devices()
        self.assertEqual(code, 0)
        self.assertIn("no GPU: this build has no GPUs: build it where the CUDA toolkit and NCCL's header are", output)


@unittest.skipUnless(HAS_GPUS, "this build has no GPUs")
class WithStandIns(unittest.TestCase):
    def lines(self, **variables):
        code, output, errors = devices(**variables)
        self.assertEqual((code, errors), (0, ""))
        titles, cpu, *rest = output.splitlines()
        self.assertEqual(titles.split(), ["DEVICE", "NAME", "MEMORY", "COMPUTE", "REACHES"])
        self.assertTrue(cpu.startswith("CPU "))
        return rest

    def test_two_gpus_are_listed_with_what_they_are(self):
        first, second, versions = self.lines()
        self.assertEqual(first.split("  ")[0:1] + first.split()[1:], ["GPU:0", "Stand-in", "0", "4.0G", "9.0", "GPU:1"])
        self.assertEqual(second.split(), ["GPU:1", "Stand-in", "1", "4.0G", "9.0", "GPU:0"])
        self.assertRegex(versions, rf"(^|, )CUDA {NEEDED}, NCCL 2\.\d+\.\d+$")

    def test_the_same_as_json(self):
        code, output, _ = devices("--json")
        self.assertEqual(code, 0)
        told = json.loads(output)
        self.assertEqual(told["gpus"][1], {"index": 1, "name": "Stand-in 1", "memory_bytes": 4 << 30, "compute_capability": "9.0",
                                           "reaches": [0]})
        self.assertEqual((told["cuda"], told["missing"]), (NEEDED, []))
        self.assertRegex(told["nccl"], r"^2\.\d+\.\d+$")
        self.assertNotIn("nccl", json.loads(devices("--json", SUMAC_NCCL_LIBRARY=NOWHERE)[1]))

    def test_only_gpus_that_reach_each_other_say_so(self):
        *gpus, _ = self.lines(SUMAC_STANDIN_DEVICES="3")
        self.assertEqual([line.split()[-1] for line in gpus], ["GPU:1", "GPU:0", "-"])

    def test_cuda_visible_devices_hides_and_orders_them(self):
        *gpus, _ = self.lines(SUMAC_STANDIN_DEVICES="4", CUDA_VISIBLE_DEVICES="3,1,2")
        self.assertEqual([line.split()[:3] for line in gpus],
                         [["GPU:0", "Stand-in", "3"], ["GPU:1", "Stand-in", "1"], ["GPU:2", "Stand-in", "2"]])
        self.assertEqual([line.split()[-1] for line in gpus], ["GPU:2", "-", "GPU:0"])

    def test_cuda_visible_devices_that_hides_all_is_named(self):
        for hidden in ("", "7"):
            with self.subTest(hidden=hidden):
                _, missing = self.lines(CUDA_VISIBLE_DEVICES=hidden)
                self.assertEqual(missing, f'no GPU: CUDA_VISIBLE_DEVICES is "{hidden}", and no GPU is left to be seen: unset it, '
                                          "or name GPUs that `nvidia-smi -L` lists")

    def test_a_driver_without_a_gpu_says_so(self):
        *_, missing = self.lines(SUMAC_STANDIN_DEVICES="0")
        self.assertEqual(missing, "no GPU: the NVIDIA driver here finds no GPU: `nvidia-smi` says which there are, and a container "
                                  "must be given them")

    def test_no_driver_is_told_with_the_remedy(self):
        code, output, _ = devices(LD_LIBRARY_PATH="/nowhere", SUMAC_NCCL_LIBRARY=NOWHERE)
        if "GPU:0" in output or "NVIDIA driver here finds" in output:
            self.skipTest("this machine has a driver")
        self.assertEqual(code, 0)
        self.assertRegex(output.splitlines()[-1],
                         r"^no GPU: there is no NVIDIA driver here \(libcuda.so.1: .*\): install one, or give the container the GPUs of "
                         r"its host$")

    def test_a_driver_that_is_too_old_is_told_with_both_versions(self):
        *_, missing = self.lines(SUMAC_STANDIN_VERSION="10020")
        self.assertRegex(missing, r"^no GPU: the NVIDIA driver here knows CUDA 10\.2, and this build needs one of CUDA \d+\.0 or later: "
                                  r"update the driver, or build with an older toolkit$")

    def test_a_driver_that_does_not_start_is_told_in_its_words(self):
        *_, missing = self.lines(SUMAC_STANDIN_FAIL="cuInit:1:803")
        self.assertEqual(missing, "no GPU: the NVIDIA driver here does not start (see `nvidia-smi`): "
                                  "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (as the test wants it)")

    def test_a_gpu_that_cannot_be_described_is_told_after_those_that_can(self):
        *rest, missing = self.lines(SUMAC_STANDIN_FAIL="cuDeviceGetName:2:999")
        self.assertEqual([line.split()[0] for line in rest if line.startswith("GPU")], ["GPU:0"])
        self.assertEqual(missing, "not every GPU: the driver does not describe every GPU: CUDA_ERROR_UNKNOWN (as the test wants it)")

    def test_two_gpus_without_nccl_are_told_what_to_do(self):
        *_, missing = self.lines(SUMAC_NCCL_LIBRARY=NOWHERE)
        self.assertRegex(missing, r"^no NCCL: SUMAC_NCCL_LIBRARY is no library that can be opened \(/nowhere/.*\): name NCCL's file, or "
                                  r"unset it$")

    def test_one_gpu_needs_no_nccl(self):
        *_, last = self.lines(SUMAC_NCCL_LIBRARY=NOWHERE, SUMAC_STANDIN_DEVICES="1")
        self.assertRegex(last, rf"CUDA {NEEDED}$")

    def test_nccl_may_be_a_file_that_is_named(self):
        *_, versions = self.lines(SUMAC_NCCL_LIBRARY=os.path.join(STANDINS, "libnccl.so.2"), SUMAC_STANDIN_NCCL_VERSION="22705")
        self.assertRegex(versions, r"NCCL 2\.27\.5$")

    def test_a_nccl_that_is_too_old_is_told_with_both_versions(self):
        for version, name in (("2708", "2.7.8"), ("21903", "2.19.3"), ("22702", "2.27.2")):
            with self.subTest(version=version):
                *_, missing = self.lines(SUMAC_STANDIN_NCCL_VERSION=version)
                self.assertEqual(missing, f"no NCCL: NCCL here is {name}, and several GPUs need 2.27.3 or later: update it, name "
                                          "another in SUMAC_NCCL_LIBRARY, or run one process for each GPU")
        *_, versions = self.lines(SUMAC_STANDIN_NCCL_VERSION="22703")
        self.assertRegex(versions, r"NCCL 2\.27\.3$")

    def test_communicators_that_block_are_refused_with_their_variable(self):
        *_, missing = self.lines(NCCL_COMM_BLOCKING="1")
        self.assertEqual(missing, "no NCCL: NCCL_COMM_BLOCKING is 1, and several GPUs need communicators that do not block: unset it, or "
                                  "run one process for each GPU")
        *_, versions = self.lines(NCCL_COMM_BLOCKING="0")
        self.assertNotIn("no NCCL", versions)


if __name__ == "__main__":
    unittest.main()
