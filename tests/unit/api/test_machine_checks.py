"""What the doctor says of the machine: the certificate's end and names, the disk's speed, the clock beside vendors'."""

from email.utils import formatdate
from pathlib import Path

import msgspec
import pytest

from gwd.api import machine_checks
from gwd.api.doctor_record import Check
from gwd.core.clock import US_PER_DAY, US_PER_S, SystemClock
from gwd.settings.sections import Server
from tests.support import certificates

NOW_S = 1_793_523_600


def certificate(directory: Path, days: int, base_url: str, at_days: int = 0) -> Check:
    certificates.server_tls(directory, host="*.gw.example", days=days)
    server = Server(
        tls_cert=str(directory / "server.pem"), tls_key="x", base_url=f"https://{base_url}/api/v1"
    )
    return machine_checks.certificate(server, SystemClock().now_us() + at_days * US_PER_DAY)


def test_a_certificate_is_well_while_it_is_good_and_for_the_address(tmp_path: Path) -> None:
    well = certificate(tmp_path, 90, "eu.gw.example")
    assert (well.state, well.do) == ("ok", "")
    assert well.message.startswith("*.gw.example, until 20")
    soon = certificate(tmp_path, 90, "eu.gw.example", at_days=75)
    assert soon.state == "warning"
    assert "gwctl server reload" in soon.do
    over = certificate(tmp_path, 90, "eu.gw.example", at_days=91)
    assert (over.state, over.message.endswith("it has ended")) == ("failed", True)
    for other in ("gw.example", "a.eu.gw.example", "gw.example.org"):
        check = certificate(tmp_path, 90, other)
        assert (check.state, f"not for {other} of base_url" in check.message) == ("warning", True)


def test_a_certificate_that_is_gone_or_broken_is_a_failure(tmp_path: Path) -> None:
    server = Server(tls_cert=str(tmp_path / "gone.pem"), base_url="https://a.example/api/v1")
    assert machine_checks.certificate(server, 0).state == "failed"
    (tmp_path / "gone.pem").write_text("-----BEGIN CERTIFICATE-----\nno\n")
    assert machine_checks.certificate(server, 0).state == "failed"
    none = machine_checks.certificate(msgspec.structs.replace(server, tls_cert=""), 0)
    assert none.state == "ok"


def vendors(*skews_s: float) -> dict[str, tuple[str, int]]:
    """What vendors said at a moment at which this node was so far ahead of each."""
    return {
        f"vendor-{place}": (
            formatdate(NOW_S, usegmt=True),
            int((NOW_S + 0.5 + skew_s) * US_PER_S),
        )
        for place, skew_s in enumerate(skews_s)
    }


@pytest.mark.parametrize(
    ("skews_s", "state"),
    [((), "ok"), ((3.0,), "ok"), ((-30.0,), "warning"), ((400.0,), "failed")],
)
def test_the_clock_is_held_against_vendors(skews_s: tuple[float, ...], state: str) -> None:
    check = machine_checks.vendor_clocks(vendors(*skews_s))
    assert check.state == state
    assert (check.do == "") == (state == "ok")


def test_one_vendor_with_a_wrong_clock_is_that_vendors_matter() -> None:
    assert machine_checks.vendor_clocks(vendors(900.0, 0.4, -70.0)).state == "ok"
    ahead = machine_checks.vendor_clocks(vendors(900.0, 90.0)).message
    assert ahead == "90 s ahead of vendor-1, the nearest of 2 vendors"


def test_a_date_that_is_none_is_passed_over() -> None:
    odd = {"a": ("yesterday", 0), "b": ("", 0), "c": ("Sun, 99 Nov 2026 09:00:00 GMT", 0)}
    assert machine_checks.vendor_clocks(odd).state == "ok"
    assert "1 vendors" in machine_checks.vendor_clocks(odd | vendors(30.0)).message


def test_the_disk_is_judged_by_half_and_by_the_slowest_writes(tmp_path: Path) -> None:
    def state(*waits_s: float) -> str:
        return machine_checks.disk_speed(tmp_path, waits_s).state

    assert state(*[0.002] * 64) == "ok"
    assert state(*[0.002] * 63, 0.5) == "warning"
    assert state(*[0.05] * 64) == "warning"
    assert state(*[0.4] * 3) == "failed"
    shown = machine_checks.disk_speed(tmp_path, [0.001] * 63 + [0.03]).message
    assert shown == "a durable write takes 1.0 ms, 30.0 ms at 99 of 100"


def test_the_disk_is_measured_where_the_node_lies_and_nothing_stays(tmp_path: Path) -> None:
    waits_s = machine_checks.measured(tmp_path)
    assert isinstance(waits_s, list)
    assert 1 <= len(waits_s) <= machine_checks.WRITES
    assert all(wait_s > 0 for wait_s in waits_s)
    assert list(tmp_path.iterdir()) == []
    failed = machine_checks.measured(tmp_path / "gone")
    assert isinstance(failed, OSError)
    assert machine_checks.disk_speed(tmp_path, failed).state == "failed"
