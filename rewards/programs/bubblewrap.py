"""Builds the command line that starts a warden in bubblewrap: in new namespaces, with Python mounted read-only."""

import os
import sys
from pathlib import Path

SYSTEM = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
PACKAGE = Path(__file__).parent  # rewards/programs
INSIDE = Path("/jail")
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/",
    "TZ": "UTC",
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "0",
    "MALLOC_ARENA_MAX": "1",  # otherwise each thread reserves 64 MB of address space
    "PYTHONDONTWRITEBYTECODE": "1",
}


def readable_folders() -> list[Path]:
    """Return the folders that a program may read: the system's libraries, the Python installation and this package."""
    prefix = Path(sys.base_prefix).resolve()
    folders = [Path("/usr"), PACKAGE] if prefix.is_relative_to("/usr") else [Path("/usr"), prefix, PACKAGE]
    return [*folders, *(Path(name) for name in SYSTEM if Path(name).is_dir() and not Path(name).is_symlink())]


def command(wrapper: str, program: str) -> list[str]:
    """Return the command that runs `python -c program` in bubblewrap, offline and with only `readable_folders` mounted.

    The warden keeps CAP_SYS_ADMIN within the sandbox's user namespace, so that it can give each program a PID
    namespace. Every process that the warden forks drops this capability before it runs anything untrusted. All
    processes inside die with the thread that started bubblewrap.
    """
    words = [wrapper, "--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534", "--hostname", "sandbox"]
    words += ["--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--new-session", "--die-with-parent", "--clearenv"]
    for name, value in ENVIRONMENT.items():
        words += ["--setenv", name, value]
    for folder in readable_folders():
        inside = INSIDE / "rewards" / PACKAGE.name if folder == PACKAGE else folder
        words += ["--ro-bind", str(folder), str(inside)]
    for name in SYSTEM:
        if os.path.islink(name):
            words += ["--symlink", os.readlink(name), name]
    words += ["--proc", "/proc", "--dir", "/dev", "--dev-bind", "/dev/null", "/dev/null", "--chdir", "/"]
    return [*words, "--remount-ro", "/", "--", *interpreter(INSIDE, program)]


def interpreter(root: Path, program: str) -> list[str]:
    """Return the command that runs `program` in a Python that sees only its standard library and code in `root`."""
    code = f"import sys; sys.path.insert(0, {str(root)!r}); {program}"
    python = os.path.realpath(sys.executable)  # its real path is outside any virtual environment
    return [python, "-s", "-S", "-B", "-P", "-c", code]  # not -I: it would ignore the hash seed
