"""`python -m gwd.backups ORDER`: one copy by the clock in a process of its own, so that nobody waits for it.

ORDER is JSON; what became of it is one JSON object on standard output.
"""

import os
import sys
from typing import Final

import msgspec

from gwd.backups.making import Order, make

NICENESS: Final = 10


def _path(kind: type, value: object) -> object:
    return kind(value)


if __name__ == "__main__":
    os.nice(NICENESS)
    order = msgspec.json.decode(sys.argv[1], type=Order, dec_hook=_path)
    sys.stdout.buffer.write(msgspec.json.encode(make(order)))
