"""The hostile corpus: tests/rewards/jail/hostile/<category>.toml, one table per program.

    what = "one line"
    allowed = ["wrong", "crashed"]              # the verdicts that the program may get
    tests = ["assert solve(3) == 4"]            # what an attack tries to pass
    setup = "import math"                       # runs before the tests, on their side
    entry_point = "solve"                       # the default; "none" if the judge is not told
    needs = ["seccomp"]                         # layers without which the verdict cannot be promised
    seconds = 2                                 # of CPU time
    memory_mb = 128
    transform = 'text.replace("\\n", "\\r\\n")'   # an expression that turns `source`, as `text`, into what is judged
    source = '''…'''

`what`, `allowed`, `tests` and `source` are required. A program does not contain its own tests. An attack is written so
that its success is what the tests ask for: a verdict of `correct` outside odd.toml is a hole.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewards.sandbox import Program

FOLDER = Path(__file__).parent / "hostile"
CATEGORIES = ("escape", "forging", "odd", "resources", "wrong")
REQUIRED = {"what", "allowed", "tests", "source"}
OPTIONAL = {"setup", "entry_point", "needs", "seconds", "memory_mb", "transform"}
SECONDS = {"resources": 0.5}  # a category's default: short, to keep the whole run short
MAX_SECONDS = 2.0
# One program for each mechanism: what `make test` runs. All of them are for `make test-full`.
MECHANISMS = {
    "escape": """
        abstract_socket any_environment bpf capabilities change_owner chroot clone_three dies_later_than_its_parent
        enter_a_namespace environment_secret_in_memory exec_by_the_loader exec_from_memory hard_link imports_the_judge
        inherited_descriptors internet_socket io_uring keyring leaves_by_dot_dot list_processes loads_its_own_library
        make_device mount open_by_handle poison_the_standard_library ptrace_parent read_home read_memory_of_others
        read_proc_environ reads_the_tests sends_a_descriptor signals_to_others symbolic_link system_calls_of_32_bits
        unix_socket user_namespace write_everywhere write_shared_memory""",
    "forging": """
        answers_by_caller answers_not_implemented atexit_reports_success audit_hook callback_attributes class_property
        closes_every_descriptor container_of_liars counts_the_calls cyclic_value entry_is_lying_class
        equal_to_everything exception_text_is_endless exit_zero_in_call forges_bytes_of_descriptors
        generator_raises_assertion huge_text import_hook lying_int lying_str not_a_number object_is_callable
        os_exit_zero_on_import patched_json pickles_with_reduce prints_success protocol_wrong_forms
        raises_assertion_error reads_the_next_request redefines_isinstance_in_builtins redefines_the_tests_helper
        replies_before_it_is_asked rewrites_small_ints rewrites_type_slots searches_frames searches_its_memory_by_ctypes
        signal_handlers source_with_nul swaps_descriptors thread_keeps_writing trace_changes_locals""",
    "odd": """
        cached callable_object class_with_state decorators exceptions_inside generator large_return special_floats
        standard_library threads""",
    "resources": """
        big_file callback_without_end catches_everything cpu_loop deadlock deep_recursion_in_c endless_attributes
        floods_stdout fork_bomb judge_computes_a_power judge_drains_a_range kills_everything many_descriptors
        memory_by_list memory_by_memfd memory_by_mmap nested_source segmentation_fault sleeps_in_slices thread_bomb
        trickles_a_reply""",
    "wrong": "off_by_one text_for_a_number",
}


@dataclass(frozen=True)
class Hostile:
    """A program, the verdicts that it may get, and the layers needed to be sure of them."""

    name: str  # category/name
    what: str
    allowed: frozenset[str]
    needs: frozenset[str]
    program: Program

    @property
    def category(self) -> str:
        """The file that the program is in."""
        return self.name.partition("/")[0]

    @property
    def is_quick(self) -> bool:
        """Whether the program ends before its seconds are used up: it may not be judged a timeout."""
        return "timeout" not in self.allowed


def read_corpus() -> list[Hostile]:
    """Return all programs, sorted by category, then in the order of the file."""
    return [
        _hostile(path.stem, name, entry)
        for path in sorted(FOLDER.glob("*.toml"))
        for name, entry in tomllib.loads(path.read_text(encoding="utf-8")).items()
    ]


def one_a_mechanism(programs: Sequence[Hostile]) -> list[Hostile]:
    """Return the programs that `MECHANISMS` names. Raises KeyError for a name that is not there."""
    named = {hostile.name: hostile for hostile in programs}
    return [named[f"{category}/{name}"] for category, names in MECHANISMS.items() for name in names.split()]


def _hostile(category: str, name: str, entry: Mapping[str, Any]) -> Hostile:
    assert set(entry) <= REQUIRED | OPTIONAL, name
    assert entry["tests"], name
    for code in [entry.get("setup", ""), *entry["tests"]]:
        compile(code, name, "exec")
    text, entry_point = entry["source"], entry.get("entry_point", "solve")
    program = Program(
        source=eval(entry["transform"], {"text": text}) if "transform" in entry else text,
        tests=tuple(entry["tests"]),
        setup=entry.get("setup", ""),
        entry_point=None if entry_point == "none" else entry_point,
        seconds=float(entry.get("seconds", SECONDS.get(category, MAX_SECONDS))),
        memory_mb=entry.get("memory_mb", 512),
    )
    assert program.seconds <= MAX_SECONDS, name
    allowed, needs = frozenset(entry["allowed"]), frozenset(entry.get("needs", ()))
    return Hostile(f"{category}/{name}", entry["what"], allowed, needs, program)
