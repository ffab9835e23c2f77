"""Builds the seccomp filter and the Landlock ruleset for untrusted processes, outside the sandbox.

It uses maintained libraries for both: libseccomp through pyseccomp, and py-landlock. Functions that build a filter or
a ruleset raise SandboxUnavailable if the machine lacks what they need.
"""

import contextlib
import errno
import os
import resource
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from conf.schema import SandboxConfig

# The system calls that computation needs: memory, time, threads, reading allowed files, using open descriptors.
ALLOWED = """
    read write readv writev pread64 close fstat newfstatat stat lstat statx lseek getdents64 readlink readlinkat
    open openat access faccessat faccessat2 getcwd dup dup2 dup3 pipe pipe2 poll ppoll select pselect6 close_range
    epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait
    mmap mprotect munmap mremap madvise brk membarrier
    rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait sigaltstack restart_syscall
    setitimer getitimer alarm pause
    getpid gettid getppid getuid geteuid getgid getegid getgroups getpgrp getpgid getsid
    futex set_robust_list get_robust_list rseq set_tid_address sched_yield sched_getaffinity sched_getparam
    sched_getscheduler sched_get_priority_max sched_get_priority_min getpriority
    clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times getrusage getrlimit
    getrandom uname sysinfo getcpu arch_prctl exit exit_group
""".split()
# These system calls fail instead of killing the process: the standard library tries them but can do without.
REFUSED = {"ioctl": errno.ENOTTY, "clone3": errno.ENOSYS, "prctl": errno.EPERM, "sched_setaffinity": errno.EPERM}
FCNTL_QUERIES = (1, 2, 3, 1030)  # F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC
CLONE_THREAD = 0x00010000


Layer = Literal["bubblewrap", "landlock", "seccomp", "limits", "pid_namespace"]


class SandboxUnavailable(Exception):
    """This machine cannot isolate programs. The message says what is missing and how to get it."""


def seccomp_program(pid_namespace: bool = True) -> bytes:
    """Return a BPF program that kills a process at any unlisted system call. It allows threads, but no new processes.

    `pid_namespace`: the process will have PID 1 in a PID namespace of its own. It may then send signals to itself.
    """
    try:
        import pyseccomp
    except (ImportError, RuntimeError) as error:
        raise SandboxUnavailable(
            f"seccomp: libseccomp is missing ({error}); install it (apt install libseccomp2)"
        ) from None
    rules = pyseccomp.SyscallFilter(pyseccomp.KILL_PROCESS)
    with contextlib.suppress(OSError):  # libseccomp before 2.5 has only a linear search
        rules.set_attr(pyseccomp.Attr.CTL_OPTIMIZE, 2)
    for name in ALLOWED:
        _add(rules, pyseccomp.ALLOW, name)
    thread = pyseccomp.Arg(0, pyseccomp.MASKED_EQ, CLONE_THREAD, CLONE_THREAD)
    _add(rules, pyseccomp.ALLOW, "clone", thread)
    for command in FCNTL_QUERIES:
        _add(rules, pyseccomp.ALLOW, "fcntl", pyseccomp.Arg(1, pyseccomp.EQ, command))
    _add(rules, pyseccomp.ALLOW, "prlimit64", pyseccomp.Arg(2, pyseccomp.EQ, 0))  # reading limits
    setting = pyseccomp.Arg(2, pyseccomp.NE, 0)
    stack, other = (pyseccomp.Arg(1, sign, resource.RLIMIT_STACK) for sign in (pyseccomp.EQ, pyseccomp.NE))
    # programs raise the stack limit before deep recursion: pretend that this succeeds
    _add(rules, pyseccomp.ERRNO(0), "prlimit64", setting, stack)
    _add(rules, pyseccomp.ERRNO(errno.EPERM), "prlimit64", setting, other)
    if pid_namespace:
        _add(rules, pyseccomp.ALLOW, "tgkill", pyseccomp.Arg(0, pyseccomp.EQ, 1))  # for raise() and abort()
    for name, number in REFUSED.items():
        _add(rules, pyseccomp.ERRNO(number), name)
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()


def landlock_ruleset(readable: Sequence[Path]) -> int:
    """Return the descriptor of a ruleset that allows reading below the `readable` folders and no other file access."""
    from py_landlock import errors, flags, landlock_sys
    from py_landlock.abi import get_supported_fs

    try:
        handled = get_supported_fs(landlock_sys.get_abi_version())
        ruleset = landlock_sys.create_ruleset(landlock_sys.RulesetAttr(handled_access_fs=handled))
    except errors.LandlockError as error:
        raise SandboxUnavailable(
            f"Landlock: {error}; boot a kernel of 5.13 or later with `landlock` among lsm="
        ) from None
    reading = flags.AccessFs.READ_FILE | flags.AccessFs.READ_DIR  # loading a library needs no EXECUTE
    for folder in readable:
        descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        try:
            landlock_sys.add_rule(ruleset, landlock_sys.PathBeneathAttr(allowed_access=reading, parent_fd=descriptor))
        finally:
            os.close(descriptor)
    return ruleset


def missing_layers() -> dict[Layer, str]:
    """Return those of the layers seccomp and Landlock that this machine lacks, each with the reason and a remedy."""
    missing: dict[Layer, str] = {}
    attempts: dict[Layer, Callable[[], object]] = {
        "seccomp": seccomp_program,
        "landlock": lambda: os.close(landlock_ruleset(())),
    }
    for layer, attempt in attempts.items():
        try:
            attempt()
        except SandboxUnavailable as reason:
            missing[layer] = str(reason)
    return missing


def tolerated(config: SandboxConfig) -> frozenset[Layer]:
    """Return the sandbox layers that this machine lacks and that `allow_missing` in the configuration lists."""
    return frozenset(missing_layers().keys() & set(config.allow_missing)) if config.allow_missing else frozenset()


def _add(rules: object, action: int, name: str, *arguments: object) -> None:
    """Add a rule, or do nothing if this architecture lacks the system call (arm64 has no `open`)."""
    with contextlib.suppress(OSError):
        rules.add_rule(action, name, *arguments)  # pyrefly: ignore[missing-attribute]
