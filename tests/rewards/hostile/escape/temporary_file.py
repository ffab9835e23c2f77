# what: asks the standard library for a temporary file, wherever that finds a place
# allowed: crashed forbidden
# test: assert solve() == 1

import tempfile


def solve():
    with tempfile.NamedTemporaryFile(prefix="nightschool-hostile-", delete=False) as file:
        return file.write(b"x")
