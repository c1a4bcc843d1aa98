"""What the doctor looks at of the machine: the certificate, the disk's speed, and its clock beside the vendors'."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from time import perf_counter
from typing import Final
from urllib.parse import urlsplit

from gwd.api.doctor_record import Check
from gwd.core.certificate import read_certificate
from gwd.core.clock import US_PER_DAY, US_PER_S, iso
from gwd.settings.sections import Server

SOON_DAYS: Final = 21
LITTLE_SKEW_S: Final = 5.0
MUCH_SKEW_S: Final = 60.0
WRITES: Final = 64
WRITE_BYTES: Final = 4_096
MEASURE_S: Final = 1.0
SLOW_S: Final = 0.02
SLOWEST_S: Final = 0.2
MS_PER_S: Final = 1_000


def certificate(server: Server, now_us: int) -> Check:
    """The listener's own: when it ends, and whether clients of `base_url` take it."""
    if not server.tls_cert:
        return Check(name="certificate", state="ok", message="none: the node speaks plain HTTP")
    try:
        found = read_certificate(Path(server.tls_cert))
    except (OSError, ValueError) as error:
        return Check(
            name="certificate",
            state="failed",
            message=f"{server.tls_cert} cannot be read: {error}",
            do="put the certificate back in place, as PEM, before the node is started again",
        )
    left_days = (found.ends_us - now_us) // US_PER_DAY
    message = f"{', '.join(found.names) or 'no names'}, until {iso(found.ends_us)}"
    if left_days < SOON_DAYS:
        return Check(
            name="certificate",
            state="failed" if left_days < 0 else "warning",
            message=message if left_days >= 0 else f"{message}: it has ended",
            do=f"put the next one at {server.tls_cert}, then gwctl server reload",
        )
    host = urlsplit(server.base_url).hostname or ""
    if not any(_is_for(host, name) for name in found.names):
        return Check(
            name="certificate",
            state="warning",
            message=f"{message}, not for {host} of base_url",
            do=f"get one for {host}, or set [server] base_url to a name that it is for",
        )
    return Check(name="certificate", state="ok", message=message)


def _is_for(host: str, name: str) -> bool:
    """Whether a certificate's name covers the host; a star stands for one label."""
    if name.startswith("*."):
        return host.partition(".")[2] == name[2:].lower()
    return host == name.lower()


def vendor_clocks(dates: Mapping[str, tuple[str, int]]) -> Check:
    """This node's clock beside the `date` of each vendor's last answer; the vendor that is nearest counts."""
    skews = {provider: skew for provider, at in dates.items() if (skew := _skew_s(*at)) is not None}
    if not skews:
        message = "no vendor has said its time since the start"
        return Check(name="time", state="ok", message=message)
    provider, skew_s = min(skews.items(), key=lambda each: abs(each[1]))
    if abs(skew_s) <= LITTLE_SKEW_S:
        return Check(name="time", state="ok", message=f"within {abs(skew_s):.0f} s of {provider}")
    return Check(
        name="time",
        state="failed" if abs(skew_s) > MUCH_SKEW_S else "warning",
        message=f"{abs(skew_s):.0f} s {'ahead of' if skew_s > 0 else 'behind'} {provider}, the nearest of"
        f" {len(skews)} vendors",
        do="have the machine's clock set over the network: timedatectl set-ntp true",
    )


def _skew_s(date: str, at_us: int) -> float | None:
    """How far this node was ahead when the answer came. A `date` is cut to its second, so half of one is added."""
    try:
        vendors_s = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None
    return at_us / US_PER_S - vendors_s - 0.5


def measured(directory: Path) -> list[float] | OSError:
    """How long each of some small durable writes took, in seconds; for a second at most."""
    waits_s: list[float] = []
    block = bytes(WRITE_BYTES)
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            until_s = perf_counter() + MEASURE_S
            while len(waits_s) < WRITES and perf_counter() < until_s:
                began_s = perf_counter()
                file.write(block)
                file.flush()
                os.fsync(file.fileno())
                waits_s.append(perf_counter() - began_s)
    except OSError as error:
        return error
    return waits_s


def disk_speed(directory: Path, waits_s: Sequence[float] | OSError) -> Check:
    """Every request waits for two durable writes: a slow disk makes all of them slow."""
    if isinstance(waits_s, OSError):
        return Check(
            name="disk speed",
            state="failed",
            message=f"nothing can be written in {directory}: {waits_s.strerror or waits_s}",
            do=f"look at the file system of {directory}: is it full, or mounted read-only?",
        )
    in_order = sorted(waits_s)
    half_s, most_s = in_order[len(in_order) // 2], in_order[len(in_order) * 99 // 100]
    message = (
        f"a durable write takes {half_s * MS_PER_S:.1f} ms, {most_s * MS_PER_S:.1f} ms at 99 of 100"
    )
    if half_s <= SLOW_S and most_s <= SLOWEST_S:
        return Check(name="disk speed", state="ok", message=message)
    return Check(
        name="disk speed",
        state="failed" if half_s > SLOWEST_S else "warning",
        message=message,
        do=f"put {directory} on a local solid-state disk, and look for what else writes to it",
    )
