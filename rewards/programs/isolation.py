"""Drops the privileges of a sandboxed process before that process runs anything untrusted.

This module runs inside the sandbox and imports only the standard library. The seccomp filter and the Landlock ruleset
come from outside, where `rewards.programs.policy` builds them: as a BPF program and as a file descriptor.
"""

import ctypes
import os
import resource
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWPID = 0x20000000
MNT_DETACH = 2
MS_RDONLY, MS_REMOUNT, MS_BIND = 1, 32, 4096
# The flags of statvfs(3), mapped to those of mount(2): nosuid, noexec, noatime, nodiratime, relatime.
LOCKED_FLAGS = {2: 2, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
SECCOMP_MODE_FILTER = 2
LANDLOCK_RESTRICT_SELF = 446  # the same number on every architecture
CAPABILITY_VERSION_3 = 0x20080522
SIGKILL = 9
INSTRUCTION_BYTES = 8  # per instruction of a seccomp program


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def filter_system_calls(program: bytes) -> None:
    """Load a compiled seccomp filter. From then on, any system call that it does not list kills the process."""
    loaded = _Filter(len(program) // INSTRUCTION_BYTES, program)
    _checked(LIBC.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(loaded), 0, 0), "seccomp")


def drop_privileges() -> None:
    """Start a new session, die with the parent, forbid ptrace, and permanently drop all capabilities."""
    os.setsid()  # a PID namespace does not bound a process group: a signal to the group would reach the warden
    _checked(LIBC.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0), "parent-death signal")
    _checked(LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "dumpable")
    _checked(LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _checked(LIBC.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "ambient capabilities")
    header, nothing = struct.pack("=Ii", CAPABILITY_VERSION_3, 0), bytes(24)
    _checked(LIBC.capset(header, nothing), "capabilities")


def restrict_files(ruleset: int) -> None:
    """Apply Landlock. From then on, only files that the ruleset allows can be opened."""
    _checked(LIBC.syscall(LANDLOCK_RESTRICT_SELF, ruleset, 0), "Landlock")


def limit(cpu_seconds: float, address_space: int) -> None:
    """Set the kernel's resource limits. `address_space` is in bytes. The CPU limit is a backup for the warden's own."""
    cpu = int(cpu_seconds) + 2
    for kind, value in (
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_AS, address_space),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        resource.setrlimit(kind, (value, value))


class PidNamespaces:
    """Forks each child as process 1 of a new PID namespace, so that killing the child kills all its descendants."""

    def __init__(self) -> None:
        self.own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def fork(self) -> int:
        """Fork like os.fork, but with the child in a new PID namespace."""
        _checked(LIBC.unshare(CLONE_NEWPID), "PID namespace")
        try:
            return os.fork()
        finally:  # so that the next fork starts from this namespace
            LIBC.setns(self.own, CLONE_NEWPID)


def hide_proc() -> None:
    """Hide /proc from this process and its future children. Call this only inside the sandbox's mount namespace."""
    _checked(LIBC.umount2(b"/proc", MNT_DETACH), "umount /proc")


def protect_null() -> None:
    """Remount /dev/null read-only: it still accepts writes, but the host file's mode and times cannot change.

    The kernel requires a remount to repeat the mount's existing restrictions (mount_namespaces(7), locked flags).
    """
    forbidden = os.statvfs("/dev/null").f_flag
    flags = sum(mount for held, mount in LOCKED_FLAGS.items() if forbidden & held)
    _checked(LIBC.mount(None, b"/dev/null", None, MS_REMOUNT | MS_BIND | MS_RDONLY | flags, None), "/dev/null")


def _checked(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
