#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A first worker in Python: create a variable, push to it a hundred times, pull it back, leave. What it needs is said in client.py.

    sumac run --ps 2 --workers 2 -- python3 first.py
"""
import array
import asyncio
import json
import os
import sys

os.environ.setdefault("GRPC_DNS_RESOLVER", "native")        # names are found as the system finds them
try:
    from client import Client, Failure
    from sumac.v1 import types_pb2 as types
    from sumac.v1.sessions_pb2 import TaskName
    from sumac.v1.variables_pb2 import CreateRequest
except ImportError as missing:
    sys.exit(f"{missing} (looked for by {sys.executable}): install the packages for this python, make the stubs and set PYTHONPATH, "
             "as the first lines of client.py say.")


async def work(client):
    w = types.Variable(
        name="w", data_type=types.DATA_TYPE_FLOAT64, shape=[4],
        partitioner=types.Partitioner(kind=types.Partitioner.KIND_FIXED_SHARDS, num_shards=len(client.addresses)),
        function=types.Function(function=types.UPDATE_FUNCTION_ASSIGN_ADD))     # what a ps does with what is pushed
    request = CreateRequest(session_id=client.session.session_id, variable=w)
    w = (await client.call(client.variables.Create, request)).variable          # who comes second is given the first one's
    values = array.array("d", [1, 2, 3, 4]).tobytes()
    pushes = [client.push(w, values) for _ in range(100)]       # several at a time, each on all ps or on none
    for refused in filter(None, await asyncio.gather(*pushes)):
        raise Failure(refused.reason, refused.message)
    # A pull reads each ps at one moment, and not all ps at the same: while others push, the shards may be of two versions.
    print("w is", *array.array("d", await client.pull(w)))


async def main(config):
    job = config["task"]["type"]        # a "master" is TensorFlow 1's name of the chief
    task = TaskName(job="chief" if job == "master" else job, index=config["task"]["index"])
    await Client(config["cluster"]["ps"]).run(task, work)


def configured():
    """TF_CONFIG. One that does not name the ps and this worker ends the process with 2: the configuration is to be mended first."""
    try:
        config = json.loads(os.environ["TF_CONFIG"])
        cluster, task = config["cluster"], config["task"]
        if not (isinstance(cluster["ps"], list) and cluster["ps"] and all(isinstance(address, str) for address in cluster["ps"])):
            missing = "it lists no ps"
        elif task["type"] not in ("chief", "master", "worker") or not isinstance(task["index"], int) or task["index"] < 0:
            missing = "its task is no chief and no worker"
        else:
            return config
    except (KeyError, TypeError, ValueError) as error:
        missing = f"{type(error).__name__}: {error}"
    print('TF_CONFIG is not set, or is not {"cluster": {"ps": […], "worker": […]}, "task": {"type": "worker", "index": 0}} in JSON '
          f"({missing}). On one machine: sumac run --ps 2 --workers 2 -- python3 {__file__}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    code, config = 0, configured()
    try:
        asyncio.run(main(config))
    except Failure as failure:
        reason, sentence = failure.args
        mend = 0 < reason < 32 or reason in (types.REASON_PROTOCOL_VERSION, types.REASON_WRONG_CLUSTER)
        code = 2 if mend else 138       # 128 and more: starting again may help
        print(sentence, file=sys.stderr)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
