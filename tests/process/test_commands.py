# SPDX-License-Identifier: Apache-2.0
"""`sumac ls`, `get` and `stats` beside a live cluster of two ps, and how they find it."""
import http.server
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import threading
import unittest

import numpy

from cluster import BUILD, GONE, PATIENCE_S, SUMAC, Cluster, Process, answered, free_ports
from wire import Client, types_pb2

ROWS, COLUMNS = 6, 4


def sumac(*arguments, environment=None):
    """(exit code, standard output, standard error); of a command that every ps is to answer."""
    return answered(lambda: sumac_once(*arguments, environment=environment))


def sumac_once(*arguments, environment=None):
    outside = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    done = subprocess.run([SUMAC, *arguments], capture_output=True, text=True, timeout=PATIENCE_S,
                          env={**outside, **(environment or {})}, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


class Reading(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(ps=2, workers=1)
        cls.member = cls.cluster.member()
        cls.member.wait_for("joined")
        cls.member.say(f"create w float32 {ROWS} {COLUMNS} 2 assign_add")
        cls.member.wait_for("created w")
        for name in ("layer1/a", "layer1/b/c", "star*"):
            cls.member.say(f"create {name} float32 2 2 1 assign_add")
            cls.member.wait_for(f"created {re.escape(name)}")
        for count, value in enumerate(("1.5", "2")):
            after = len(cls.member.lines)
            cls.member.say(f"push w {value}")
            cls.member.wait_for("^pushed", after=after)
        cls.ps = ("--ps", cls.cluster.addresses()[1])

    @classmethod
    def tearDownClass(cls):
        cls.cluster.stop()

    @staticmethod
    def cells(line):
        return re.split("  +", line.strip())

    def test_ls_has_a_line_for_each_variable_and_their_sums(self):
        code, output, _ = sumac("ls", *self.ps)
        self.assertEqual(code, 0)
        titles, *lines, total = output.splitlines()
        self.assertEqual(self.cells(titles), ["NAME", "DTYPE", "SHAPE", "AGGREGATION", "FUNCTION", "VERSION", "BYTES", "PS"])
        self.assertIn(["w", "float32", "[6, 4]", "NONE", "assign_add", "2", "96"], [self.cells(line)[:7] for line in lines])
        self.assertEqual(len(lines), 4)
        self.assertEqual(total, "4 variables, 36 elements, 144 bytes")

    def test_ls_has_a_line_for_each_shard_if_asked(self):
        code, output, _ = sumac("ls", "w", "--shards", *self.ps)
        self.assertEqual(code, 0)
        titles, *lines, _ = [self.cells(line) for line in output.splitlines()]
        self.assertEqual(titles[-3:], ["PS", "ROWS", "LAST WORKER"])
        self.assertEqual(lines[0][:7], ["w", "float32", "[6, 4]", "NONE", "assign_add", "2", "48"])
        self.assertEqual([line[8:] for line in lines], [["0:3", "worker 0"], ["3:6", "worker 0"]])
        self.assertEqual(sorted(line[7] for line in lines), ["0", "1"])
        _, whole, _ = [self.cells(line) for line in sumac("ls", "layer1/a", "--shards", *self.ps)[1].splitlines()]
        self.assertEqual(whole[8:], ["all", "-"])       # it is in one shard, and nobody has pushed to it

    def test_ls_takes_patterns_and_names_together(self):
        for words, names in ((("layer1/*",), ["layer1/a", "layer1/b/c"]), (("*c", "w"), ["w", "layer1/b/c"]),
                             (("layer1/?",), ["layer1/a"]), (("w", "w"), ["w"]), (("w*", "w"), ["w"]), (("[lw]*",), ["w", "layer1/a", "layer1/b/c"]),
                             (("star*", "w"), ["w", "star*"])):
            with self.subTest(words=words):
                code, output, errors = sumac("ls", *words, *self.ps)
                self.assertEqual(code, 0, errors)
                self.assertEqual([self.cells(line)[0] for line in output.splitlines()[1:-1]], names)

    def test_a_pattern_that_names_nothing_is_said(self):
        code, output, errors = sumac("ls", "w", "no*such", *self.ps)
        self.assertEqual((code, output), (2, ""))
        self.assertIn("no variable matches no*such", errors)

    def test_ls_as_json_has_the_same(self):
        code, output, _ = sumac("ls", "w", "--json", *self.ps)
        self.assertEqual(code, 0)
        document = json.loads(output)
        (variable,) = document["variables"]
        self.assertEqual(document["total"], {"variables": 1, "elements": 24, "bytes": 96})
        self.assertEqual(document["missing"], [])
        self.assertEqual((variable["name"], variable["dtype"], variable["shape"]), ("w", "float32", [ROWS, COLUMNS]))
        self.assertEqual(variable["function"]["name"], "assign_add")
        self.assertEqual([shard["version"] for shard in variable["shards"]], [2, 2])

    def test_get_prints_what_numpy_prints(self):
        code, output, _ = sumac("get", "w", *self.ps)
        values = numpy.full((ROWS, COLUMNS), 3.5, numpy.float32)
        self.assertEqual((code, output), (0, f"w  float32  [{ROWS}, {COLUMNS}]\n{numpy.array2string(values)}\n"))

    def test_get_of_a_slice_over_both_shards(self):
        code, output, _ = sumac("get", "w", "--slice", "2:-2", "--json", *self.ps)
        document = json.loads(output)
        self.assertEqual((code, document["shape"]), (0, [2, COLUMNS]))
        self.assertEqual(document["values"], [[3.5] * COLUMNS] * 2)

    def test_get_writes_a_file_that_numpy_reads(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "w.npy")
            code, output, errors = sumac("get", "w", "-o", path, *self.ps)
            self.assertEqual((code, output), (0, ""), errors)
            values = numpy.load(path)
        self.assertEqual((values.dtype, values.shape), (numpy.float32, (ROWS, COLUMNS)))
        self.assertTrue((values == 3.5).all())

    def test_stats_count_pushes_and_bound_the_memory(self):
        code, output, _ = sumac("stats", "--json", "--interval-ms", "10", *self.ps)
        self.assertEqual(code, 0)
        document = json.loads(output)
        self.assertEqual([ps["name"] for ps in document["ps"]], ["ps 0", "ps 1"])
        for ps in document["ps"]:
            memory = ps["memory"]
            self.assertEqual(ps["pushes"], 2)
            self.assertEqual(memory["bound_bytes"], memory["base_bytes"] + memory["state_bytes"] + memory["view_bytes_max"]
                             + memory["staging_bytes_max"] + memory["pulls_bytes_max"] + memory["collective_bytes_max"]
                             + memory["sessions_bytes_max"]
                             + memory["connections_bytes_max"] + memory["calls_bytes_max"] + memory["unread_answers_bytes_max"]
                             + memory["step_bytes_max"] + memory["grpc_memory_bytes_max"])
            self.assertLessEqual(memory["state_bytes"], memory["state_bytes_max"])
            self.assertLessEqual(memory["resident_bytes"], memory["bound_bytes"])
        (worker,) = [client for client in document["clients"] if client["name"] == "worker 0"]
        self.assertEqual((worker["pushes"], worker["push_bytes"]), (4, 2 * ROWS * COLUMNS * 4))
        self.assertEqual(worker["state"], "open")

    def test_stats_print_tables(self):
        code, output, _ = sumac("stats", "--interval-ms", "10", *self.ps)
        self.assertEqual(code, 0)
        for start in ("PS ", "ps 0 ", "ps 1 ", "CLIENT ", "worker 0 ", "MEMORY "):
            self.assertTrue(any(line.startswith(start) for line in output.splitlines()), start)

    def test_an_unknown_variable_is_named(self):
        for command in ("ls", "get"):
            code, _, errors = sumac(command, "nope", *self.ps)
            self.assertEqual(code, 2)
            self.assertIn("no variable is named nope; ", errors)
        code, _, errors = sumac("ls", "w[0:2]", *self.ps)
        self.assertEqual(code, 2)
        self.assertIn("no variable is named w[0:2]; did you mean w?\n", errors)
        self.assertIn("no variable is named layer1; did you mean layer1/a or layer1/b/c?\n", sumac("ls", "layer1", *self.ps)[2])

    def test_where_there_are_no_variables_yet_that_is_said(self):
        with Cluster(ps=2, workers=1) as cluster:
            for arguments in (("ls", "w"), ("get", "w"), ("get", "w[0:2]"), ("ls", "w*")):
                code, text = cluster.sumac(*arguments)
                self.assertEqual(code, 2, text)
                self.assertRegex(text, r"no variable (is named|matches) w\*?: there are no variables yet")

    def test_slices_that_are_none(self):
        for wrong in ("1", "a:b", "4:4", "100:"):
            code, _, errors = sumac("get", "w", "--slice", wrong, *self.ps)
            self.assertEqual(code, 2, wrong)
            self.assertIn(wrong, errors)

    def test_a_file_that_cannot_be_written_is_named(self):
        code, _, errors = sumac("get", "w", "-o", "/nonexistent/w.npy", *self.ps)
        self.assertNotEqual(code, 0)
        self.assertIn("/nonexistent/w.npy", errors)

    def test_tf_config_finds_the_cluster(self):
        code, output, _ = sumac("ls", environment=self.cluster.environment("worker", 0))
        self.assertEqual(code, 0)
        self.assertIn("assign_add", output)

    def test_an_address_where_nobody_is(self):
        code, _, errors = sumac_once("ls", "--ps", "127.0.0.1:1")
        self.assertGreaterEqual(code, 128)
        self.assertIn("127.0.0.1:1", errors)

    def test_an_address_where_a_web_server_is(self):
        with http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            code, _, errors = sumac_once("stats", "--ps", f"127.0.0.1:{server.server_port}")
            server.shutdown()
        self.assertEqual(code, 138)
        self.assertIn("another program listens there: it does not speak HTTP/2", errors)


class Staleness(unittest.TestCase):
    def test_it_counts_the_updates_between_a_pull_and_the_push_that_was_computed_from_it(self):
        with Cluster(ps=2, workers=2) as cluster:
            slow, fast = cluster.member(0), cluster.member(1)
            self.ask(slow, "create w float32 4 2 2 assign_add", "created w")
            for member, line in ((slow, "push w 1"), (slow, "pull w"), (fast, "pull w"), (fast, "push w 1"), (fast, "push w 1"),
                                 (slow, "push w 1")):
                self.ask(member, line, "pushed|pulled w")
            code, output, _ = sumac("stats", "--json", "--interval-ms", "10", "--ps", cluster.addresses()[0])
        self.assertEqual(code, 0)
        means = {client["name"]: client["staleness"]["mean"] for client in json.loads(output)["clients"]}
        # slow pulled version 1 and pushed to version 3: 2. fast pushed to versions 1 and 2, its own in between counted: (0 + 1) / 2.
        self.assertEqual(means, {"worker 0": 2.0, "worker 1": 0.5})

    @staticmethod
    def ask(member, line, answer):
        after = len(member.lines)
        member.say(line)
        member.wait_for(f"^({answer})", after=after)


class Finding(unittest.TestCase):
    """The runs of `sumac run` on this machine, in a folder of this test's own."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.environment = {"XDG_RUNTIME_DIR": self.folder.name}
        self.runs = []

    def tearDown(self):
        for run in self.runs:
            run.signal(2)
            run.wait()
            run.kill()
        self.folder.cleanup()

    def start(self):
        outside = {"XDG_RUNTIME_DIR": self.folder.name, "TF_CONFIG": ""}
        run = Process([SUMAC, "run", "--ps", "2", "--", os.path.join(BUILD, "digits"), "--seconds", "600"], outside,
                      stdin=subprocess.DEVNULL)
        self.runs.append(run)
        run.wait_for(r"worker 0 \| step")
        return run

    def test_an_address_that_a_record_gave_is_said_to_be_of_that_run(self):
        """Another network namespace has such runs: their records are found, and their ps are not."""
        with open("/proc/self/stat", encoding="utf-8") as file:
            started = int(file.read().rsplit(") ", 1)[1].split()[19])
        address = f"127.0.0.1:{free_ports(1)[0]}"
        os.mkdir(os.path.join(self.folder.name, "sumac"), 0o700)
        with open(os.path.join(self.folder.name, "sumac", f"run-{os.getpid()}.json"), "w", encoding="utf-8") as file:
            json.dump({"pid": os.getpid(), "started": started, "ps": [address], "program": "./digits"}, file)
        code, _, errors = sumac_once("ls", environment=self.environment)
        self.assertEqual(code, 138, errors)
        self.assertRegex(errors, f"^sumac ls: no ps answers at {address}: {GONE}: the run may be over, or not begun; check the address; "
                                 f"`sumac run` of ./digits, process {os.getpid()}, gave that address\n$")

    def test_the_one_run_is_found(self):
        run = self.start()
        code, output, errors = sumac("ls", environment=self.environment)
        self.assertEqual(code, 0, errors)
        self.assertIn("adam", output)
        code, output, errors = sumac("stats", "--json", "--interval-ms", "10", environment=self.environment)
        self.assertEqual(code, 0, errors)
        with open(os.path.join(self.folder.name, "sumac", f"run-{run.child.pid}.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["ps"], [ps["address"] for ps in json.loads(output)["ps"]])

    def test_a_run_that_was_found_without_ps_is_named_and_standard_output_stays_as_it_was(self):
        run = self.start()
        program = f"{os.path.join(BUILD, 'digits')} --seconds 600"
        line = rf"run of {re.escape(program)} \(pid {run.child.pid}\), (ps \d) at (127\.0\.0\.1:\d+), up (\d+ s|\d+ min)"

        for arguments in (("ls", "done"), ("ls", "done", "--json"), ("get", "done"), ("get", "done", "--json")):
            code, output, errors = sumac(*arguments, environment=self.environment)
            self.assertEqual(code, 0, errors)
            address = re.fullmatch(f"{line}\n", errors).group(2)
            quiet = sumac(*arguments, "--ps", address, environment=self.environment)
            self.assertEqual((quiet[0], quiet[2]), (0, ""))
            if arguments[0] == "get":
                self.assertEqual(quiet[1], output)
        listed = json.loads(sumac("ls", "done", "--json", environment=self.environment)[1])["run"]
        self.assertEqual((listed["program"], listed["pid"], listed["user"]), (program, run.child.pid, os.geteuid()))
        self.assertRegex(listed["name"], "^([0-9a-f]{16})(?!\\1)[0-9a-f]{16}$")
        code, _, errors = sumac("functions", "of-nobody", "sgd", environment=self.environment)
        self.assertEqual(code, 2)
        self.assertRegex(errors, f"^{line}\n")
        stats = json.loads(sumac("stats", "--json", "--interval-ms", "1000", environment=self.environment)[1])
        self.assertGreater(sum(ps["pushes_per_s"] for ps in stats["ps"]), 0)

        code, output, errors = sumac("stats", "--interval-ms", "10", environment=self.environment)
        self.assertEqual((code, errors), (0, ""))
        self.assertRegex(output.splitlines()[0], f"^{line}$")
        code, output, errors = sumac("stats", "--json", "--interval-ms", "10", environment=self.environment)
        self.assertEqual((code, errors, json.loads(output)["run"]["pid"]), (0, "", run.child.pid))

    def test_functions_asks_the_run_for_a_name_that_is_not_built_in(self):
        code, _, errors = sumac("functions", "nudge", environment=self.environment)
        self.assertEqual(code, 2)
        self.assertIn("a run's own functions are left out: you have no `sumac run` on this machine; name a ps with --ps", errors)
        self.assertIn("there is no update function nudge; `sumac functions` lists them", errors)
        self.start()
        text = os.path.join(self.folder.name, "nudge.txt")
        with open(text, "w", encoding="ascii") as file:
            file.write("value = value - 0.1 * sign(g)")
        self.assertEqual(sumac("define", "nudge", text, environment=self.environment)[0], 0)

        code, output, errors = sumac("functions", "nudge", environment=self.environment)

        self.assertEqual(code, 0, errors)
        self.assertIn("value = value - 0.1 * sign(g)", output)
        self.assertEqual(sumac("functions", "sgd", environment=self.environment)[2], "")

    def test_functions_lists_what_is_built_in_and_fails_as_the_ps_that_does_not_answer(self):
        address = f"127.0.0.1:{free_ports(1)[0]}"
        named = {**self.environment, "TF_CONFIG": json.dumps({"cluster": {"ps": [address]}})}
        for words, environment in ((("--ps", address), self.environment), ((), named), (("sgd", "nudge"), named)):
            with self.subTest(words=words):
                code, output, errors = sumac_once("functions", *words, environment=environment)
                self.assertEqual(code, 138, errors)
                self.assertIn("sgd\n", output)
                self.assertRegex(errors, f"^sumac functions: a run's own functions are left out: no ps answers at {address}: [^\n]*\n$")

    def test_of_several_each_is_listed(self):
        self.start()
        self.start()
        code, _, errors = sumac("ls", environment=self.environment)
        self.assertEqual(code, 2)
        self.assertIn("2 runs", errors)
        for run in self.runs:
            self.assertIn(f"process {run.child.pid}", errors)

    def test_no_run_says_what_to_do(self):
        code, _, errors = sumac("ls", environment=self.environment)
        self.assertEqual(code, 2)
        self.assertIn("--ps HOST:PORT", errors)

    def test_a_run_of_another_user_is_found_by_ps_only(self):
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            print("skipped: only root may start a command as another user, with setpriv")
            self.skipTest("no other user")
        run = self.start()
        with open(os.path.join(self.folder.name, "sumac", f"run-{run.child.pid}.json"), encoding="utf-8") as file:
            address = json.load(file)["ps"][0]
        other = shutil.copy(SUMAC, os.path.join(self.folder.name, "command"))     # where that user may execute it
        os.chmod(self.folder.name, 0o755)
        environment = {name: value for name, value in os.environ.items() if name not in ("XDG_RUNTIME_DIR", "TF_CONFIG")}

        def attempt(*words):
            done = subprocess.run(["setpriv", "--reuid", "65533", "--regid", "65533", "--clear-groups", other, *words], env=environment,
                                  cwd="/", capture_output=True, text=True, timeout=PATIENCE_S)
            return done.returncode, done.stdout + done.stderr

        self.assertEqual(attempt("ls"), (2, "sumac ls: you have no `sumac run` on this machine; name a ps with --ps HOST:PORT (for "
                                            "another user's run, too), set TF_CONFIG, or start one here with `sumac run`\n"))
        code, said = attempt("ls", "--ps", address)
        self.assertEqual(code, 0, said)
        self.assertIn("adam", said)

    def test_a_run_that_was_killed_is_not_found(self):
        run = self.start()
        run.signal(9)
        run.wait()
        code, _, errors = sumac("ls", environment=self.environment)
        self.assertEqual(code, 2)
        self.assertIn("you have no `sumac run` on this machine; name a ps with --ps HOST:PORT (for another user's run, too), set TF_CONFIG", errors)

    def test_a_folder_that_others_may_open_is_refused(self):
        folder = os.path.join(self.folder.name, "sumac")
        os.mkdir(folder)
        os.chmod(folder, 0o755)
        code, _, errors = sumac("ls", environment=self.environment)
        self.assertNotEqual(code, 0)
        self.assertIn(folder, errors)


def commands():
    """As `sumac --help` lists them."""
    listed = sumac("--help")[1].split("Commands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in listed.split("\n")]


class Words(unittest.TestCase):
    def test_every_command_has_help_with_examples(self):
        for command in commands():
            code, output, _ = sumac(command, "--help")
            self.assertEqual(code, 0)
            self.assertIn("Examples:", output)
            self.assertNotIn(" \n", output)
            self.assertIn(f"sumac {command}", output)

    def test_the_help_lists_the_commands_and_exit_codes(self):
        code, output, _ = sumac("--help")
        self.assertEqual(code, 0)
        for word in ("run", "ps", "ls", "get", "stats", "Exit codes"):
            self.assertIn(word, output)
        with open(os.path.join(os.environ["SUMAC_SOURCE"], "docs", "reference", "exit_codes.md"), encoding="utf-8") as page:
            codes = re.findall(r"\d+", " ".join(re.findall(r"(?m)^\| ([\d, ]+)[^|]*\| ", page.read())))
        self.assertIn("226", codes)
        self.assertEqual(set(codes) - set(re.findall(r"\d+", output.split("Exit codes:")[1])), set())
        self.assertEqual([line for line in output.split("\n") if len(line) > 80], [])

    def test_what_options_do_stands_in_one_column_of_the_help(self):
        for command in commands():
            options = [line for line in sumac(command, "--help")[1].split("\n") if line.startswith("  --")]
            self.assertEqual([line for line in options if "  " in line[2:] and not re.match(r"  --.{22} \S", line)], [], command)

    def test_the_help_fits_and_fills_a_hundred_columns(self):
        for command in commands():
            lines = sumac(command, "--help")[1].split("\n")
            self.assertEqual([line for line in lines if len(line) > 100 or line.endswith(" ")], [], command)
            about = "\n".join(lines).split("\n\n", 2)[2].split("\nOptions:")[0].split("Which ps, and where:")[0].split("\n")
            early = [line for line, then in zip(about, about[1:]) if line and then and len(line) + 1 + len(then.split()[0]) <= 100]
            self.assertEqual(early, [], command)

    def test_the_help_of_a_ps_has_its_options_in_groups(self):
        titles = re.findall(r"^(\w.*):$", sumac("ps", "--help")[1], re.M)
        self.assertEqual(titles, ["Which ps, and where", "Memory and how many may come", "Patience", "Synchronous steps: what ps 0 is given counts", "Examples"])

    def test_functions_are_those_that_a_ps_applies(self):
        """And their defaults those of a variable that was created without any."""
        code, output, _ = sumac("functions", "--json")
        self.assertEqual(code, 0)
        functions = {function["name"]: function for function in json.loads(output)}
        with Cluster(ps=1, workers=1) as cluster:
            client = Client(cluster.addresses())
            for name, function in functions.items():
                client.create(name, [4], shards=1, function=types_pb2.UpdateFunction.Value("UPDATE_FUNCTION_" + name.upper()))
            code, output = cluster.sumac("ls", "--json")
            self.assertEqual(code, 0, output)
            for variable in json.loads(output)["variables"]:
                said = {name: one["default"] for name, one in functions[variable["name"]]["hyperparameters"].items()}
                self.assertEqual(variable["function"], {"name": variable["name"], **said})
            client.close()

    def test_one_function_is_shown_alone_and_a_misspelt_one_corrected(self):
        code, output, _ = sumac("functions", "adam")
        self.assertEqual(code, 0)
        self.assertIn("beta_1", output)
        self.assertNotIn("nesterov", output)
        self.assertIn("\n  slots: rms, momentum, mean_gradient (with centered) (zeros at first)\n", sumac("functions", "rmsprop")[1])
        self.assertIn("\n  slots: accumulator (initial_accumulator_value at first), linear\n", sumac("functions", "ftrl")[1])
        code, _, errors = sumac("functions", "adan")
        self.assertEqual(code, 2)
        self.assertIn("did you mean adam?", errors)

    def test_each_manual_page_has_every_option_of_its_command(self):
        self.assertIn("sumac\\-ps(1)", sumac("man")[1])
        for command in commands():
            code, page, _ = sumac("man", command)
            self.assertEqual(code, 0)
            self.assertTrue(page.startswith(f'.TH "SUMAC-{command.upper()}" 1 '))
            self.assertIn(f".SH NAME\nsumac\\-{command} \\- ", page)
            self.assertEqual(["\n.SS Patience\n" in page, "\n.SS " in page], [command == "ps"] * 2)    # others have no groups
            options = re.findall(r"^  (--[\w-]+)", sumac(command, "--help")[1], re.M)
            self.assertIn("--help", options)
            for option in options:
                self.assertIn(option.replace("-", "\\-") + "\\fR", page)
            self.assertRegex(page, r"\A((\.(TH|SH|SS|TP|B|I|nf|fi)\b|[^.'\n]).*\n|\n)+\Z")     # roff hides other lines
        for words, said in ((["nothing"], "there is no command nothing; `sumac --help` lists them"),
                            (["stas"], "there is no command stas; did you mean `sumac man stats`?"),
                            (["ps", "run"], "name one command; `sumac --help` lists them")):
            code, _, errors = sumac("man", *words)
            self.assertEqual((code, errors), (2, f"sumac man: {said}\n"))
        self.assertEqual(sumac("man", "sumac-ps"), sumac("man", "ps"))
        for name in ("TF_CONFIG", "SUMAC_REPLICAS", "SUMAC_DEVICES", "SUMAC_PROGRESS"):
            self.assertIn(f".TP\n.B {name}\n", sumac("man")[1])

    def completed(self, *words):
        """What bash would offer for the last word."""
        script = sumac("completion", "bash")[1] + (
            f"\nCOMP_WORDS=({' '.join(shlex.quote(word) for word in ('sumac', *words))}); COMP_CWORD={len(words)}; _sumac; "
            'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes_commands_options_and_files(self):
        self.assertEqual(self.completed("st"), ["stats"])
        self.assertIn("ps", self.completed(""))
        self.assertEqual(self.completed("ps", "--sta"), ["--staging-max", "--state-max"])
        self.assertEqual(self.completed("ps", "--port", ""), [])
        self.assertEqual(self.completed("functions", "assign"), ["assign", "assign_add", "assign_sub"])
        for words in (("functions",), ("update", "w")):
            self.assertEqual(self.completed(*words, "adam"), ["adam", "adamw", "adamax"])
        for command in ("man", "help"):
            self.assertEqual(self.completed(command, "st"), ["stats"])
        self.assertEqual(self.completed("completion", ""), ["bash", "--help"])
        self.assertIn("/etc/passwd", self.completed("get", "--output", "/etc/pass"))
        self.assertIn("/etc/passwd", self.completed("define", "lion", "/etc/pass"))
        self.assertIn("/bin/sh", self.completed("run", "--", "/bin/s"))
        self.assertIn("--workers", self.completed("run", "--"))
        code, _, errors = sumac("completion", "tcsh")
        self.assertEqual(code, 2)
        self.assertIn("say for which shell: sumac completion bash", errors)
        code, _, errors = sumac("completion", "zsh")
        self.assertEqual(code, 2)
        self.assertIn("autoload bashcompinit && bashcompinit; source <(sumac completion bash)", errors)

    def test_what_cannot_be_printed_is_no_success(self):
        for command in ("--help", "--version", "functions"):
            with open("/dev/full", "w") as full:
                done = subprocess.run([SUMAC, command], stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
            self.assertEqual((done.returncode, done.stderr.count("cannot be written: No space left on device\n")), (1, 1))

    def test_the_version(self):
        self.assertRegex(sumac("--version")[1], r"^sumac \d+\.\d+\.\d+\n$")

    def test_a_misspelt_option_is_corrected(self):
        code, _, errors = sumac("ls", "--jsn")
        self.assertEqual(code, 2)
        self.assertIn("did you mean --json?", errors)

    def test_an_option_of_another_command_is_said_to_be_its(self):
        for words, said in (
                (["run", "--quorum", "3", "--", "true"], "--quorum; `sumac ps` has it: --ps-options '--quorum 3'"),
                (["run", "--quorum=3", "--", "true"], "--quorum; `sumac ps` has it: --ps-options '--quorum 3'"),
                (["run", "--quorum", "--", "true"], "--quorum; `sumac ps` has it: --ps-options '--quorum K'"),
                (["run", "--port", "1", "--", "true"], "--port; `sumac ps` has it"),
                (["ps", "--workers", "2"], "--workers; `sumac run` has it"),
                (["ps", "--sessions", "3"], "--sessions; did you mean --sessions-max?"),
                (["ps", "--ps", "h:1"], "--ps; `sumac run` has it"),
                (["stats", "--interval", "1"], "--interval; did you mean --interval-ms?"),
                (["ls", "--shard"], "--shard; did you mean --shards?")):
            code, _, errors = sumac(*words)
            self.assertEqual((code, errors), (2, f"sumac {words[0]}: unknown option {said}\n"))

    def test_a_misspelt_command_is_corrected(self):
        code, _, errors = sumac("stas")
        self.assertEqual(code, 2)
        self.assertIn("did you mean `sumac stats`?", errors)

    def test_help_says_of_what_a_bound_of_memory_is(self):
        """As test_stats_count_pushes_and_bound_the_memory reckons it: of the state in use, where a ps's own bound has state-max."""
        for command, said in (("stats", "BASE + state USED + all MAX but state's"), ("ps", "variables with their slots (state-max)"),
                              ("ps", "as BOUND their sum with the variables that exist now")):
            self.assertIn(said, " ".join(sumac(command, "--help")[1].split()))

    def test_help_and_a_command_is_that_commands_help(self):
        self.assertEqual(sumac("help", "stats"), sumac("stats", "--help"))
        self.assertEqual(sumac("help", "help"), sumac("--help"))
        for word, said in (("stas", "there is no command stas; did you mean `sumac stats`?"),
                           ("nope", "there is no command nope; `sumac --help` lists them")):
            code, output, errors = sumac("help", word)
            self.assertEqual((code, output), (2, ""))
            self.assertIn(said, errors)

    def test_a_port_that_is_none_is_named(self):
        for port in ("0", "65536", "http", ""):
            code, _, errors = sumac("ls", "--ps", f"localhost:{port}")
            self.assertEqual(code, 2)
            self.assertIn(f"not localhost:{port}: its port is no number from 1 to 65535", errors)

    def test_a_url_is_no_address(self):
        for url in ("http://127.0.0.1:5", "dns:///127.0.0.1:5", "/127.0.0.1:5"):
            code, _, errors = sumac("ls", "--ps", url)
            self.assertEqual(code, 2)
            self.assertEqual(errors, f"sumac ls: --ps wants HOST:PORT, not {url}: "
                                     "leave out what is before the host, and every /\n")

    def test_a_word_that_stats_does_not_take_is_named(self):
        self.assertEqual(sumac("stats", "w"), (2, "", "sumac stats: w means nothing here; see `sumac stats --help`\n"))

    def test_rates_of_no_time_are_refused(self):
        code, _, errors = sumac("stats", "--interval-ms", "0")
        self.assertEqual(code, 2)
        self.assertIn("--interval-ms wants a whole number of milliseconds, 1 to 4294967295, not 0", errors)

    def test_an_index_alone_makes_no_cluster(self):
        code, _, errors = sumac("ps", "--index", "0")
        self.assertEqual(code, 2)
        self.assertIn("no cluster is configured: set TF_CONFIG", errors)
        for config in ("{}", '{"cluster": {}}'):
            code, _, errors = sumac("ps", environment={"TF_CONFIG": config})
            self.assertEqual(code, 2)
            self.assertIn('TF_CONFIG has no "cluster", or an empty one: add "cluster": ', errors)

    def test_a_misspelt_job_is_corrected_and_one_of_another_name_is_nobodys(self):
        for jobs, job, meant in (((), "wroker", "worker"), ((), "workers", "worker"), ((), "WORKER", "worker"), (("worker",), "chef", "chief"),
                                 (("worker",), "cheif", "chief"), (("worker",), "cheifs", "chief")):
            with self.subTest(job=job):
                code, _, errors = self.ps_beside(*jobs, job)
                self.assertEqual((code, errors), (2, f"sumac ps: TF_CONFIG has a job {job}, and no job {meant}: did you mean {meant}?\n"))
        for jobs in (("worker",), ("chief",), ("evaluator",), ("master",), ("tpu_worker",), ("validator",), ("tester",), ("router",),
                     ("worker", "walker"), ("worker", "worker2"), ("chief", "walker"), ("worker", "thief")):
            with self.subTest(jobs=jobs):
                code, _, errors = self.ps_beside(*jobs)
                self.assertEqual(code, 226, errors)

    def ps_beside(self, *jobs):
        """What comes of a ps in a cluster with these jobs, too, if its port is somebody else's: 226 where nothing is wrong before."""
        cluster = {"ps": ["127.0.0.1:7"], **{job: [f"127.0.0.1:{index}"] for index, job in enumerate(jobs, 8)}}
        config = {"cluster": cluster, "task": {"type": "ps", "index": 0}}
        with socket.create_server(("127.0.0.1", 0)) as taken:
            return sumac("ps", "--bind", "127.0.0.1", "--port", str(taken.getsockname()[1]), environment={"TF_CONFIG": json.dumps(config)})

    def test_of_an_option_that_is_given_twice_the_last_one_counts(self):
        self.assertIn("If an option is given twice, the last one counts.\n", sumac("--help")[1])
        for first, last in (("x", "y"), ("y", "x")):
            _, _, errors = sumac("ls", "--ps", first, "--ps", last)
            self.assertIn(f"--ps wants HOST:PORT, not {last}: it has no port\n", errors)

    def test_a_number_out_of_range_is_answered_with_the_range(self):
        for option, most in (("--ps", 256), ("--workers", 511)):
            code, _, errors = sumac("run", option, str(most + 1), "--", "true")
            self.assertEqual((code, errors), (2, f"sumac run: {option} wants a whole number, 1 to {most}, not {most + 1}\n"))

    def test_a_size_that_is_none_is_named(self):
        code, _, errors = sumac("ps", "--staging-max", "lots")
        self.assertEqual(code, 2)
        self.assertIn("--staging-max wants a size such as", errors)

    def test_a_host_with_a_port_is_no_place_to_listen(self):
        for host in ("localhost:5", "http://h", "http://h:80", "127.0.0.1:2222", "[::1]:5"):
            code, _, errors = sumac("ps", "--bind", host)
            self.assertEqual((code, errors), (2, f"sumac ps: --bind wants a host alone, not {host}; its port is --port's\n"))

    def test_a_bound_that_serves_nobody_is_refused(self):
        for option, value, said in (("--sessions-max", "0", "a whole number, 1 to 4294967295, not 0"),
                                    ("--lease-ms", "499", "a whole number of milliseconds, 500 to 4294967295, not 499"),
                                    ("--ps-lost-ms", "499", "500 to 4294967295, not 499"),
                                    ("--rejoin-ms", "99", "100 to 4294967295, not 99"),
                                    ("--rejoin-first-ms", "99", "100 to 4294967295, not 99"),
                                    ("--report-ms", "99", "100 to 4294967295, not 99"),
                                    ("--connections-max", "15", "16 to 4294967295, not 15"),
                                    ("--calls-max", "0", "a whole number, 1 to 4294967295, not 0"),
                                    ("--threads", "9" * 20, "a whole number, 0 to 64, not 9999"),
                                    ("--threads", "65", "a whole number, 0 to 64, not 65"),
                                    ("--port", "65536", "a whole number, 0 to 65535, not 65536"),
                                    ("--staging-max", "0", "from 1 to 16777215T, not 0"),
                                    ("--staging-max", "16777216T", "from 1 to 16777215T, not 16777216T"),
                                    ("--staging-max", "16E", "from 1 to 16777215T, not 16E"),
                                    ("--staging-max", "1", "takes no push; give at least 128K"),
                                    ("--pulls-max", "1K", "answers no pull; give at least 1M"),
                                    ("--collectives-max", "1K", "takes no contribution; give at least 64K"),
                                    ("--grpc-memory-max", "1K", "give at least 8M")):
            with self.subTest(option=option, value=value):
                code, _, errors = sumac("ps", option, value)
                self.assertEqual(code, 2)
                self.assertIn(said, errors)


if __name__ == "__main__":
    unittest.main()
