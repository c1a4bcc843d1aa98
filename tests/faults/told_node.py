"""A real daemon that looks for deliveries twenty times a second, so that a short life has some on their way."""

from gwd import wiring
from tests.faults import killed_node


def main() -> int:
    vars(wiring)["DELIVERIES_S"] = 0.05
    return killed_node.main()
