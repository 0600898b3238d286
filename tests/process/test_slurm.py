# SPDX-License-Identifier: Apache-2.0
"""deploy/slurm/sumac.sbatch on a Slurm of one node, which is made for this test in namespaces of its own and ends with it."""
import os
import re
import subprocess
import tempfile
import time
import unittest

from cluster import BUILD, PATIENCE_S, SUMAC
from namespaces import Host, why_not
from readme import block, clone_into

SOURCE = os.environ["SUMAC_SOURCE"]
SBATCH = os.path.join(SOURCE, "deploy", "slurm", "sumac.sbatch")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol")

CONFIGURATION = """
ClusterName=sumac-test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
NodeName=localhost NodeAddr=127.0.0.1 CPUs=64 State=UNKNOWN
PartitionName=test Nodes=localhost Default=YES MaxTime=5 State=UP
"""

# Worker 1 pushes once everybody is there and ends with what it is told, while worker 0 goes on.
FAILS = f"""case "$TF_CONFIG" in *'"worker", "index": 1'*) {BUILD}/first; exit $CODE;; esac
exec {BUILD}/digits --seconds 600"""


# srun and scontrol where there is no Slurm: one task on one host. A task that fails in its first seconds, as SECONDS counts them, waits.
SRUN = """while [[ $1 == --* ]]; do shift; done; export TASK=$$ SECONDS=${AGE:-60}; exec "$@" """
SCONTROL = """for signal in $STOP; do kill -$signal $TASK; done; [ -z "$3" ] || echo h1 """


class NoJob(unittest.TestCase):
    def become(self, program=("sh", "-c", "echo $TF_CONFIG"), has_sumac=True, **environment):
        """The first task of a job with these variables; its exit code and what it says."""
        with tempfile.TemporaryDirectory() as folder:
            for name, script in (("srun", SRUN), ("scontrol", SCONTROL), ("sumac", "echo $TF_CONFIG\necho sumac was given: $*"))[:3 if has_sumac else 2]:
                path = os.path.join(folder, name)
                with open(path, "w", encoding="ascii") as file:
                    file.write(f"#!/bin/bash\n{script}\n")
                os.chmod(path, 0o700)
            variables = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "PS", "PORT"))}
            variables |= {"PATH": f"{folder}:{os.environ['PATH']}", "SLURM_NTASKS": "3", "SLURM_PROCID": "0", "SLURM_JOB_ID": "7",
                          "SLURM_STEP_NODELIST": "h1", "SLURM_STEP_TASKS_PER_NODE": "3", **environment}
            done = subprocess.run(["bash", SBATCH, *program], env=variables, capture_output=True, text=True, timeout=PATIENCE_S)
        last = f"sumac.sbatch: the job ends with {done.returncode}: correct that error before you start the job again\n"
        return done.returncode, done.stdout + done.stderr.removesuffix(last)

    def test_what_cannot_be_is_refused_in_a_sentence(self):
        for environment, text in (
                ({"PS": "two"}, "PS is 'two'; it is the number of ps, 1 or more"),
                ({"PS": "0"}, "PS is '0'; it is the number of ps, 1 or more"),
                ({"PS": "-1"}, "PS is '-1'; it is the number of ps, 1 or more"),
                ({"PS": "08"}, "PS is '08'; it is the number of ps, 1 or more"),
                ({"PS": "a[$(date)]"}, "PS is 'a[$(date)]'; it is the number of ps, 1 or more"),
                ({"PS": "3"}, "the job has 3 tasks, and PS=3 of them are ps: no task is left for a worker; ask for more (--ntasks)"),
                ({"SLURM_NTASKS": ""}, "the job has no number of tasks; ask for one (--ntasks)"),
                ({"PORT": "ssh"}, "PORT is 'ssh'; it is the first of 3 ports, from 1 to 65533"),
                ({"PORT": "0"}, "PORT is '0'; it is the first of 3 ports, from 1 to 65533"),
                ({"PORT": "65534"}, "PORT is '65534'; it is the first of 3 ports, from 1 to 65533"),
                ({"program": ()}, "no program is given: sbatch --ntasks N sumac.sbatch PROGRAM [argument…]"),
                ({"SLURM_STEP_TASKS_PER_NODE": "", "SLURM_STEP_NODELIST": ""}, "Slurm names 0 places for 3 tasks"),
                ({"SLURM_STEP_TASKS_PER_NODE": "2"}, "Slurm names 2 places for 3 tasks")):
            with self.subTest(environment):
                code, said = self.become(**environment)
                self.assertEqual((code, said.count("\n")), (2, 1), said)
                self.assertIn(f"sumac.sbatch: {text}", said)

    def test_a_program_that_a_node_cannot_start_is_named_with_the_remedy(self):
        with tempfile.NamedTemporaryFile() as plain:
            for program, ended_with, text in (
                    ("no_such_program", 127, "has no program 'no_such_program' in its PATH: install it there, or export PATH before sbatch"),
                    ("./no_such_program", 127, "has no file './no_such_program': give a path that is on every node"),
                    (plain.name, 126, f"cannot execute '{plain.name}': make it executable (chmod +x)")):
                with self.subTest(program):
                    code, said = self.become((program,), SLURM_PROCID="2", SLURMD_NODENAME="h1")
                    self.assertEqual((code, said), (ended_with, f"sumac.sbatch: node h1 {text}\n"))

    def test_a_ps_without_sumac_is_named_with_the_remedy(self):
        code, said = self.become(has_sumac=False, SLURMD_NODENAME="h1")
        self.assertEqual((code, said), (127, "sumac.sbatch: node h1 has no program 'sumac' in its PATH: install it there, or export PATH "
                                             "before sbatch\n"))

    def test_two_jobs_share_no_port(self):
        taken = set()
        for job in range(41, 45):
            for environment in ({"SLURM_JOB_ID": str(job)}, {"SLURM_JOB_ID": str(job + 1400 * 1000 + 7)}):
                code, said = self.become(**environment)
                self.assertEqual(code, 0, said)
                ports = set(re.findall(r"h1:(\d+)", said))
                self.assertEqual((len(ports), ports & taken), (3, set()))
                self.assertRegex(said, rf"look at this run with: sumac stats --ps h1:{min(ports)}\n")
                self.assertLess(max(int(port) for port in ports), 32768)
                taken |= ports
        self.assertIn('"h1:2000", "h1:2001"', self.become(PORT="2000")[1])

    def test_a_task_that_fails_early_gives_the_others_time_to_begin(self):
        """Slurm's SIGTERM would end a task that has set no trap with 143, which masks the exit code."""
        began = time.monotonic()
        code, said = self.become(("sh", "-c", "exit 5"), SLURM_PROCID="2", AGE="0")
        self.assertEqual((code, said), (5, ""))
        self.assertGreater(time.monotonic() - began, 3)

    def test_a_task_that_slurm_stops_adds_no_exit_code(self):
        """SIGCONT is what tells Slurm's stop from a SIGTERM that somebody sends to a job that is to end early."""
        for code in (143, 9, 0):
            for signals, ended_with in ((("CONT", "TERM"), 0), (("TERM",), code), (("CONT",), code)):
                with self.subTest(code=code, signals=signals):
                    script = "".join(f"kill -{signal} $TASK; " for signal in signals) + f"exit {code}"
                    self.assertEqual(self.become(("sh", "-c", script), SLURM_PROCID="2"), (ended_with, ""))

    def test_a_task_that_slurm_stops_before_its_program_starts_none(self):
        """A ps that started after the end of its step would wait for its first worker until Slurm kills it."""
        for signals, ended_with in (("CONT TERM", 0), ("TERM", 143)):
            self.assertEqual(self.become(("echo", "started"), SLURM_PROCID="2", STOP=signals), (ended_with, ""))

    def test_two_dashes_before_the_program_are_sumac_runs(self):
        self.assertEqual(self.become(("--", "echo", "started"), SLURM_PROCID="2"), (0, "started\n"))

    def test_the_ps_get_the_options_of_a_variable(self):
        for options, words in (("", "ps"), ("--staging-max 512M  --bind 127.0.0.1", "ps --staging-max 512M --bind 127.0.0.1")):
            code, said = self.become(PS_OPTIONS=options)
            self.assertEqual((code, said.splitlines()[-1]), (0, f"sumac was given: {words}"))

    def test_ps_beyond_the_jobs_ports_are_refused(self):
        places = {"SLURM_NTASKS": "20", "SLURM_STEP_TASKS_PER_NODE": "20", "PS": "18"}
        code, said = self.become(SLURM_PROCID="16", **places)
        self.assertEqual((code, said), (2, "sumac.sbatch: more than 16 ps are on host h1, and the next job has the ports from 10128 on: "
                                           "spread the ps over more hosts, or choose PORT\n"))
        for environment in ({"SLURM_PROCID": "15"}, {"SLURM_PROCID": "16", "PORT": "2000"}, {"SLURM_PROCID": "19"}):
            code, said = self.become(**places, **environment)
            self.assertEqual(code, 0, said)

    def test_outside_a_job_it_says_how_one_is_started(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
        done = subprocess.run(["bash", SBATCH, "./my_worker"], env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
        self.assertIn(f"this is no job of Slurm's: start it with sbatch --ntasks N {SBATCH} PROGRAM", done.stderr)


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = why_not(*PROGRAMS)
        if reason is None:
            cls.folder = tempfile.TemporaryDirectory()
            cls.addClassCleanup(cls.folder.cleanup)
            cls.host = Host("localhost")
            cls.addClassCleanup(cls.host.close)
            try:
                cls.start()
            except AssertionError as error:
                reason = f"Slurm does not start here: {error}"
        if reason is not None:
            print(f"skipped: sumac.sbatch is not tried under Slurm: {reason}")
            raise unittest.SkipTest(reason)

    @classmethod
    def start(cls):
        folder = cls.folder.name
        configuration = os.path.join(folder, "slurm.conf")
        with open(configuration, "w", encoding="ascii") as file:
            file.write(CONFIGURATION.format(folder=folder))
        for name in ("state", "spool"):
            os.mkdir(os.path.join(folder, name))
        key = os.path.join(folder, "munge.key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o400), "wb") as file:
            file.write(os.urandom(1024))
        cls.environment = {**os.environ, "SLURM_CONF": configuration,
                           "PATH": f"{os.path.dirname(SUMAC)}:{os.environ['PATH']}:/usr/sbin:/sbin"}
        # Slurm looks names up for families of which there is an address other than the loopback ones.
        cls.host.run("ip", "address", "add", "192.0.2.1/32", "dev", "lo")
        munged = cls.start_daemon("munged", "--foreground", "--force", "--key-file", key, *[
            word for name in ("socket", "pid-file", "log-file", "seed-file")
            for word in (f"--{name}", os.path.join(folder, f"munge.{name}"))])
        munged.wait_for("Created socket")
        cls.start_daemon("slurmctld", "-D").wait_for("Running as primary controller|SchedulerParameters=")
        cls.start_daemon("slurmd", "-D", "-N", "localhost").wait_for("slurmd started on")

    @classmethod
    def start_daemon(cls, *words):
        """It and what it starts live in the host's process namespace, and end with that."""
        command = ["--target", str(cls.host.pid), "--net", "--uts", "--ipc", "--mount", "--pid", *words]
        return cls.host.add(["nsenter", *command], cls.environment)

    def submit(self, port, *words, **environment):
        """A job that is under way: the file with its output, and the process that ends with its exit code."""
        output = os.path.join(self.folder.name, f"job-{port}")
        environment = {**self.environment, "PORT": str(port), **environment}
        return output, self.host.start("sbatch", "--wait", "--ntasks", "4", "--output", output, SBATCH, *words,
                                       environment=environment)

    def test_readmes_command_runs_twice_at_a_time(self):
        """From the root of a clone, on the ports that the script picks; each line says which task printed it."""
        clone = os.path.join(self.folder.name, "clone")
        os.mkdir(clone)
        clone_into(clone)
        (line,) = block("PS=2 sbatch", "deploy/README.md")
        script = f"cd {clone}\n{block('export PATH=')[0]}\n{line}"
        environment = {**self.environment, "SBATCH_WAIT": "1"}         # --wait
        jobs = [self.host.start("bash", "-c", script, environment=environment) for _ in range(2)]
        for job in jobs:
            code = job.wait(PATIENCE_S * 3)
            number = job.wait_for(r"Submitted batch job (\d+)").group(1)
            with open(os.path.join(clone, f"slurm-{number}.out"), encoding="utf-8") as file:
                printed = file.read()
            self.assertEqual(code, 0, printed)
            self.assertRegex(printed, r"0: sumac\.sbatch: look at this run with: sumac stats --ps localhost:\d+\n")
            for task in (2, 3, 4):
                self.assertIn(f"{task}: y = 3.00 x + 2.00", printed)

    def test_the_digits_are_learnt_and_exit_codes_are_the_workers(self):
        """All at a time: Slurm looks for ended jobs every few seconds only."""
        jobs = {
            "digits": (0, self.submit(8800, os.path.join(BUILD, "digits"))),
            "one ps": (0, self.submit(8810, os.path.join(BUILD, "first"), PS="1")),
            "a worker's error": (3, self.submit(8820, "sh", "-c", FAILS, CODE="3")),
            "a worker's configuration": (2, self.submit(8830, "sh", "-c", FAILS, CODE="2")),
            "to be tried again": (138, self.submit(8840, "sh", "-c", FAILS, CODE="138")),
            "no worker's place": (2, self.submit(8850, "true", PS="4")),
            "no program": (2, self.submit(8860)),
        }
        printed = {}
        for what, (code, (output, job)) in jobs.items():
            with self.subTest(what):
                ended_with = job.wait(PATIENCE_S * 3)
                with open(output, encoding="utf-8", errors="replace") as file:
                    printed[what] = file.read()
                self.assertEqual(ended_with, code, printed[what])
        self.assertRegex(printed["digits"], r"done: \d+ of 360 held-back rows right, 9[0-9.]+ %")
        self.assertIn("ps 1: every listed member has left as done", printed["digits"])
        self.assertIn("w is 3 6 9 12", printed["one ps"])
        self.assertNotIn("correct that error", printed["digits"] + printed["to be tried again"])
        self.assertRegex(printed["a worker's error"], r"ps \d was told to terminate")       # whose 143 would mask the worker's code
        self.assertIn("the job has 4 tasks, and PS=4 of them are ps", printed["no worker's place"])

    def test_a_program_that_fails_at_once_gives_its_exit_code(self):
        """Also where another task begins later: bash reads BASH_ENV before it runs the task's first line."""
        late = os.path.join(self.folder.name, "late")
        with open(late, "w", encoding="ascii") as file:
            file.write('[ "${SLURM_STEP_ID-}$SLURM_PROCID" != 00 ] || sleep 1\n')
        jobs = [(code, self.submit(8900 + 10 * i, *words, BASH_ENV=late)) for i, (code, words) in enumerate(
            ((127, ("./no_such_program",)), (5, ("sh", "-c", "exit 5"))))]
        for code, (output, job) in jobs:
            with self.subTest(code):
                ended_with = job.wait(PATIENCE_S * 3)
                with open(output, encoding="utf-8", errors="replace") as file:
                    printed = file.read()
                self.assertEqual(ended_with, code, printed)
                self.assertNotRegex(printed, "\n[23]: (Terminated|Killed)")     # a ps that has just begun may be
                self.assertRegex(printed, rf"\nsumac.sbatch: the job ends with {code}: correct that error before you start the job again\n$")

    def test_a_job_that_somebody_ends_with_sigterm_has_not_ended_well(self):
        """Slurm gives a job no state of its own for that: a job that depends on this one with afterok must not start."""
        output, job = self.submit(8950, os.path.join(BUILD, "digits"), "--seconds", "600")
        number = job.wait_for(r"Submitted batch job (\d+)").group(1)
        printed = self.host.start("tail", "--follow=name", "--retry", "--lines=+1", output)
        self.addCleanup(printed.kill)
        printed.wait_for("joined as worker 1")
        cancel = self.host.start("scancel", "--signal", "TERM", number, environment=self.environment)
        self.assertEqual(cancel.wait(), 0, cancel.lines)
        self.assertEqual(job.wait(PATIENCE_S), 143, printed.text())

    def test_variables_that_sbatch_was_told_to_leave_out_do_not_matter(self):
        """srun goes by them, too, and would leave out those that the script sets for its tasks."""
        _, job = self.submit(8960, os.path.join(BUILD, "first"), SLURM_EXPORT_ENV="PATH")
        self.assertEqual(job.wait(PATIENCE_S * 3), 0)

    def test_srun_in_place_of_sbatch_is_refused(self):
        """Each of its tasks would run the script, and the srun of the script would wait for a place without limit."""
        for words in (("bash", SBATCH, "true"), (SBATCH, "true")):      # by its own mode, too
            with self.subTest(words):
                srun = self.host.start("srun", "--ntasks", "4", *words, environment=self.environment)
                self.assertEqual(srun.wait(PATIENCE_S), 2, srun.lines)
                self.assertEqual("\n".join(srun.lines).count("sumac.sbatch: srun has started this script in each of its tasks"), 1, srun.lines)

    def test_sbatch_from_within_a_step_and_salloc_are_served(self):
        """Both hand variables of a step on to a script that is in none. salloc's shell may be in a step of its own kind."""
        output = os.path.join(self.folder.name, "nested")
        first = os.path.join(BUILD, "first")
        for words in (("srun", "--ntasks", "4", "bash", "-c", 'test $SLURM_PROCID != 0 || exec "$@"', "bash",
                       "sbatch", "--wait", "--ntasks", "4", "--output", output, SBATCH, first),
                      ("salloc", "--ntasks", "4", "bash", SBATCH, first),
                      ("salloc", "--ntasks", "4", "srun", "--interactive", "--preserve-env", "bash", SBATCH, first)):
            with self.subTest(words):
                job = self.host.start(*words, environment=self.environment)
                self.assertEqual(job.wait(PATIENCE_S * 3), 0, job.lines)


if __name__ == "__main__":
    unittest.main()
