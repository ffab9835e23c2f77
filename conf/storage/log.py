"""The program's log: `log`, under the logger `nightschool`."""

import logging

log = logging.getLogger("nightschool")
