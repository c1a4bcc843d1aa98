"""Fixtures that every folder of tests may ask for."""

from tests.support.node import gateway

__all__ = ["gateway"]
