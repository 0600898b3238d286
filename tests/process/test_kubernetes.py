# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes against the schemas of the Kubernetes API, as Debian's python3-kubernetes has them.

Its models carry every field of the API, its type and whether it is required. What is younger than the package (it is of Kubernetes 1.22)
is in YOUNGER, from the API's reference, and counts only where the package does not have it. It has no resources of others: TFJob's own
fields are in TF_JOB, from the training operator's reference (1.9), its pods are checked as all pods are. What this sees besides: YAML
that is not YAML, a key twice, values that no server takes, an image without a tag, selectors that select nothing of the file. What it
does not see: values that only a server refuses, and whether a cluster has the controllers.
"""
import copy
import os
import re
import unittest

from cluster import Cluster

try:
    import yaml
    from kubernetes import client as kubernetes
except ImportError as error:
    kubernetes, missing = None, error.name

FOLDER = os.path.join(os.environ["SUMAC_SOURCE"], "deploy", "kubernetes")

# Types are written as the package writes them. A field that ends in ! is required.
YOUNGER = {
    "V1Probe": {"grpc": "V1GRPCAction"},                        # 1.24
    "V1GRPCAction": {"port!": "int", "service": "str"},
    "V1JobSpec": {"podFailurePolicy": "V1PodFailurePolicy"},    # 1.26
    "V1PodFailurePolicy": {"rules!": "list[V1PodFailurePolicyRule]"},
    "V1PodFailurePolicyRule": {
        "action!": "str", "onExitCodes": "V1PodFailurePolicyOnExitCodesRequirement",
        "onPodConditions": "list[V1PodFailurePolicyOnPodConditionsPattern]"},
    "V1PodFailurePolicyOnExitCodesRequirement": {"containerName": "str", "operator!": "str", "values!": "list[int]"},
    "V1PodFailurePolicyOnPodConditionsPattern": {"type!": "str", "status!": "str"},
}
TF_JOB = {
    "TFJob": {"apiVersion": "str", "kind": "str", "metadata!": "V1ObjectMeta", "spec!": "TFJobSpec"},
    "TFJobSpec": {"successPolicy": "str", "enableDynamicWorker": "bool", "runPolicy": "RunPolicy", "tfReplicaSpecs!": "TFReplicaSpecs"},
    "RunPolicy": {"cleanPodPolicy": "str", "backoffLimit": "int", "ttlSecondsAfterFinished": "int"},
    "TFReplicaSpecs": dict.fromkeys(("PS", "Worker", "Chief", "Evaluator"), "ReplicaSpec"),
    "ReplicaSpec": {"replicas": "int", "restartPolicy": "str", "template!": "V1PodTemplateSpec"},
}
OTHERS = {("kubeflow.org", "TFJob"): "TFJob"}


def name(value):
    return None if re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", value) else "no DNS label"


def quantity(value):
    return None if re.fullmatch(r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?", value) else "no quantity"


def port(value):
    return None if 0 < value < 65536 else "no port"


def image(value):
    """Without a tag it is :latest, which is pulled each time."""
    return None if re.fullmatch(r"[a-z0-9./_-]+:(?!latest$)[\w.-]+", value) else "an image wants a tag other than latest"


# What the models do not say of values: by the field, in whatever object it is, or in one of them.
VALUES = {
    "name": name, "serviceName": name, "subdomain": name, "image": image, "port": port, "containerPort": port,
    "cpu": quantity, "memory": quantity,
    "imagePullPolicy": {"Always", "IfNotPresent", "Never"}, "restartPolicy": {"Always", "OnFailure", "Never"},
    "podManagementPolicy": {"OrderedReady", "Parallel"}, "completionMode": {"NonIndexed", "Indexed"},
    "action": {"FailJob", "FailIndex", "Ignore", "Count"}, "operator": {"In", "NotIn"}, "status": {"True", "False", "Unknown"},
    "successPolicy": {"", "AllWorkers"}, "cleanPodPolicy": {"All", "Running", "None"},
    ("ReplicaSpec", "restartPolicy"): {"Always", "OnFailure", "Never", "ExitCode"}, ("V1EnvVar", "name"): None,
}


def is_required(model, attribute):
    """The package's models refuse None where something is required."""
    empty = model.__new__(model)
    empty.local_vars_configuration = kubernetes.Configuration()
    try:
        setattr(empty, attribute, None)
    except ValueError:
        return True
    return False


def fields(model_name):
    """Of a model: each field's type, and whether it is required."""
    found = {}
    for described in (YOUNGER, TF_JOB):
        for field, kind in described.get(model_name, {}).items():
            found[field.rstrip("!")] = kind, field.endswith("!")
    model = getattr(kubernetes, model_name, None)
    if model is not None:
        for attribute, field in model.attribute_map.items():
            found[field] = model.openapi_types[attribute], is_required(model, attribute)
    return found


def check(value, kind, where):
    """What is wrong, each a line."""
    if kind.startswith("list["):
        if not isinstance(value, list):
            return [f"{where}: a list is wanted"]
        return [line for i, item in enumerate(value) for line in check(item, kind[5:-1], f"{where}[{i}]")]
    if kind.startswith("dict("):
        if not isinstance(value, dict):
            return [f"{where}: a map is wanted"]
        return [line for key, item in value.items() for line in check_field(None, key, item, kind[5:-1].split(", ")[1], where)]
    types = {"str": str, "int": int, "bool": bool, "float": float, "object": object}
    if kind in types:
        return [] if types[kind] is object or type(value) is types[kind] else [f"{where}: {value!r} is no {kind}"]
    return check_object(value, kind, where)


def check_field(model_name, field, value, kind, where):
    lines = check(value, kind, f"{where}.{field}")
    rule = VALUES.get((model_name, field), VALUES.get(field))
    if lines or rule is None or not isinstance(value, (str, int)):
        return lines
    if isinstance(rule, set):
        return [] if value in rule else [f"{where}.{field}: {value!r} is none of {sorted(rule)}"]
    wrong = rule(value)
    return [f"{where}.{field}: {value!r}: {wrong}"] if wrong else []


def check_object(value, model_name, where):
    known = fields(model_name)
    if not known:
        return [f"{where}: there is no schema of {model_name}"]
    if not isinstance(value, dict):
        return [f"{where}: an object is wanted"]
    lines = [f"{where}: {field} is missing" for field, (_, required) in known.items() if required and field not in value]
    for field, item in value.items():
        if field not in known:
            lines.append(f"{where}: there is no field {field!r}")
        else:
            lines += check_field(model_name, field, item, known[field][0], where)
    return lines


def model_of(api_version, kind):
    """The name of the model; None: the API has no such kind in this group and version."""
    group, _, version = api_version.rpartition("/")
    if (group, kind) in OTHERS:
        return OTHERS[group, kind]
    api = getattr(kubernetes, f"{(group.partition('.')[0] or 'core').capitalize()}{version.capitalize()}Api", None)
    method = "create_namespaced_" + re.sub(r"(?<!^)([A-Z])", r"_\1", kind).lower()
    return f"{version.capitalize()}{kind}" if hasattr(api, method) else None


def check_document(document):
    api_version, kind = document.get("apiVersion"), document.get("kind")
    model_name = model_of(str(api_version), str(kind))
    if model_name is None:
        return [f"there is no kind {kind!r} in {api_version!r}"]
    if not isinstance(document.get("metadata"), dict) or "name" not in document["metadata"]:
        return [f"{kind}: metadata.name is missing"]
    return check_object(document, model_name, kind)


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


def described(value, kind, path=()):
    """Every field of a document that a schema describes: its path, type and whether it is required."""
    if kind.startswith("list["):
        for i, item in enumerate(value):
            yield from described(item, kind[5:-1], (*path, i))
    elif isinstance(value, dict) and not kind.startswith("dict("):
        for field, item in value.items():
            of, required = fields(kind)[field]
            yield (*path, field), of, required
            yield from described(item, of, (*path, field))


def changed(document, path, change):
    """A copy of it, in which something was done to the field at a path."""
    document = copy.deepcopy(document)
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    change(holder, path[-1])
    return document


def misspelt(holder, field):
    holder[field + "s"] = holder.pop(field)


def another_type(holder, field):
    holder[field] = 7 if isinstance(holder[field], (str, list, dict, bool)) else "seven"


class Kubernetes(unittest.TestCase):
    def setUp(self):
        if kubernetes is None:
            print(f"skipped: {missing} is not installed (python3-yaml, python3-kubernetes)")
            self.skipTest(f"{missing} is not installed")

    def objects(self, file_name):
        return {f"{document['kind']} {document['metadata']['name']}": document for document in documents(file_name)}

    def test_every_field_is_one_of_the_api(self):
        for file_name in sorted(os.listdir(FOLDER)):
            for document in documents(file_name):
                with self.subTest(file_name, kind=document.get("kind")):
                    self.assertEqual(check_document(document), [])

    def test_what_is_wrong_is_said(self):
        job = self.objects("jobs.yaml")["Job digits-worker"]
        job["spec"]["backofflimit"] = 4
        job["spec"]["completions"] = "2"
        del job["spec"]["template"]["spec"]["containers"][0]["name"]
        job["spec"]["template"]["spec"]["containers"][0]["image"] = "sumac"
        self.assertEqual(sorted(check_document(job)), [
            "Job.spec.completions: '2' is no int",
            "Job.spec.template.spec.containers[0].image: 'sumac': an image wants a tag other than latest",
            "Job.spec.template.spec.containers[0]: name is missing",
            "Job.spec: there is no field 'backofflimit'"])
        self.assertEqual(check_document({"apiVersion": "batch/v1", "kind": "StatefulSet"}), ["there is no kind 'StatefulSet' in 'batch/v1'"])

    def test_each_field_that_is_misspelt_of_another_type_or_missing_is_seen(self):
        seen = 0
        for file_name in sorted(os.listdir(FOLDER)):
            for document in documents(file_name):
                for path, kind, required in described(document, model_of(document["apiVersion"], document["kind"])):
                    with self.subTest(file_name, kind=document["kind"], path=path):
                        self.assertNotEqual(check_document(changed(document, path, misspelt)), [])
                        self.assertTrue(kind == "object" or check_document(changed(document, path, another_type)))
                        self.assertTrue(not required or check_document(changed(document, path, dict.pop)))
                        seen += 1
        self.assertGreater(seen, 100)

    def test_selectors_and_names_meet(self):
        objects = self.objects("jobs.yaml")
        service, policy = objects["Service digits"], objects["NetworkPolicy digits-ps"]["spec"]
        cluster = yaml.safe_load(objects["ConfigMap digits"]["data"]["cluster"])
        for role in ("ps", "worker"):
            job = objects[f"Job digits-{role}"]["spec"]
            pod = job["template"]
            self.assertLessEqual(service["spec"]["selector"].items(), pod["metadata"]["labels"].items())
            self.assertLessEqual(policy["ingress"][0]["from"][0]["podSelector"]["matchLabels"].items(), pod["metadata"]["labels"].items())
            self.assertEqual(policy["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items(), role == "ps")
            self.assertEqual((job["completionMode"], job["parallelism"]), ("Indexed", job["completions"]))
            self.assertEqual(pod["spec"]["subdomain"], service["metadata"]["name"])
            self.assertEqual(cluster[role], [f"digits-{role}-{i}.digits:2222" for i in range(job["completions"])])

    def test_the_tag_is_this_version(self):
        root = os.environ["SUMAC_SOURCE"]
        with open(os.path.join(root, "CMakeLists.txt"), encoding="utf-8") as lists:
            tag = "sumac:" + re.search(r"project\(sumac VERSION ([0-9.]+)", lists.read()).group(1)
        for path in ("Dockerfile", "compose.yaml", "README.md", "kubernetes/jobs.yaml", "kubernetes/tfjob.yaml"):
            with open(os.path.join(root, "deploy", path), encoding="utf-8") as file:
                self.assertEqual(set(re.findall(r"\bsumac:[\w.]+", file.read())), {tag}, path)

    def test_exit_codes_are_read_as_they_are_meant(self):
        for role in ("ps", "worker"):
            job = self.objects("jobs.yaml")[f"Job digits-{role}"]["spec"]
            self.assertEqual(job["podFailurePolicy"]["rules"][0], {
                "action": "FailJob", "onExitCodes": {"containerName": role, "operator": "In", "values": [1, 2]}})
            self.assertEqual(job["template"]["spec"]["containers"][0]["name"], role)
            self.assertEqual(job["template"]["spec"]["restartPolicy"], "Never")         # the policy's condition
        for role in self.objects("tfjob.yaml")["TFJob digits"]["spec"]["tfReplicaSpecs"].values():
            self.assertEqual(role["restartPolicy"], "ExitCode")

    def test_all_processes_of_a_job_name_the_same_run(self):
        jobs = self.objects("jobs.yaml")
        replicas = self.objects("tfjob.yaml")["TFJob digits"]["spec"]["tfReplicaSpecs"]
        for templates in ([jobs[f"Job digits-{role}"]["spec"]["template"] for role in ("ps", "worker")],
                          [replica["template"] for replica in replicas.values()]):
            runs = [variable for template in templates for variable in template["spec"]["containers"][0]["env"]
                    if variable["name"] == "SUMAC_RUN"]
            self.assertEqual(len(runs), len(templates))
            self.assertEqual(runs, [runs[0]] * len(runs))

    def test_pods_may_run_where_root_may_not(self):
        """By number: a kubelet refuses to start an image whose USER is a name where runAsNonRoot is said."""
        with open(os.path.join(FOLDER, "..", "Dockerfile"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"(?m)^USER [1-9][0-9]*:[1-9][0-9]*$")
        for role in ("ps", "worker"):
            pod = self.objects("jobs.yaml")[f"Job digits-{role}"]["spec"]["template"]["spec"]
            self.assertTrue(pod["securityContext"]["runAsNonRoot"])

    def test_a_worker_that_is_started_after_the_run_ends_with_138(self):
        """A Job does not start its pods again when they have ended with 0: the late worker finds no ps, and no empty model."""
        ps_kinds = {kind for kind, name in (key.split() for key in self.objects("jobs.yaml")) if name == "digits-ps"}
        options = ["--lease-ms", "1000", "--rejoin-ms", "100"]
        with Cluster(ps=1, workers=2, options=options) as cluster:      # given: one worker is done, the other was killed
            first, second = cluster.member(0), cluster.member(1)
            for member in (first, second):
                member.wait_for("^joined$")
            second.kill()
            first.say("leave done")
            self.assertEqual(cluster.ps[0].wait(), 0, cluster.ps[0].text())

            if "StatefulSet" in ps_kinds:                               # when: the scheduler does what it does
                cluster.start_ps(0).wait_for("listens on")
            late = cluster.member(1, timeout_ms=2000)

            self.assertEqual(late.wait(), 138, late.text())             # then
            late.wait_for(r"ps 0 at 127\.0\.0\.1:\d+ did not appear within .*Connection refused")


if __name__ == "__main__":
    unittest.main()
