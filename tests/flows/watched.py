"""Runs a command in a network of its own, and writes down whatever it sends to anywhere but itself.

    unshare --net --mount python watched.py SEEN COMMAND…

Everything beyond loopback, names to be looked up included, is routed into a TUN device, from which it is read here: an
attempt is seen though nobody answers. Sockets that others could connect to are looked for four times a second.
"""

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000  # linux/if_tun.h
RESOLVER = "192.0.2.53"
NETWORK = """
link set lo up
address add 192.0.2.2/24 dev outside
link set outside up
route add default dev outside
address add 2001:db8::2/64 dev outside nodad
route add ::/0 dev outside
"""
SENDING = {1: "ICMP", 6: "TCP", 17: "UDP"}  # what the kernel says by itself on a new link (ICMPv6, IGMP) is left out
LISTENING = "0A"  # of /proc/net/tcp


@cache
def can_watch() -> bool:
    """Whether this machine lets a network be made: root, or user namespaces; a TUN device; the ip command."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*_watching(Path(folder) / "seen"), "true"]
        try:
            return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
        except OSError:
            return False


def watching(seen: Path) -> list[str]:
    """What to put in front of a command to have it watched; nothing where that cannot be."""
    return _watching(seen) if can_watch() else []


def _watching(seen: Path) -> list[str]:
    user = ["--user", "--map-root-user"] if os.geteuid() else []
    return ["unshare", "--net", "--mount", *user, sys.executable, __file__, str(seen)]


def main(seen: str, *command: str) -> int:
    """Runs the command, writes a line into `seen` for each thing that is seen, and returns the command's exit code."""
    device = _outside()
    with Path(seen).open("a", buffering=1) as notes, tempfile.NamedTemporaryFile("w") as resolver:
        resolver.write(f"nameserver {RESOLVER}\n")
        resolver.flush()
        subprocess.run(["mount", "--bind", resolver.name, "/etc/resolv.conf"], check=True)
        done = threading.Event()
        threading.Thread(target=_note_packets, args=(device, notes), daemon=True).start()
        looking = threading.Thread(target=_note_listeners, args=(done, notes))
        looking.start()
        signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is the command's, whose handler is the usual one again
        code = subprocess.run(command, check=False).returncode
        done.set()
        looking.join()
    return code if code >= 0 else 128 - code


def _outside() -> int:
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"outside", IFF_TUN | IFF_NO_PI))
    subprocess.run(["ip", "-batch", "-"], input=NETWORK.strip(), text=True, check=True)
    return device


def _note_packets(device: int, notes: Any) -> None:
    while True:
        packet = os.read(device, 65536)
        if packet[0] >> 4 == 4:
            header, kind, to = 4 * (packet[0] & 15), packet[9], socket.inet_ntop(socket.AF_INET, packet[16:20])
        else:
            header, kind, to = 40, packet[6], socket.inet_ntop(socket.AF_INET6, packet[24:40])
        if kind in SENDING:
            (port,) = struct.unpack("!H", packet[header + 2 : header + 4])
            content = "".join(chr(byte) if 32 < byte < 127 else "." for byte in packet[header + 8 :][:80])
            print(f"sent {SENDING[kind]} to {to} port {port}: {content}", file=notes)


def _note_listeners(done: threading.Event, notes: Any) -> None:
    known: set[str] = set()
    while not done.wait(0.25):
        for version in ("tcp", "tcp6"):
            for line in Path("/proc/net", version).read_text().splitlines()[1:]:
                _, where, _, state, *_ = line.split()
                if state == LISTENING and where not in known and not _is_loopback(where.split(":")[0]):
                    known.add(where)
                    print(f"listens on {where}, which others can reach", file=notes)


def _is_loopback(address: str) -> bool:
    """Of an address as the kernel writes it: hexadecimal, each 32 bits with the last byte first."""
    return (
        address[-2:] == "7F" if len(address) == 8 else address in (f"{'0' * 24}01000000", f"{'0' * 16}FFFF00000100007F")
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
