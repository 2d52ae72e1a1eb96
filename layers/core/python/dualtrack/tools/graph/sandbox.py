"""What the engine's process gives up before its first query: three layers, each in force where the platform allows it.

limits     no further descriptor, process or thread: nothing can be opened; by setrlimit(2), which every kernel has
landlock   no file but the database, no TCP, no signal to others; by landlock(7), from Linux 5.13 on
seccomp    no system call but those of a query that runs (`CALLS`); by seccomp(2)

The last two need prctl(2), which some platforms refuse. Imports nothing of dualtrack: `child` loads it by its path.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct

TYPE_CHECKING = False  # typing is not loaded here
if TYPE_CHECKING:
    from collections.abc import Callable

_PR_SET_NO_NEW_PRIVS = 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ_FILE = 1 << 2
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many rights to files a version of Landlock knows; 16 from the fifth on."""

_SET_MODE_FILTER, _ALL_THREADS = 1, 1
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in ``struct seccomp_data``; both processors are little-endian."""
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050001
"""What a filter returns; the last makes the call fail with EPERM."""

PROCESSORS = ("x86_64", "aarch64")
CALLS = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "stat": (4, None), "fstat": (5, 80),
    "lstat": (6, None), "poll": (7, None), "lseek": (8, 62), "mmap": (9, 222), "mprotect": (10, 226),
    "munmap": (11, 215), "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139), "pread64": (17, 67), "readv": (19, 65), "writev": (20, 66),
    "access": (21, None), "sched_yield": (24, 124), "mremap": (25, 216), "madvise": (28, 233),
    "nanosleep": (35, 101), "getpid": (39, 172), "exit": (60, 93), "uname": (63, 160),
    "gettimeofday": (96, 169), "getrlimit": (97, None), "getrusage": (98, 165), "sysinfo": (99, 179),
    "times": (100, 153), "sigaltstack": (131, 132), "gettid": (186, 178), "time": (201, None),
    "futex": (202, 98), "sched_getaffinity": (204, 123), "restart_syscall": (219, 128),
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115),
    "exit_group": (231, 94), "newfstatat": (262, 79), "faccessat": (269, 48), "ppoll": (271, 73),
    "preadv": (295, 69), "getcpu": (309, 168), "getrandom": (318, 278), "membarrier": (324, 283),
    "statx": (332, 291), "set_robust_list": (273, 99), "rseq": (334, 293),
}  # fmt: skip
"""What a query that runs may call, for memory, time, its threads and open descriptors: the number on each processor.

A thread of the engine may make its first calls, the last two, after the filter is set: glibc aborts if rseq fails."""

OWN_CALLS = {"tgkill": (234, 131), "prlimit64": (302, 261)}
"""What it may call for itself alone: its end by abort(3), and its own limits."""

_ARCHITECTURES = (0xC000003E, 0xC00000B7)
_SECCOMP = (317, 277)


def refusal(layer: Callable[..., None], *arguments: str) -> str:
    """Why the layer is not in force; empty if it is."""
    try:
        layer(*arguments)
    except (OSError, ValueError) as error:  # ValueError: the resource module's
        return str(error)
    return ""


def landlock(database: str) -> None:
    """Restrict this thread, and those that it starts later. OSError where the platform has none."""
    version = _call(_CREATE_RULESET, 0, 0, 1)
    rights = (1 << _FILE_RIGHTS.get(version, 16)) - 1
    size = 8 if version < 4 else 16 if version < 6 else 24
    asked = ctypes.create_string_buffer(struct.pack("QQQ", rights, 0b11, 0b11), 24)
    rules = _call(_CREATE_RULESET, ctypes.addressof(asked), size, 0)
    file = os.open(database, os.O_PATH)
    rule = ctypes.create_string_buffer(struct.pack("=Qi", _READ_FILE, file))
    try:
        _call(_ADD_RULE, rules, 1, ctypes.addressof(rule), 0)
        _no_new_privileges()
        _call(_RESTRICT_SELF, rules, 0)
    finally:
        os.close(file)
        os.close(rules)


def limits() -> None:
    """Allow no descriptor beyond the open ones; and no further process or thread, where the user is not root."""
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, free))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def seccomp() -> None:
    """Restrict all threads. OSError where the platform refuses it."""
    machine = os.uname().machine
    if machine not in PROCESSORS:
        raise OSError(f"no filter for {machine}")
    program = filter_for(machine, os.getpid())
    code = ctypes.create_string_buffer(program)
    whole = ctypes.create_string_buffer(struct.pack("HP", len(program) // 8, ctypes.addressof(code)))
    _no_new_privileges()
    number = _SECCOMP[PROCESSORS.index(machine)]
    if stray := _call(number, _SET_MODE_FILTER, _ALL_THREADS, ctypes.addressof(whole)):
        raise OSError(f"thread {stray} cannot be restricted")


def filter_for(machine: str, process: int) -> bytes:
    """The filter as instructions of 8 bytes."""
    processor = PROCESSORS.index(machine)
    right = (_EQUAL, 1, 0, _ARCHITECTURES[processor])
    steps = [(_LOAD, 0, 0, _ARCHITECTURE), right, (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    for numbers in CALLS.values():
        if (number := numbers[processor]) is not None:
            steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ALLOW)]
    for name, own in (("tgkill", process), ("prlimit64", 0)):
        steps += [(_EQUAL, 0, 4, OWN_CALLS[name][processor]), (_LOAD, 0, 0, _FIRST_ARGUMENT)]
        steps += [(_EQUAL, 0, 1, own), (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    steps += [(_RETURN, 0, 0, _REFUSE)]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def _no_new_privileges() -> None:
    """What the kernel asks of a process that is not privileged, before it restricts itself."""
    _checked(_libc().prctl(_PR_SET_NO_NEW_PRIVS, *map(ctypes.c_ulong, (1, 0, 0, 0))))


def _call(number: int, *arguments: int) -> int:
    return _checked(_libc().syscall(*map(ctypes.c_long, (number, *arguments))))


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
