# what: speaks the protocol itself and answers each call with another value that is not in the format, or odd
# allowed: wrong crashed
# test: assert any(tried(n) for n in range(60))
# setup: def tried(n):
# setup:     try:
# setup:         return solve(n) == 4
# setup:     except Exception:
# setup:         return False

import json
import os
import struct

DEEP = "[" * 50_000 + "]" * 50_000
FORMS = [
    '["value", {"a": 1}]',
    '["value", ["dict", [[["list", []], 4]]]]',
    '["value", ["int", "zz"]]',
    '["value", ["int", 4]]',
    '["value", ["range", ["0x0", "0x4", "0x0"]]]',
    '["value", ["Fraction", ["0x4", "0x0"]]]',
    '["value", ["Decimal", "sNaN"]]',
    '["value", ["Decimal", "4e999999999999999999"]]',
    '["value", ["date", "0000-00-00"]]',
    '["value", ["timedelta", ["a"]]]',
    '["value", ["type", "NotImplementedType"]]',
    '["value", ["type", "object"]]',
    '["value", ["theirs", -1]]',
    '["value", ["theirs", true]]',
    '["value", ["theirs", 1e999]]',
    '["value", ["theirs", 99999999999]]',
    '["value", ["ours", 0]]',
    '["value", ["opaque", 4]]',
    '["value", ["iterator", 4]]',
    '["value", ["set", [["list", []]]]]',
    '["value", ["str", 4]]',
    '["value", ["float", true]]',
    '["value", ["complex", "44"]]',
    '["value", ["bytes", "4"]]',
    '["value", ["items", [[1]]]]',
    '["value", []]',
    '["value", [4]]',
    '["value", [4, 4, 4]]',
    '["value"]',
    '["value", 4, 4]',
    "[]",
    "4",
    "null",
    "NaN",
    "{}",
    '["correct", ""]',
    '["returned", 4]',
    '["callback", 0, ["tuple", []]]',
    '["callback", -1, ["tuple", []]]',
    '["callback", true, 4]',
    '["callback", "0", 4]',
    '["raise", 4]',
    '["raise", ["AssertionError", ""]]',
    '["raise", [["Unusable"], 4]]',
    '["raise", [["type", "eval", "__import__", 4, null], null]]',
    '["raise", [[], ""]]',
    '["raise", [["ExceptionGroup"], ""]]',
    '["raise", [["UnicodeDecodeError"], ""]]',
    '["raise", [["StopIteration"], ""]]',
    '["raise", [["StopAsyncIteration"], {}]]',
    '["value", ' + DEEP + "]",
    DEEP,
    "[" * 100_000,
    '"\\ud800"',
    "\x00",
    '["value", "' + "x" * 1_000_000 + '"]',
    '["value", 1e400]',
    '["value", ' + "9" * 5_000 + "]",
    '["value", ["int", "' + "f" * 1_000_000 + '"]]',
    '["value", "4"]',
]


def exactly(count):
    data = b""
    while len(data) < count:
        part = os.read(3, count - len(data))
        if not part:
            os._exit(0)
        data += part
    return data


def say(text):
    data = text.encode()
    data = struct.pack("!I", len(data)) + data
    while data:
        data = data[os.write(3, data) :]


while True:
    question = json.loads(exactly(struct.unpack("!I", exactly(4))[0]))
    if question[0] == "defined":
        say('["value", ["list", ["solve"]]]')
    elif question[0] == "lookup":
        say('["value", ["theirs", 0]]')
    else:
        say(FORMS.pop(0) if FORMS else '["value", 3]')
