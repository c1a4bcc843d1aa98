"""The node that examples are played on."""

from tests.support.node import gateway

__all__ = ["gateway"]
