# what: a class named Solution, made and asked by the test
# allowed: correct
# test: assert Solution().add(3) == 4
# test: s = Solution(); s.start = 10; assert s.add(3) == 14
# entry: Solution


class Solution:
    start = 0

    def add(self, n: int) -> int:
        return self.start + n + 1
