# what: dates, times and differences
# allowed: correct
# test: assert solve(2024) == datetime.date(2024, 3, 1)
# test: assert moment(2024) == datetime.datetime(2024, 2, 29, 12, 30)
# test: assert (solve(2024) - datetime.date(2024, 2, 28)).days == 2
# setup: import datetime

from datetime import date, datetime, timedelta


def solve(year):
    return date(year, 2, 28) + timedelta(days=2)


def moment(year):
    return datetime(year, 2, 28, 12, 30) + timedelta(days=1)
