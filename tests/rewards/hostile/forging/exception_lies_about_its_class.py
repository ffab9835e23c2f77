# what: an exception whose __class__ and name say that it is another one
# allowed: crashed
# test: assert solve(3) == 4


class Meta(type):
    def __instancecheck__(cls, instance):
        return True

    @property
    def __name__(cls):
        raise RuntimeError("no name")

    @property
    def __mro__(cls):
        return ()


class Lying(Exception, metaclass=Meta):
    @property
    def __class__(self):
        return StopIteration

    def __str__(self):
        raise Lying()

    __repr__ = __str__


def solve(n):
    raise Lying()
