# what: an exception text that would repaint the owner's terminal or break out of a report
# allowed: crashed
# test: assert solve(3) == 4


def solve(n):
    raise ValueError("\x1b]0;correct\x07\x1b[2J\x1b[1;1H<script>correct</script>\r\x00\x9b\u202e\u2028 correct")
