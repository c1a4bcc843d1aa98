"""`gwd` with a follower that has the source's log begin anew every 40 frames: many turns in a short test."""

from gwd import __main__
from gwd.backups import following


def main() -> None:
    following.LONG_FRAMES = 40  # type: ignore[misc]
    __main__.main()
