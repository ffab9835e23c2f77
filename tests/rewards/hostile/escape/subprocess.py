# what: runs a shell
# allowed: forbidden crashed
# test: assert solve() == "4"

import subprocess


def solve():
    return subprocess.run(["/bin/sh", "-c", "echo 4"], capture_output=True, text=True, check=True).stdout.strip()
