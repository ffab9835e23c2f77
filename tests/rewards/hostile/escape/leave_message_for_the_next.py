# what: leaves a message in every file that could outlive it
# allowed: wrong
# test: assert len(solve()) > 0

import os


def solve():
    places = []
    for folder in ("/tmp", "/dev/shm", "/var/tmp", "/run", "/dev", "/jail", os.getcwd(), os.path.expanduser("~")):
        try:
            descriptor = os.open(f"{folder}/nightschool-hostile-message", os.O_CREAT | os.O_WRONLY, 0o666)
            places += [folder] if os.write(descriptor, b"message") else []
        except OSError:
            continue
    return places
