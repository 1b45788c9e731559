"""Connects a training program to ablate: settings in; points, progress and checkpoints out.

    import ablate_run as run
    args = run.defaults(lr=0.001, steps=1000)   # settings of the experiment file replace these
    for step in range(run.step, args.steps):    # begins at 0 or at the stored checkpoint
        run.log({"train/loss": loss}, step=step)

Outside ablate, log prints, and checkpoint has no effect. A script written for wandb needs one
changed line, `import ablate_run as wandb`, if it uses init, config, log, summary, watch and finish.
All functions are safe in threads. A forked process may log, too; any other process prints.
"""
import atexit
import json
import math
import os
import pathlib
import select
import signal
import sys
import threading
import time

__all__ = ["settings", "defaults", "seed", "step", "state", "out", "log", "progress", "checkpoint",
           "stopping", "flush", "init", "config", "summary", "watch", "finish"]


class Settings(dict):
    """A dict whose members are attributes, too, unless they are called like a method of dict."""
    __setattr__ = dict.__setitem__

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(f"{name}: unknown setting; expected {', '.join(self) or 'none'}")

    def update(self, values=(), **named):
        """Adds the members that are missing, also in nested dicts. Returns the settings."""
        for name, value in {**dict(values), **named}.items():
            member = self.setdefault(name, Settings() if isinstance(value, dict) else value)
            if isinstance(value, dict) and isinstance(member, Settings):
                member.update(value)
        return self


def log(values, step=None, commit=None):
    """Records numbers by key; members of nested dicts are called outer/inner. Without a step the
    module counts as wandb does: a call with a step or with commit=False leaves the count."""
    global _count, _last
    items = list(_numbers(values))
    with _lock:
        now = _count if step is None else int(step)
        if now < _last:
            return _warn("log", f"steps decrease ({now} after {_last}); such points are dropped")
        _last, _count = now, now + (step is None if commit is None else bool(commit))
        if items and _metrics < 0:
            print(f"step {now}", *(f"{key} {value:.6g}" for key, value in items), sep="  ")
        for begin in range(0, len(items), 16):  # short lines, because long ones can mix
            _append({"step": now, **{key: value if math.isfinite(value) else _encode(value)
                                     for key, value in items[begin:begin + 16]}})


def progress(step, of):
    """Reports that `step` of `of` steps are done, for the estimate of the time left."""
    _append({"progress": int(step), "of": int(of)}, send=True)


def checkpoint(step):
    """Stores the folder `state` as the state after `step` steps, and then returns; its files may
    change again. A later attempt gets the folder and this step."""
    if _metrics >= 0:
        with _checkpoints:
            _append({"checkpoint": int(step)}, send=True)
            reply = open(_replies, "rb", closefd=False).readline()
            if not reply:
                raise ConnectionError(f"checkpoint {step}: not stored; the worker has ended")
            if reply != b"checkpoint %d\n" % step:
                raise ValueError(f"checkpoint {step}: not stored; {reply.decode().strip()}")


def stopping():
    """Returns True after the worker has asked the program to end, within 30 seconds. Before the
    first call, which must be in the main thread, that request ends the program at once."""
    global _stop
    if _stop is None:
        _stop = False
        signal.signal(signal.SIGTERM, lambda *_: globals().update(_stop=True))
    return _stop


def flush():
    """Sends the lines in the buffer; happens within 0.25 seconds of each log, and at exit."""
    global _buffer
    with _lock:
        data, _buffer = _buffer, b""
        while data:
            data = data[os.write(_metrics, data):]


def init(config=(), name="run", **_ignored):
    """Adds the members of `config` that the experiment file lacks. Returns this module."""
    defaults(config if isinstance(config, dict) else getattr(config, "__dict__", ()))
    globals().update(name=name, id=f"{name}-{seed}")
    return sys.modules[__name__]


def watch(*_models, **_options):
    _warn("watch", "has no effect; log norms of gradients instead")


def finish(*_arguments, **_options):
    """Records the summary at the last step, and sends everything. Later lines are sent at once."""
    log(summary, max(_last, step))
    summary.clear()
    flush()
    globals().update(_direct=True)  # threads can't start at exit


class _Module(type(sys)):
    """Lets the module be the run in `with wandb.init() as run`."""
    __exit__ = finish

    def __enter__(self):
        return self

    def __getattr__(self, name):
        if name not in ("state", "out"):
            raise AttributeError(f"{name}: not in ablate_run, which has {', '.join(__all__)}")
        path = pathlib.Path(os.environ.get("ABLATE_" + name.upper(), name))
        path.mkdir(parents=True, exist_ok=True)
        return self.__dict__.setdefault(name, path)


def _numbers(values, prefix=""):
    """Yields the keys and numbers; warns once of each key that has another value."""
    for key, value in values.items():
        key = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _numbers(value, key + "/")
            continue
        try:
            number = float(value.item() if hasattr(value, "item") else value)
        except (OverflowError, RuntimeError, TypeError, ValueError):
            number = None
        if key in ("step", "checkpoint", "progress"):
            _warn(key, "reserved name; dropped. Pass a step as log(..., step=N).")
        elif number is None or isinstance(value, str):
            _warn(key, f"not a number ({type(value).__name__}); dropped")
        else:
            yield key, number


def _append(message, send=False):
    """Adds a line to the buffer, which holds PIPE_BUF bytes. A thread sends it if it isn't full."""
    global _buffer, _thread
    if _metrics < 0:
        return
    line = _encode(message).encode() + b"\n"
    with _lock:
        if len(_buffer) + len(line) > select.PIPE_BUF:
            flush()
        _buffer += line
        if send or _direct:
            flush()
        elif _thread is None:
            _thread = threading.Thread(target=_flush_late, name="ablate_run", daemon=True)
            _thread.start()


def _flush_late():
    while True:
        time.sleep(0.25)
        flush()


def _warn(key, text):
    if key not in _warned:
        _warned.add(key)
        print(f"ablate_run: {key}: {text}", file=sys.stderr)


def _before_fork():
    _lock.acquire()
    if _stop is not None:  # a child that is told to end at once must not take it for a request
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])


def _after_fork():
    if _stop is not None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    _lock.release()


def _in_child():
    """Leaves the buffer to the parent. A child sends each line at once: it may end by os._exit."""
    global _buffer, _direct
    _buffer, _direct = b"", True
    if _stop is not None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _after_fork()


settings, summary = Settings(), Settings()
settings.update(json.loads(
    pathlib.Path(os.environ.get("ABLATE_SETTINGS", os.devnull)).read_bytes() or "{}"))
config, defaults = settings, settings.update
seed, step = (int(os.environ.get(f"ABLATE_{name}", 0)) for name in ("SEED", "STEP"))
# Processes other than forks don't inherit the descriptors, and may use the numbers for others.
_metrics, _replies = (int(os.environ.pop(f"ABLATE_{name}", -1)) for name in ("METRICS", "REPLIES"))
_metrics = _metrics if pathlib.Path(f"/proc/self/fd/{_metrics}").is_fifo() else -1
_encode = json.JSONEncoder(separators=(",", ":")).encode
_lock, _checkpoints, _warned = threading.RLock(), threading.Lock(), set()
_buffer, _direct, _thread, _stop, _count, _last = b"", False, None, None, step, -1
os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
atexit.register(finish)
sys.modules[__name__].__class__ = _Module
