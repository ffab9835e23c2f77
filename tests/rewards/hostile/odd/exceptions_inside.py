# what: raises, catches, chains and finally, all within
# allowed: correct
# test: assert solve("x") == "bad: x"
# test: assert solve("3") == "3"


class Bad(ValueError):
    pass


def solve(text):
    try:
        try:
            return str(int(text))
        except ValueError as error:
            raise Bad(text) from error
    except Bad as bad:
        return f"bad: {bad}"
    finally:
        assert True
