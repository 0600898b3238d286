# SPDX-License-Identifier: Apache-2.0
"""deploy/compose.yaml: its services' own commands, on loopback. No Docker runs here: what a key means to it is read, not tried."""
import json
import os
import unittest

from cluster import BUILD, SUMAC, Process, free_ports

try:
    import yaml
except ImportError:
    yaml = None

COMPOSE = os.path.join(os.environ["SUMAC_SOURCE"], "deploy", "compose.yaml")
PROGRAMS = {"sumac": SUMAC, "digits": os.path.join(BUILD, "digits")}


class Compose(unittest.TestCase):
    def setUp(self):
        if yaml is None:
            print("skipped: python3-yaml is not installed")
            self.skipTest("python3-yaml is not installed")
        with open(COMPOSE, encoding="utf-8") as file:
            self.services = yaml.safe_load(file)["services"]

    def test_all_services_name_the_same_cluster_and_each_is_one_of_its_tasks(self):
        clusters = [json.loads(service["environment"]["TF_CONFIG"])["cluster"] for service in self.services.values()]
        self.assertEqual(clusters, clusters[:1] * len(clusters))
        addresses = [address for job in clusters[0].values() for address in job]
        self.assertEqual(sorted(addresses), sorted(f"{name}:2222" for name in self.services))

    def test_the_services_train_the_digits_and_end(self):
        ports = dict(zip(self.services, free_ports(len(self.services))))
        processes = {}
        for name, service in self.services.items():
            config = service["environment"]["TF_CONFIG"]
            for other, port in ports.items():
                config = config.replace(f"{other}:2222", f"127.0.0.1:{port}")
            program, *words = [*service.get("entrypoint", ["sumac"]), *service.get("command", [])]      # the image's entry point
            processes[name] = Process([PROGRAMS[program], *words], {"TF_CONFIG": config})
            self.addCleanup(processes[name].kill)
        for name, process in processes.items():
            self.assertEqual(process.wait(), 0, f"{name}: {process.text()}")
        processes["worker-0"].wait_for(r"held-back rows right")


if __name__ == "__main__":
    unittest.main()
