"""A catalogue of more than one answer, and names that are hard to print: read by Python, by the C client, by the commands."""
import json
import subprocess
import unittest

import grpc

from cluster import PATIENCE_S, SUMAC, Cluster
from wire import DEADLINE_S, Client, commit, floats, part, variables_pb2

SHARDS = 4096       # the most that a variable may have: four such variables are more than one answer
VARIABLES = 7
ANSWER_BYTES_MAX = 1 << 20


def sumac(*arguments):
    done = subprocess.run([SUMAC, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


class Catalogue(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(ps=2, workers=1)
        cls.client = Client(cls.cluster.addresses())
        cls.names = [f"v{number}" for number in range(VARIABLES)]
        for name in cls.names:
            cls.client.create(name, [SHARDS], shards=SHARDS)
        cls.ps = ("--ps", cls.cluster.addresses()[0])

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.cluster.stop()

    def test_pages_have_every_variable_once_and_end_at_about_1_mib(self):
        for ps in self.client.ps:
            pages = list(ps.pages())
            self.assertGreater(len(pages), 1)
            for page in pages:
                self.assertLessEqual(page.ByteSize(), ANSWER_BYTES_MAX)
            self.assertEqual([variable.name for page in pages for variable in page.variables], self.names)

    def test_ls_goes_through_all_pages(self):
        code, output, errors = sumac("ls", "--json", *self.ps)
        self.assertEqual((code, errors), (0, ""))
        listed = json.loads(output)["variables"]
        self.assertEqual([variable["name"] for variable in listed], self.names)
        for variable in listed:     # each shard was found at the ps that holds it
            self.assertEqual([shard["version"] for shard in variable["shards"]], [0] * SHARDS)

    def test_ls_of_more_names_than_fit_in_one_answer(self):
        names = self.names[::-1]
        code, output, errors = sumac("ls", "--json", *names, *self.ps)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual([variable["name"] for variable in json.loads(output)["variables"]], names)

    def test_get_finds_the_last_one(self):
        code, output, errors = sumac("get", self.names[-1], "--slice", "4094:", "--json", *self.ps)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(json.loads(output)["values"], [0, 0])

    def test_a_name_that_is_said_1500_times_is_refused(self):
        for count in (2, 1000, 1500, 200_000):
            with self.assertRaises(grpc.RpcError) as raised:
                self.client.ps[1].variables.List(variables_pb2.ListRequest(names=["v0"] * count), timeout=DEADLINE_S)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn("twice" if count <= 1000 else "1000 are the most", raised.exception.details())


if __name__ == "__main__":
    unittest.main()
