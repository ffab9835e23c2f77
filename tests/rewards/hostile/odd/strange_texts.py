# what: texts with every kind of character, lone surrogates included
# allowed: correct
# test: assert solve("a") == "a\x00\n\r\t\\\"'\u2028\U0001f600\ud800é"
# test: assert len(solve("")) == 11


def solve(text):
    return text + "\x00\n\r\t\\\"'\u2028\U0001f600\ud800" + "é"
