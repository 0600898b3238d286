#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ask TensorFlow what the cases of a `program` file are to expect.

    tests/conformance/answer.py FILE.json > ANSWERS.json

FILE has cases of FORMAT.md's `program`, with or without expectations. Each call gets the `expect` or `error` that TensorFlow 2.21 answers
with, and the case the components of its variables. A case whose source is not "tensorflow" is copied as it is. Takes tensorflow-cpu 2.21. Cases of multi_worker run in as many processes, on loopback, with one replica each: TensorFlow has no more on CPUs.
"""
import json
import os
import socket
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
REPLICAS_MAX = 4
CODES = {"ValueError": "INVALID_ARGUMENT", "TypeError": "INVALID_ARGUMENT", "AssertionError": "INVALID_ARGUMENT",
         "InvalidArgumentError": "INVALID_ARGUMENT", "RuntimeError": "FAILED_PRECONDITION", "NotImplementedError": "UNIMPLEMENTED"}


def number(x):
    return x if not isinstance(x, float) or x - x == 0 else str(x)


class Asker:
    """One process with TensorFlow."""

    def __init__(self):
        import tensorflow as tf
        self.tf = tf
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * REPLICAS_MAX)
        self.strategy = None

    def strategy_of(self, given):
        """One for all cases: TensorFlow's collectives of a second one in a process collide with the first one's."""
        tf = self.tf
        if self.strategy is None:
            self.strategy = {
                "default": lambda: tf.distribute.get_strategy(),
                "one_device": lambda: tf.distribute.OneDeviceStrategy("cpu:0"),
                "mirrored": lambda: tf.distribute.MirroredStrategy([f"cpu:{i}" for i in range(given.get("replicas", 1))]),
                "multi_worker": lambda: tf.distribute.MultiWorkerMirroredStrategy()}[given["kind"]]()
        return self.strategy

    # ---- values

    def read(self, program, given):
        tf = self.tf
        if "result" in given:
            return program["results"][given["result"]]
        if "per_replica" in given:
            items = [self.read(program, item) for item in given["per_replica"]]
            return program["strategy"].experimental_distribute_values_from_function(lambda c: items[c.replica_id_in_sync_group])
        if "slices" in given:
            s = given["slices"]
            return tf.IndexedSlices(self.read(program, s["values"]), self.read(program, s["indices"]),
                                    tf.constant(s["dense_shape"], tf.int64))
        data = [float(x) if isinstance(x, str) else x for x in given["data"]]
        return tf.reshape(tf.constant(data, given["dtype"]), given["shape"])

    def write(self, value):
        tf = self.tf
        if value is None:
            return {"none": True}
        kind = type(value).__name__
        if kind == "PerReplica":
            return {"per_replica": [self.write(item) for item in value.values]}
        if kind == "Mirrored":
            items = [self.write(item) for item in value.values]
            return {"mirrored": items[0] if all(item == items[0] for item in items) else items}
        if isinstance(value, tuple):
            return {"tuple": [self.write(item) for item in value]}
        if isinstance(value, list):
            return {"list": [self.write(item) for item in value]}
        if isinstance(value, tf.IndexedSlices):
            return {"slices": {"values": self.write(value.values), "indices": self.write(value.indices),
                               "dense_shape": [int(x) for x in value.dense_shape]}}
        array = tf.convert_to_tensor(value)
        return {"dtype": array.dtype.name, "shape": list(array.shape), "data": [number(x) for x in array.numpy().ravel().tolist()]}

    # ---- calls

    def replica_function(self, call, variable):
        tf = self.tf

        def function(*args):
            x = args[0] if args else None
            context = tf.distribute.get_replica_context()
            i = context.replica_id_in_sync_group
            return {"same": lambda: x,
                    "all_reduce_sum": lambda: context.all_reduce("SUM", x),
                    "all_reduce_mean": lambda: context.all_reduce("MEAN", x),
                    "all_gather": lambda: context.all_gather(x, axis=0),
                    "read": lambda: variable.read_value(),
                    "assign_add": lambda: variable.assign_add(x),
                    "replica_id": lambda: tf.cast(i, tf.int32),
                    "num_replicas": lambda: tf.constant(context.num_replicas_in_sync),
                    "add_replica_id": lambda: x + tf.cast(i, x.dtype),
                    "pair": lambda: (x + 1, x - 1)}[call["fn"]]()
        return function

    @staticmethod
    def update_function(call):
        def function(variable, *args):
            fn = call["fn"]
            if fn == "none":
                return None
            if fn == "read":
                return variable.read_value()
            if fn == "same":
                return args[0]
            return getattr(variable, fn)(*args)
        return function

    def make(self, program, call):
        tf, strategy = self.tf, program["strategy"]
        variable = program["variables"].get(call.get("variable"))
        args = tuple(self.read(program, arg) for arg in call.get("args", []))
        value = self.read(program, call["value"]) if "value" in call else None
        axis = call.get("axis")
        what = call["call"]
        if what == "run":
            return strategy.run(self.replica_function(call, variable), args=args)
        if what == "reduce":
            return strategy.reduce(call["reduce_op"], value, axis=tuple(axis) if isinstance(axis, list) else axis)
        if what == "gather":
            return strategy.gather(value, axis)
        if what == "local_results":
            return strategy.experimental_local_results(value)
        if what == "values_from_function":
            return strategy.experimental_distribute_values_from_function(
                lambda c: tf.constant(c.replica_id_in_sync_group, tf.int32))
        if what == "update":
            return strategy.extended.update(variable, self.update_function(call), args=args, group=call.get("group", True))
        if what == "read":
            return variable.read_value()
        with strategy.scope():
            getattr(variable, what)(value)
        return variable.read_value()

    def create(self, program, given):
        tf = self.tf
        more = {key: getattr(kind, given[key]) for key, kind in
                (("synchronization", tf.VariableSynchronization), ("aggregation", tf.VariableAggregation)) if key in given}
        with program["strategy"].scope():
            return tf.Variable(self.read(program, given["initial"]), name=given["name"], **more)

    def components(self, program, variable):
        return [self.write(item) for item in program["strategy"].experimental_local_results(variable)]

    def answer(self, case):
        program = {"strategy": self.strategy_of(case["strategy"]), "results": {}, "variables": {}}
        for given in case.get("create", []):
            program["variables"][given["name"]] = self.create(program, given)
        for call in case["calls"]:
            call.pop("expect", None), call.pop("error", None)
            try:
                result = self.make(program, call)
            except Exception as error:  # whatever TensorFlow raises is the answer
                call["error"] = {"code": CODES[type(error).__name__]}
                continue
            if "as" in call:
                program["results"][call["as"]] = result
            call["expect"] = self.write(result)
        case["expect"] = {"components": {name: self.components(program, v) for name, v in program["variables"].items()}}
        return case


# ---- a process for each strategy, or several

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ask(cases, strategy):
    """What each worker answers to cases of one strategy."""
    workers = strategy.get("workers", 1)
    addresses = [f"127.0.0.1:{free_port()}" for _ in range(workers)]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(cases, file)
        file.flush()
        running = []
        for i in range(workers):
            cluster = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": i}}
            tf_config = {"TF_CONFIG": json.dumps(cluster)} if strategy["kind"] == "multi_worker" else {}
            running.append(subprocess.Popen([sys.executable, __file__, "--worker", file.name], stdout=subprocess.PIPE, text=True,
                                            env={**os.environ, **tf_config}))
        return [json.loads(process.communicate(timeout=300)[0]) for process in running]


def merge_value(values):
    """One expectation of those of all workers; {"workers": […]} where they differ and are no per_replica."""
    if all("per_replica" in value for value in values):
        return {"per_replica": [item for value in values for item in value["per_replica"]]}
    return values[0] if all(value == values[0] for value in values) else {"workers": values}


def merge(answers):
    case = answers[0]
    for i, call in enumerate(case["calls"]):
        if "expect" in call:
            call["expect"] = merge_value([answer["calls"][i]["expect"] for answer in answers])
    for name in case["expect"]["components"]:
        case["expect"]["components"][name] = [c for answer in answers for c in answer["expect"]["components"][name]]
    return case


def main():
    if sys.argv[1] == "--worker":
        with open(sys.argv[2], encoding="utf-8") as file:
            cases = json.load(file)
        asker = Asker()
        print(json.dumps([asker.answer(case) for case in cases]))
        return
    with open(sys.argv[1], encoding="utf-8") as file:
        questions = json.load(file)
    answered = {}
    asked = [case for case in questions["cases"] if case["source"] == "tensorflow"]
    for strategy in {json.dumps(case["strategy"]): case["strategy"] for case in asked}.values():
        mine = [case for case in asked if case["strategy"] == strategy]
        for answers in zip(*ask(mine, strategy)):
            answered[answers[0]["id"]] = merge(list(answers))
    print('{"format": 1, "about": %s, "cases": [' % json.dumps(questions["about"]))
    print(",\n".join(json.dumps(answered.get(case["id"], case)) for case in questions["cases"]))
    print("]}")


if __name__ == "__main__":
    main()
