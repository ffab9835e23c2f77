# what: imports of rarer modules inside of the function
# allowed: correct
# test: assert solve("a,b") == ["a", "b"]


def solve(text):
    import calendar
    import colorsys
    import copy
    import csv
    import difflib
    import hashlib
    import html.parser
    import io
    import json
    import secrets
    import unicodedata
    import xml.etree.ElementTree
    import zlib

    assert json.loads(json.dumps({"a": [1]})) == {"a": [1]} and zlib.decompress(zlib.compress(b"x")) == b"x"
    assert calendar.isleap(2024) and hashlib.sha256(b"").hexdigest()[:4] == "e3b0" and secrets.randbelow(1) == 0
    assert unicodedata.normalize("NFC", "e\u0301") == "\u00e9" and difflib.get_close_matches("a", ["a"]) == ["a"]
    assert colorsys.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0) and html.unescape("&lt;") == "<"
    assert xml.etree.ElementTree.fromstring("<a>1</a>").text == "1"
    return copy.deepcopy(next(csv.reader(io.StringIO(text))))
