# what: says that it defines every name, and gives other things than functions for them
# allowed: wrong crashed
# test: assert solve(3) == 4
# test: assert isinstance(solve(3), int)

import json
import os
import struct

while True:
    length = os.read(3, 4)
    if len(length) < 4:
        os._exit(0)
    question = json.loads(os.read(3, struct.unpack("!I", length)[0]))
    names = ["solve", "assert", "isinstance", "int", "__builtins__", "__name__", "AssertionError"]
    reply = {"defined": ["value", ["list", names]], "lookup": ["value", ["type", "type"]]}.get(
        question[0], ["value", 4]
    )
    data = json.dumps(reply).encode()
    os.write(3, struct.pack("!I", len(data)) + data)
