"""Imports the modules of an environment once, and forks a process per run: `warm_start.py FD`.

FD is a socket of the worker (AF_UNIX, SOCK_SEQPACKET); each packet is a JSON object.
From the worker, first:  {"imports": [module, ...]}; answered by {"ready": seconds, "missing": {...}}
A run:     {"command": [python, script, argument...], "folder", "work", "data", "variables",
           "file_bytes", "memory_bytes"} with descriptors of log, metrics, replies and a socket of
           the run; -m MODULE or -c CODE in place of the script. Its folder and the folder of its
           data are below this process's own.
On the run's socket the run's helper says {"pid"}, then {"exit"} or {"signal"}; the worker may send
{"signal": number}. If the worker closes a socket, the run, or everything, ends.

A run behaves as `python script` does. Its helper puts it into namespaces of its own, so that no
process outlives it, and that it sees only its own folder.
"""
import _io
import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import random
import resource
import runpy
import select
import signal
import socket
import struct
import sys
import threading
import time
import types
import weakref

PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38
CLONE_NEWNS, CLONE_NEWPID, MS_PRIVATE, MS_REC = 1 << 17, 1 << 29, 1 << 18, 1 << 14
CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWNET, SIOCSIFFLAGS, IFF_UP = 1 << 26, 1 << 27, 1 << 30, 0x8914, 1
KEYCTL, JOIN_SESSION_KEYRING = {"x86_64": 250, "aarch64": 219}.get(os.uname().machine), 1
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_BIND = 1, 2, 4, 8, 32, 4096
DATA = "/ablate-data"
FILES = {_io.TextIOWrapper: 1, _io.BufferedRandom: 2, _io.BufferedWriter: 2, _io.FileIO: 3}
libc = ctypes.CDLL(None, use_errno=True)


def main():
    channel = socket.socket(fileno=int(sys.argv[1]))
    begin, packet = time.monotonic(), channel.recv(1 << 20)
    missing = warm_up(json.loads(packet or '{"imports": []}')["imports"])
    for finalizer in weakref.finalize._registry.values():
        finalizer.atexit = False  # what belongs to all runs must not end with the first one
    gc.collect()
    gc.freeze()  # collections in the runs then leave the pages of these objects shared
    with contextlib.suppress(OSError):  # runs make no user namespaces
        with open("/proc/sys/user/max_user_namespaces", "w") as limit:
            limit.write("0")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # helpers report for themselves
    send(channel, ready=time.monotonic() - begin, missing=missing)
    while True:
        packet, descriptors, _, _ = socket.recv_fds(channel, 1 << 20, 4)
        if not packet:
            os._exit(0)  # ends the helpers, and these end the runs
        with contextlib.suppress(OSError):  # no more processes: the worker sees the closed socket
            if os.fork() == 0:
                channel.close()
                leave(help_run, json.loads(packet), descriptors[:3], descriptors[3])
        for descriptor in descriptors:
            os.close(descriptor)


def warm_up(names):
    """Imports modules. Returns the errors by module. Leaves torch's generator as it was."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads don't survive a fork
    missing = {}
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # the run will raise it, too
            missing[name] = f"{type(error).__name__}: {error}"
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        torch.set_num_threads(1)
        generator = torch.get_rng_state()
        weight = torch.nn.Parameter(torch.ones(2, 2))
        (weight @ weight).sum().backward()
        torch.optim.AdamW([weight]).step()  # the first one imports for a second
        torch.set_rng_state(generator)
    return missing


def send(channel, **message):
    channel.send(json.dumps(message).encode())


def leave(function, *arguments):
    """Ends a forked process after a function, whatever it raises."""
    try:
        function(*arguments)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def help_run(request, descriptors, channel):
    """Starts a run in a PID namespace, forwards signals to it, waits, ends its other processes."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    channel = socket.socket(fileno=channel)
    # The first process of a namespace ignores most signals, so the run is its second one.
    check(libc.unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS),
          "make namespaces")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:  # its own loopback
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    first = os.fork()
    if first == 0:
        leave(stay, channel, descriptors)
    run = os.fork()
    if run == 0:
        channel.close()
        leave(execute, request, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    ended = os.pidfd_open(run)
    send(channel, pid=run)
    while ended not in select.select([ended, channel], [], [])[0]:
        packet = channel.recv(1 << 10)
        os.kill(run, json.loads(packet)["signal"] if packet else signal.SIGKILL)
    _, status = os.waitpid(run, 0)
    os.kill(first, signal.SIGKILL)  # ends all processes of the namespace
    os.waitpid(first, 0)
    killed = os.WIFSIGNALED(status)
    with contextlib.suppress(OSError):  # the worker has closed it
        send(channel,
             **({"signal": os.WTERMSIG(status)} if killed else {"exit": os.WEXITSTATUS(status)}))


def stay(channel, descriptors):
    """Holds the namespace, and takes the processes that the run leaves behind."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for descriptor in [channel.fileno(), *descriptors]:
        os.close(descriptor)
    while True:
        signal.pause()


def execute(request, descriptors):
    """Makes this process the run: descriptors, files, rights, environment; then its program."""
    variables = request["variables"]
    targets = [1, int(variables["ABLATE_METRICS"]), int(variables["ABLATE_REPLIES"])]
    copies = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 256) for descriptor in descriptors]
    for descriptor in descriptors:
        os.close(descriptor)
    for copy, target in zip(copies, targets):
        os.dup2(copy, target)
        os.close(copy)
    os.dup2(1, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.setsid()
    mount_folders(request)
    if KEYCTL is not None:  # keys aren't shared with other runs
        libc.syscall(KEYCTL, JOIN_SESSION_KEYRING, None)
    drop_rights()
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if request["file_bytes"]:
        resource.setrlimit(resource.RLIMIT_FSIZE, [request["file_bytes"]] * 2)
    os.environ.clear()
    os.environ.update(variables)
    time.tzset()
    os.chdir(request["work"])
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    end(run_program(*request["command"][1:]))


def mount_folders(request):
    """Hides the folders of other runs and the processes of others, in this mount namespace."""
    def mount(source, target, kind, flags, options=None):
        texts = [text and text.encode() for text in (source, target, kind)]
        check(libc.mount(*texts, flags, options and options.encode()), f"mount {target}")

    work = request["work"]
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    for name in ("sys", "sysrq-trigger", "irq", "bus"):  # root could write to them
        if os.path.exists(f"/proc/{name}"):
            mount(f"/proc/{name}", f"/proc/{name}", None, MS_BIND)
            mount(None, f"/proc/{name}", None, MS_REMOUNT | MS_BIND | MS_RDONLY)
    mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    mount(f"{work}/{request['folder']}", work, None, MS_BIND)  # above the folder of all runs
    if request["data"]:
        mount(f"{DATA}/{request['data']}", DATA, None, MS_BIND)
    elif os.path.isdir(DATA):
        mount("tmpfs", DATA, "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV)
    for folder, limit in (("/tmp", request["file_bytes"]), ("/dev/shm", request["memory_bytes"])):
        size = f",size={limit}" if limit else ""
        mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, f"mode=1777{size}")


def check(result, action):
    """Raises OSError unless a function of the C library returned 0."""
    if result != 0:
        raise OSError(ctypes.get_errno(), f"can't {action}")


def drop_rights():
    """Gives up all capabilities, for this process and the programs that it starts."""
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    version_3 = (ctypes.c_uint32 * 2)(0x20080522, 0)
    check(libc.capset(version_3, bytes(24)), "give up capabilities")
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "give up new rights")


def run_program(kind, *rest):
    """Runs a script, a module or code as __main__. Returns the exit code; None for Ctrl-C."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__builtins__ = sys.modules["builtins"]
    later = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = ["", *(path for path in later if path and path not in sys.path)]
    sys.argv = [kind, *rest[kind in ("-m", "-c"):]]
    try:
        if kind == "-m":
            sys.path[0] = os.getcwd()
            runpy._run_module_as_main(rest[0])
            return 0
        path, text = "<string>", rest[0] if kind == "-c" else None
        if text is None:
            main.__file__ = path = os.path.abspath(kind)
            sys.path[0] = os.path.dirname(os.path.realpath(path))
            if not os.path.isfile(path):
                print(f"{sys.executable}: can't open file {path!r}", file=sys.stderr)
                return 2
            with open(path, "rb") as file:
                text = file.read()
        exec(compile(text, path, "exec", dont_inherit=True), main.__dict__)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    except BaseException as error:
        shown = error.__traceback__.tb_next  # without this function
        sys.excepthook(type(error), error.with_traceback(shown), shown)
        return None if isinstance(error, KeyboardInterrupt) else 1
    return 0


def end(code):
    """Ends the process as the interpreter does, without the teardown of its modules."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    # The interpreter closes files that the program left open: wrappers before what they wrap.
    files = [one for one in gc.get_objects() if issubclass(type(one), _io._IOBase)]
    for file in sorted(files, key=lambda one: FILES.get(type(one), 0)):
        with contextlib.suppress(Exception):
            file.close()
    if code is None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code & 0xFF)


main()
