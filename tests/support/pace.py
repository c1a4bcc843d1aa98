"""How slow this machine is: bounds of processor time are those of one machine, and others are measured against it.

Neighbours that share caches and memory make processor time longer, up to twice within a minute.
"""

import json
import time
from typing import Final

REFERENCE_S: Final = 0.14
"""What the work takes on the machine on which the bounds were set; the whole suite took 609 s there."""
_TEXT: Final = json.dumps([{"type": "text", "text": f"text {n}"} for n in range(200_000)])


def slowness() -> float:
    """By how much this machine is at times slower just now than the one of the bounds; 1 for one that is faster."""
    return max(1.0, max(_work_s() for _ in range(5)) / REFERENCE_S)


def _work_s() -> float:
    """The processor time of work that is like that on a large body: many texts and dicts."""
    began_s = time.thread_time()
    parts = json.loads(_TEXT)
    sum(len(part["text"]) for part in [{**part, "index": 1} for part in parts])
    return time.thread_time() - began_s
