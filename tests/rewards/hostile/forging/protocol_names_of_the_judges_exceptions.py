# what: reports an exception by the names of the judge's own, among them those that end a test well
# allowed: crashed wrong
# test: assert solve(3) == 4

import json
import os
import struct

while True:
    length = os.read(3, 4)
    if len(length) < 4:
        os._exit(0)
    question = json.loads(os.read(3, struct.unpack("!I", length)[0]))
    reply = {"defined": ["value", ["list", ["solve"]]], "lookup": ["value", ["theirs", 0]]}.get(
        question[0], ["raise", [["CandidateGone", "Unusable", "Correct", "SystemExit"], "correct"]]
    )
    data = json.dumps(reply).encode()
    os.write(3, struct.pack("!I", len(data)) + data)
