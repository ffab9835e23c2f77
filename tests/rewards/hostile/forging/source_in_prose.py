# what: an explanation instead of a program
# allowed: crashed
# test: assert solve(3) == 4

The function solve adds one to its argument; it's therefore 4.
