# SPDX-License-Identifier: Apache-2.0
"""Hosts of their own for a test: network, host name, mounts, processes. Needs root; what is made has no name outside, and ends
with the process that holds it, which ends with the test.
"""
import os
import shutil
import subprocess

from cluster import PATIENCE_S, Process, children

KINDS = ["--net", "--uts", "--ipc", "--mount"]


def why_not(*programs):
    """What is missing here for a test with hosts of its own and these programs; None: nothing."""
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [program for program in ("unshare", "nsenter", "setpriv", "ip", *programs) if not shutil.which(program, path=path)]
    if missing:
        return f"not installed: {', '.join(missing)}"
    tried = subprocess.run(["unshare", *KINDS, "--pid", "--fork", "--mount-proc", "ip", "link", "set", "lo", "up"],
                           capture_output=True, text=True, timeout=PATIENCE_S)
    return None if tried.returncode == 0 else f"this machine makes no namespaces: {tried.stderr.strip()}"


class Host:
    """Some namespaces that a process holds; whatever runs in its process namespace ends with it."""

    def __init__(self, name):
        made = f"hostname {name} && ip link set lo up && echo made && exec cat"
        self.name = name
        self.processes = []
        self.holder = Process(["unshare", *KINDS, "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", made],
                              stdin=subprocess.PIPE)
        self.holder.wait_for("^made$")
        (self.pid,) = children(self.holder.child.pid)

    def command(self, *words):
        """A command line that becomes this one, in here."""
        return ["nsenter", "--target", str(self.pid), *KINDS, *words]

    def start(self, *words, environment=None, stdin=None):
        """A process that is ours to signal, and ends with us."""
        return self.add(self.command(*words), environment, stdin)

    def add(self, command, environment=None, stdin=None):
        process = Process(["setpriv", "--pdeathsig", "KILL", *command], environment, stdin)
        self.processes.append(process)
        return process

    def run(self, *words):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(words)} on {self.name}: {done.returncode} {done.stdout}{done.stderr}")
        return done.stdout

    def close(self):
        self.holder.kill()      # and all that lives in its process namespace: who reads from that gets an end
        for process in self.processes:
            process.kill()


class Network:
    """A switch, and a host for each name with its address; the n-th host's cable ends in the switch's port `cable<n>`."""

    def __init__(self, addresses):
        self.switch = Host("switch")
        self.hosts = {}
        try:
            self.switch.run("ip", "link", "add", "switch", "up", "type", "bridge")
            for number, (name, address) in enumerate(addresses.items()):
                host = self.hosts[name] = Host(name.replace(" ", ""))
                # Its own mounts have a /proc that knows no process outside.
                subprocess.run(["nsenter", "--target", str(self.switch.pid), "--net", "ip", "link", "add", f"cable{number}",
                                "type", "veth", "peer", "name", "eth0", "netns", str(host.pid)], check=True)
                self.switch.run("ip", "link", "set", f"cable{number}", "master", "switch", "up")
                host.run("ip", "address", "add", f"{address}/24", "dev", "eth0")
                host.run("ip", "link", "set", "eth0", "up")
        except BaseException:
            self.close()
            raise

    def cable(self, name, up):
        self.switch.run("ip", "link", "set", f"cable{list(self.hosts).index(name)}", "up" if up else "down")

    def close(self):
        for host in [self.switch, *self.hosts.values()]:
            host.close()
