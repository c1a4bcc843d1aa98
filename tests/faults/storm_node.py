"""The daemon that the storm restarts; it keeps its health every half second, so that a kill has something to find."""

from gwd.jobs import health
from tests.faults import killed_node


def main() -> int:
    health.KEEP_S = 0.5  # type: ignore[misc]
    return killed_node.main()
