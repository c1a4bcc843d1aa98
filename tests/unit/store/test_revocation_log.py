"""The file of what was taken away: what a kill, a full disk or another node's file leave of it."""

import os
from pathlib import Path

import pytest

from gwd.store.revocation_log import Revocation, RevocationLog, RevocationLogError

NODE = "org_one"


def line(seq: int) -> Revocation:
    return Revocation(seq=seq, at_us=seq, what="key.disabled", id=f"key_{seq}", value=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with three lines."""
    path = tmp_path / "gwd.revocations"
    log = RevocationLog(path)
    assert log.open(NODE) == []
    log.append([line(1), line(2)])
    log.append([line(3)])
    log.close()
    return path


def read(path: Path) -> list[int]:
    log = RevocationLog(path)
    try:
        return [each.seq for each in log.open(NODE)]
    finally:
        log.close()


def test_it_is_private_and_goes_on_where_it_ended(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600
    log = RevocationLog(path)
    assert log.open(NODE) == [line(1), line(2), line(3)]
    assert log.last_seq == 3
    log.append([line(4)])
    log.close()
    assert read(path) == [1, 2, 3, 4]


def test_a_line_that_was_cut_off_anywhere_is_dropped_and_the_next_one_is_whole(path: Path) -> None:
    content = path.read_bytes()
    end = content.rindex(b"\n", 0, -1) + 1
    for cut in range(end, len(content)):
        path.write_bytes(content[:cut])
        log = RevocationLog(path)
        assert log.open(NODE) == [line(1), line(2)]
        log.append([line(9)])
        log.close()
        assert read(path) == [1, 2, 9]


def test_a_head_that_was_cut_off_is_written_again(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:10])
    assert read(path) == []
    assert path.read_bytes().startswith(b'{"node":"org_one"')


def test_a_line_in_the_middle_that_is_damaged_is_named(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = b'{"seq":1,"at_us"\n'
    path.write_bytes(b"".join(lines))
    with pytest.raises(RevocationLogError, match=r"line 2 of .* is damaged"):
        RevocationLog(path).open(NODE)


def test_the_log_of_another_node_is_refused(path: Path) -> None:
    with pytest.raises(RevocationLogError, match=r"log of another node \(org_one\)"):
        RevocationLog(path).open("org_two")


def test_what_could_not_be_written_is_not_there(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = RevocationLog(path)
    log.open(NODE)

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="Input/output"):
            log.append([line(4)])
    assert log.last_seq == 3
    log.append([line(5)])
    log.close()
    assert read(path) == [1, 2, 3, 5]


def test_what_no_copy_needs_is_left_out(path: Path) -> None:
    log = RevocationLog(path)
    log.open(NODE)
    log.keep(NODE, [line(3)])
    log.append([line(4)])
    log.close()
    assert read(path) == [3, 4]
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o777 == 0o600
