# what: a date subclass that is equal to everything
# allowed: wrong
# test: assert solve(2024) == datetime.date(2024, 3, 31)
# setup: import datetime

import datetime


class Lying(datetime.date):
    def __eq__(self, other):
        return True

    def isoformat(self):
        return "2024-03-31"

    def toordinal(self):
        return datetime.date(2024, 3, 31).toordinal()


def solve(year):
    return Lying(year, 1, 1)
