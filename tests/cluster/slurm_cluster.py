"""A Slurm cluster of one node on this machine, by Debian's slurmctld, slurmd and munged, in a temporary folder."""
import getpass
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
KillWait=10
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=low Nodes={host} Default=YES PriorityTier=1 GraceTime=10 MaxTime=INFINITE State=UP
PartitionName=high Nodes={host} PriorityTier=2 PreemptMode=off MaxTime=INFINITE State=UP
"""


def missing():
    """The programs of a cluster that this machine lacks."""
    path = os.environ["PATH"] + ":/usr/sbin"
    return [name for name in PROGRAMS if not shutil.which(name, path=path)]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def eventually(what, condition, seconds=120):
    """Waits until the condition is true; returns its value."""
    until = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > until:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.1)
    return value


class SlurmCluster:
    """Starts the cluster; use it in a `with`. `environment` has SLURM_CONF for Slurm's commands."""

    def __init__(self, folder, cpus=4):
        self.folder = pathlib.Path(folder)
        self.environment = dict(os.environ, SLURM_CONF=str(self.folder / "slurm.conf"),
                                PATH=os.environ["PATH"] + ":/usr/sbin")
        self.processes = {}
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0], folder=self.folder, cpus=cpus,
            user=getpass.getuser(), controller_port=free_port(), node_port=free_port()))

    def __enter__(self):
        folder = self.folder
        self.start("munged", "--foreground", "--force", f"--socket={folder}/munge.socket",
                   f"--key-file={folder}/munge.key", f"--pid-file={folder}/munged.pid",
                   f"--seed-file={folder}/munged.seed", f"--log-file={folder}/munged.log")
        eventually("munged listens", (folder / "munge.socket").exists)
        self.start("slurmctld", "-D")
        self.start("slurmd", "-D", "-L", f"{folder}/slurmd.log")
        eventually("a node is idle", lambda: "idle" in self.run("sinfo", "-h", "-o", "%t", check=False))
        return self

    def __exit__(self, *exception):
        self.run("scancel", "-u", str(os.getuid()), check=False)
        for name in ("slurmd", "slurmctld", "munged"):
            self.stop(name)

    def start(self, program, *arguments):
        with open(self.folder / f"{program}.out", "a") as log:
            self.processes[program] = subprocess.Popen(
                [program, *arguments], env=self.environment, stdout=log, stderr=log)

    def stop(self, program):
        process = self.processes.pop(program, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def run(self, *command, check=True):
        """Runs one of Slurm's commands; returns what it prints."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def jobs(self):
        """The jobs that Slurm lists, as {number: (state, name)}; none while its controller is away."""
        lines = self.run("squeue", "-h", "-o", "%i|%T|%j", check=False).splitlines()
        return {job: (state, name) for job, state, name in (line.split("|") for line in lines)}
