# what: two functions of the program that undo each other
# allowed: correct
# test: assert decode(solve("hello")) == "hello"
# test: assert all(decode(solve(text)) == text for text in ("", "a", "zebra"))
# test: assert solve("abc") == solve("abc")


def solve(text):
    return "".join(chr((ord(letter) - 92) % 26 + 97) for letter in text)


def decode(text):
    return "".join(chr((ord(letter) - 102) % 26 + 97) for letter in text)
