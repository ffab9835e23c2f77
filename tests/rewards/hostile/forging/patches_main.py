# what: overwrites everything in __main__ and in the modules that are not of the standard library
# allowed: wrong crashed forbidden
# test: assert solve(3) == 4
# seconds: 1

import sys


class Liar:
    def __eq__(self, other):
        return True

    def __call__(self, *arguments, **named):
        return self

    def __getattr__(self, name):
        return self


for name, module in list(sys.modules.items()):
    if name.partition(".")[0] not in sys.stdlib_module_names or name == "__main__":
        if name != __name__:
            for attribute in [known for known in vars(module) if not known.startswith("__")]:
                setattr(module, attribute, Liar())


def solve(n):
    return Liar()
