# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes against the fields of the Kubernetes and Kubeflow APIs that it uses.

The fields below are written from the API's reference (Kubernetes 1.31; training operator 1.9), with their types. What this sees: YAML
that is not YAML, a key twice, a field that is misspelt, in the wrong place or of the wrong type, one that is required and missing, names
that are no DNS labels, selectors that select nothing of the file. What it does not see: values that only a server refuses, and whether a
cluster has the controllers.
"""
import os
import re
import unittest

try:
    import yaml
except ImportError:
    yaml = None

FOLDER = os.path.join(os.environ["SUMAC_SOURCE"], "deploy", "kubernetes")
QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?")

# A type is a Python type, a set of values, a list of one type, a function that says what is wrong, or the fields of an object;
# a field that ends in ! is required. {"*": type} is a map of any keys.
LABELS = {"*": str}


def name(value):
    return None if isinstance(value, str) and re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", value) else "no DNS label"


def quantity(value):
    return None if QUANTITY.fullmatch(str(value)) else "no quantity"


def port(value):
    return None if isinstance(value, int) and 0 < value < 65536 else "no port"


def image(value):
    """Without a tag it is :latest, which is pulled each time."""
    return None if re.fullmatch(r"[a-z0-9./_-]+:(?!latest$)[\w.-]+", value) else "an image wants a tag other than latest"


METADATA = {"name!": name, "labels": LABELS}
SELECTOR = {"matchLabels!": LABELS}
QUANTITIES = {"cpu": quantity, "memory": quantity}
CONTAINER = {
    "name!": name, "image!": image, "imagePullPolicy": {"Always", "IfNotPresent", "Never"}, "command": [str], "args": [str],
    "env": [{"name!": str, "value": str, "valueFrom": {"configMapKeyRef": {"name!": name, "key!": str}}}],
    "ports": [{"name": name, "containerPort!": port}],
    "readinessProbe": {"grpc": {"port!": port}, "periodSeconds": int, "failureThreshold": int},
    "resources": {"requests": QUANTITIES, "limits": QUANTITIES},
}
POD = {
    "restartPolicy": {"Always", "OnFailure", "Never"}, "terminationGracePeriodSeconds": int, "subdomain": name,
    "containers!": [CONTAINER],
}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec!": POD}
FAILURE_RULE = {
    "action!": {"FailJob", "FailIndex", "Ignore", "Count"},
    "onExitCodes": {"containerName": name, "operator!": {"In", "NotIn"}, "values!": [int]},
    "onPodConditions": [{"type!": str, "status": {"True", "False", "Unknown"}}],
}
REPLICAS = {"replicas": int, "restartPolicy": {"Always", "OnFailure", "Never", "ExitCode"}, "template!": TEMPLATE}
OBJECTS = {
    ("v1", "ConfigMap"): {"metadata!": METADATA, "data": {"*": str}},
    ("v1", "Service"): {"metadata!": METADATA, "spec!": {
        "clusterIP": str, "publishNotReadyAddresses": bool, "selector": LABELS, "ports": [{"name": name, "port!": port}]}},
    ("apps/v1", "StatefulSet"): {"metadata!": METADATA, "spec!": {
        "serviceName!": name, "replicas": int, "podManagementPolicy": {"OrderedReady", "Parallel"}, "selector!": SELECTOR,
        "template!": TEMPLATE}},
    ("batch/v1", "Job"): {"metadata!": METADATA, "spec!": {
        "completions": int, "parallelism": int, "completionMode": {"NonIndexed", "Indexed"}, "backoffLimit": int,
        "backoffLimitPerIndex": int, "maxFailedIndexes": int, "podFailurePolicy": {"rules!": [FAILURE_RULE]}, "template!": TEMPLATE}},
    ("kubeflow.org/v1", "TFJob"): {"metadata!": METADATA, "spec!": {
        "successPolicy": {"", "AllWorkers"}, "enableDynamicWorker": bool,
        "runPolicy": {"cleanPodPolicy": {"All", "Running", "None"}, "backoffLimit": int, "ttlSecondsAfterFinished": int},
        "tfReplicaSpecs!": {"PS": REPLICAS, "Worker": REPLICAS, "Chief": REPLICAS, "Evaluator": REPLICAS}}},
}


def check(value, wanted, where):
    """What is wrong, each a line."""
    if isinstance(wanted, list):
        if not isinstance(value, list):
            return [f"{where}: a list is wanted"]
        return [line for i, item in enumerate(value) for line in check(item, wanted[0], f"{where}[{i}]")]
    if isinstance(wanted, dict):
        return check_object(value, wanted, where)
    if isinstance(wanted, set):
        return [] if value in wanted else [f"{where}: {value!r} is none of {sorted(wanted)}"]
    if isinstance(wanted, type):
        return [] if type(value) is wanted else [f"{where}: {value!r} is no {wanted.__name__}"]
    wrong = wanted(value)
    return [f"{where}: {value!r}: {wrong}"] if wrong else []


def check_object(value, wanted, where):
    if not isinstance(value, dict):
        return [f"{where}: an object is wanted"]
    types = {field.rstrip("!"): kind for field, kind in wanted.items()}
    lines = [f"{where}: {field[:-1]} is missing" for field in wanted if field.endswith("!") and field[:-1] not in value]
    for field, item in value.items():
        kind = types.get(field, types.get("*"))
        lines += [f"{where}: there is no field {field!r}"] if kind is None else check(item, kind, f"{where}.{field}")
    return lines


def check_document(document):
    key = (document.get("apiVersion"), document.get("kind"))
    if key not in OBJECTS:
        return [f"{key} is not known here"]
    return check(document, {"apiVersion!": str, "kind!": str, **OBJECTS[key]}, key[1])


def strict_loader():
    class Strict(yaml.SafeLoader):
        """A key that comes twice is an error, not the last one's."""

        def construct_mapping(self, node, deep=False):
            keys = [self.construct_object(key, deep) for key, _ in node.value]
            if len(set(keys)) != len(keys):
                raise yaml.YAMLError(f"a key twice in {keys} at {node.start_mark}")
            return super().construct_mapping(node, deep)
    return Strict


def documents(file_name):
    with open(os.path.join(FOLDER, file_name), encoding="utf-8") as file:
        return list(yaml.load_all(file, strict_loader()))       # safe: a SafeLoader


class Kubernetes(unittest.TestCase):
    def setUp(self):
        if yaml is None:
            print("skipped: python3-yaml is not installed")
            self.skipTest("python3-yaml is not installed")

    def kinds(self, file_name):
        return {document["kind"]: document for document in documents(file_name)}

    def test_every_field_is_one_of_the_api(self):
        for file_name in sorted(os.listdir(FOLDER)):
            for document in documents(file_name):
                with self.subTest(file_name, kind=document.get("kind")):
                    self.assertEqual(check_document(document), [])

    def test_what_is_wrong_is_seen(self):
        job = self.kinds("statefulsets.yaml")["Job"]
        job["spec"]["backofflimit"] = 4
        del job["spec"]["template"]["spec"]["containers"][0]["name"]
        job["spec"]["template"]["spec"]["containers"][0]["image"] = "sumac"
        self.assertEqual(check_document(job), [
            "Job.spec.template.spec.containers[0]: name is missing",
            "Job.spec.template.spec.containers[0].image: 'sumac': an image wants a tag other than latest",
            "Job.spec: there is no field 'backofflimit'"])

    def test_selectors_and_names_meet(self):
        kinds = self.kinds("statefulsets.yaml")
        ps, service = kinds["StatefulSet"], kinds["Service"]
        pods = ps["spec"]["template"]["metadata"]["labels"], kinds["Job"]["spec"]["template"]["metadata"]["labels"]
        self.assertLessEqual(ps["spec"]["selector"]["matchLabels"].items(), pods[0].items())
        for labels in pods:
            self.assertLessEqual(service["spec"]["selector"].items(), labels.items())
        self.assertEqual(ps["spec"]["serviceName"], service["metadata"]["name"])
        cluster = yaml.safe_load(kinds["ConfigMap"]["data"]["cluster"])
        self.assertEqual(cluster["ps"], [f"{ps['metadata']['name']}-{i}.{service['metadata']['name']}:2222"
                                         for i in range(ps["spec"]["replicas"])])
        self.assertEqual(len(cluster["worker"]), kinds["Job"]["spec"]["completions"])

    def test_the_tag_is_this_version(self):
        root = os.environ["SUMAC_SOURCE"]
        with open(os.path.join(root, "CMakeLists.txt"), encoding="utf-8") as lists:
            tag = "sumac:" + re.search(r"project\(sumac VERSION ([0-9.]+)", lists.read()).group(1)
        for path in ("Dockerfile", "kubernetes/statefulsets.yaml", "kubernetes/tfjob.yaml"):
            with open(os.path.join(root, "deploy", path), encoding="utf-8") as file:
                self.assertEqual(set(re.findall(r"\bsumac:[\w.]+", file.read())), {tag}, path)

    def test_exit_codes_are_read_as_they_are_meant(self):
        rules = self.kinds("statefulsets.yaml")["Job"]["spec"]["podFailurePolicy"]["rules"]
        self.assertEqual(rules[0], {"action": "FailJob",
                                    "onExitCodes": {"containerName": "worker", "operator": "In", "values": [1, 2]}})
        for role in self.kinds("tfjob.yaml")["TFJob"]["spec"]["tfReplicaSpecs"].values():
            self.assertEqual(role["restartPolicy"], "ExitCode")


if __name__ == "__main__":
    unittest.main()
