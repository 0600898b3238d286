# SPDX-License-Identifier: Apache-2.0
"""Two runs with the same addresses, and two processes that are one task."""
import os
import re
import socket
import subprocess
import tempfile
import unittest

from cluster import MEMBER, SUMAC, Cluster, Process


class NamedCluster(Cluster):
    """Its processes have this environment, too."""

    def __init__(self, named, **more):
        self.named = named
        super().__init__(**more)

    def environment(self, job, index, ps_addresses=None):
        return {**super().environment(job, index, ps_addresses), **self.named}

    def other(self, named, index=0, observer=False):
        """A member whose addresses are those of this cluster, and whose run is another."""
        environment = {**self.environment("worker", index), **named}
        command = [MEMBER, "0", "observer" if observer else "member"]
        return self.add(Process(command, environment, stdin=subprocess.PIPE))


class Identity(unittest.TestCase):
    def cluster(self, named, **more):
        cluster = NamedCluster(named, **more)
        self.addCleanup(cluster.stop)
        return cluster

    def test_a_second_job_with_the_same_addresses_is_refused_and_the_first_goes_on(self):
        cluster = self.cluster({"SUMAC_RUN": "red"})                    # given
        first = cluster.member()
        first.wait_for("^joined$")

        second = cluster.other({"SUMAC_RUN": "blue"})                   # when

        self.assertEqual(second.wait(), 2)                              # then
        second.wait_for(rf'^refused FAILED_PRECONDITION WRONG_CLUSTER .*run "blue" \(SUMAC_RUN\), process {second.child.pid} on '
                        rf'.*run "red" \(SUMAC_RUN\), process {cluster.ps[0].child.pid} on .*SUMAC_RUN')
        first.say("create w float32 4 2 2 sgd")
        first.wait_for("^created w$")

    def test_tasks_of_one_slurm_array_are_two_runs_and_the_parts_of_a_heterogeneous_job_are_one(self):
        cluster = self.cluster({"SLURM_JOB_ID": "101", "SLURM_JOB_ID_HET_GROUP_0": "101"})

        self.assertEqual(cluster.other({"SLURM_JOB_ID": "102", "SLURM_JOB_ID_HET_GROUP_0": "102"}).wait(), 2)
        cluster.other({"SLURM_JOB_ID": "102"}).wait_for("^joined$")

    def test_without_a_name_or_with_one_of_another_source_a_newcomer_replaces_at_once(self):
        cluster = self.cluster({"SUMAC_RUN": "red", "SLURM_JOB_ID": "101"})
        cluster.member().wait_for("^joined$")

        cluster.other({"SUMAC_RUN": ""}).wait_for("^joined$")

        unnamed = self.cluster({"SUMAC_RUN": "", "SLURM_JOB_ID": "101"})
        unnamed.other({"SUMAC_RUN": "blue"}).wait_for("^joined$")

    def test_an_observer_of_another_run_is_not_refused(self):
        cluster = self.cluster({"SUMAC_RUN": "red"})

        cluster.other({"SUMAC_RUN": "blue"}, observer=True).wait_for("^joined$")

    def test_a_worker_says_that_a_variable_is_misspelt(self):
        cluster = self.cluster({})

        cluster.other({"SUMAC_SYNCHRONOS": "1"}).wait_for(
            " sumac worker 0: SUMAC_SYNCHRONOS is ignored: did you mean SUMAC_SYNCHRONOUS[?]$")

    def test_stats_tell_the_run_host_process_and_user_of_each_ps(self):
        cluster = self.cluster({"SUMAC_RUN": "red"}, ps=2)

        stats = cluster.stats()

        self.assertEqual([(ps["run"], ps["host"], ps["pid"], ps["user"]) for ps in stats["ps"]],
                         [("red", socket.gethostname()[:64], ps.child.pid, os.geteuid()) for ps in cluster.ps])
        self.assertEqual((stats["run"]["name"], stats["run"]["ps_pid"]), ("red", cluster.ps[stats["run"]["ps"]].child.pid))

    def test_a_run_of_another_user_is_changed_only_if_ps_names_it(self):
        if subprocess.run(["unshare", "--user", "true"], check=False).returncode != 0:
            print("skipped: this machine lets nobody make a user namespace")
            self.skipTest("no user namespace")
        cluster = self.cluster({"SUMAC_RUN": "red"}, ps=2, under=["unshare", "--user"])     # given
        cluster.member().wait_for("^joined$")
        theirs = cluster.stats()["run"]["user"]
        self.assertNotEqual(theirs, os.geteuid())
        config = cluster.environment("worker", 0)
        text = os.path.join(self.folder(), "text")
        with open(text, "w", encoding="ascii") as file:
            file.write("value = g")

        for arguments in (("define", "mine", text), ("update", "w", "assign", "--value", text)):
            refused = Process([SUMAC, *arguments], config)              # when
            self.addCleanup(refused.kill)
            self.assertEqual(refused.wait(), 2)                         # then
            refused.wait_for(rf'^run "red" \(SUMAC_RUN\), ps \d at .* \(pid \d+ on .*\), up .*, of user {theirs}( |$)')
            refused.wait_for(rf"^sumac {arguments[0]}: ps \d at (\S+) is of user {theirs}( .*)?, and this command is of user "
                             rf"{os.geteuid()}( .*)?; if you mean to change that run, give --ps \1$")

        self.assertEqual(cluster.sumac("define", "mine", text)[0], 0)
        looking = Process([SUMAC, "ls"], config)
        self.addCleanup(looking.kill)
        self.assertEqual(looking.wait(), 0)

    def folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def test_a_name_of_a_run_that_is_too_long_ends_the_process(self):
        cluster = self.cluster({})

        long = cluster.other({"SUMAC_RUN": "x" * 129})

        self.assertEqual(long.wait(), 2)
        long.wait_for("SUMAC_RUN has 129 bytes: give at most 128")
        cluster.other({"SUMAC_RUN": "x" * 128}).wait_for("^joined$")

    def test_a_name_of_a_run_that_cannot_be_printed_ends_the_process_and_says_why(self):
        cluster = self.cluster({})

        for name, said in (("a\nb", r"SUMAC_RUN, shown here with \?, has a control character: a\?b$"),
                           ("\udcffb", r"SUMAC_RUN, shown here with \?, is not UTF-8: \?b$")):
            other = cluster.other({"SUMAC_RUN": name})
            self.assertEqual(other.wait(), 2)
            other.wait_for(said)

    def test_two_supervised_processes_of_one_task_stop_replacing_each_other(self):
        cluster = self.cluster({})
        present, ended = cluster.member(), []
        present.wait_for("^joined$")

        for _ in range(10):                             # each that ends is started again, whatever its exit code
            newcomer = cluster.member()
            if newcomer.wait_for("^(joined|refused)").group(1) == "refused":
                break
            present.say("create w float32 4 2 2 sgd")
            present.wait_for(rf"REPLACED .*: process {newcomer.child.pid} on {re.escape(socket.gethostname()[:64])} has taken this task's place")
            ended.append(present.wait())
            present = newcomer

        self.assertEqual(set(ended), {2})
        self.assertGreaterEqual(len(ended), 3)          # a process that exits at once may be gone before it says that it lived
        self.assertEqual(newcomer.wait(), 2)
        newcomer.wait_for(rf"WRONG_CLUSTER .*worker 0 is process {present.child.pid} on .* and lives"
                          r".*end one of the two, or correct its index; if they are of two runs with the same TF_CONFIG, set SUMAC_RUN to a different value")
        cluster.ps[0].wait_for("keeps the present process of worker 0")
        present.say("create w float32 4 2 2 sgd")
        present.wait_for("^created w$")

    def test_two_supervised_processes_that_wait_for_another_task_stop_replacing_each_other(self):
        cluster = self.cluster({}, workers=2)
        present = cluster.member()
        present.wait_for("^joined$")

        for _ in range(10):
            present.say("come go")                      # a call to ps 0, whose failure is the first that it hears
            newcomer = cluster.member()
            if newcomer.wait_for("^(joined|refused)").group(1) == "refused":
                break
            self.assertEqual(present.wait(), 2)
            present = newcomer

        self.assertEqual(newcomer.wait(), 2)
        cluster.ps[0].wait_for("keeps the present process of worker 0")

    def test_a_process_that_is_killed_and_started_again_is_never_refused(self):
        cluster = self.cluster({})

        for _ in range(6):
            member = cluster.member()
            member.wait_for("^joined$")
            member.kill()

    def test_a_member_says_whose_place_it_takes_and_warns_if_that_process_lives(self):
        cluster = self.cluster({})
        host = re.escape(socket.gethostname()[:64])
        killed = cluster.member()
        killed.wait_for("attempt 1, .*, cluster [0-9a-f]{16}$")
        killed.kill()

        living = cluster.member()
        living.wait_for(rf"attempt 2, .*; takes the place of process {killed.child.pid} on {host}$")
        living.say("create w float32 4 2 2 sgd")
        living.say("push w 1")
        living.wait_for("^pushed$")         # its push streams are open then

        cluster.member().wait_for(
            rf"attempt 3, .*; takes the place of process {living.child.pid} on {host}, which was alive \S+ \S+ ago; "
            "if that process is of another run, set SUMAC_RUN to a different value in each run$")

    def test_workers_in_another_order_are_refused(self):
        cluster = self.cluster({}, workers=2)
        config = cluster.config("worker", 1)
        turned = config.replace("127.0.0.1:9\"", "X").replace("127.0.0.1:10\"", "127.0.0.1:9\"").replace("X", "127.0.0.1:10\"")
        self.assertNotEqual(config, turned)

        other = cluster.other({"TF_CONFIG": turned})

        self.assertEqual(other.wait(), 2)
        other.wait_for("WRONG_CLUSTER .*in the same order")

    def test_sumac_run_names_each_run_anew_and_all_its_processes_alike(self):
        names = []
        for _ in range(2):
            run = Process([SUMAC, "run", "--workers", "2", "--", "sh", "-c", "echo name=$SUMAC_RUN; exit 3"], {"SUMAC_RUN": "mine"})
            self.addCleanup(run.kill)
            run.wait()
            found = set(re.findall("name=(.*)", run.text()))
            self.assertEqual(len(found), 1)
            names += found

        self.assertEqual(len(set(names)), 2)
        self.assertRegex(names[0], "^[0-9a-f]{32}$")


if __name__ == "__main__":
    unittest.main()
