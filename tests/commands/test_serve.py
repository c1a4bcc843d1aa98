"""gwd serve: one daemon per directory, reachable where the settings say, ending cleanly."""

import signal
import socket
import ssl
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gwd.jobs.service_manager import watchdog_gap_s
from gwd.node.errors import text_of
from gwd.store.connection import ReadOnlyDatabaseError, open_connection
from tests.cases.caserunner.ports import free_port
from tests.support.warm import WarmProcess


def test_the_operator_key_of_init_opens_the_management_api(serve, made):
    port = free_port()
    with serve(port):
        url = f"http://127.0.0.1:{port}/api/v1/credits"
        answer = httpx.get(url, headers={"authorization": f"Bearer {made['management_key']}"})
        assert answer.status_code == 200
        assert answer.json()["data"]["available"] == 5


def test_sigterm_ends_it_with_zero_and_the_books_are_whole(gwd, serve, made):
    with serve(free_port()) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0
    assert gwd("check", "--config", "node").code == 0


def test_a_second_daemon_and_the_stopped_nodes_commands_are_refused_with_the_pid(gwd, serve, made):
    with serve(free_port()) as process:
        again = gwd("serve", "--config", "node", "--port", str(free_port()))
        assert again.code == 1
        assert f"another gwd (pid {process.pid}) uses" in again.err
        assert again.err.count("\n") == 1
        assert "stop it first" in gwd("check", "--config", "node").err


def test_killed_and_started_again_it_serves(serve):
    port = free_port()
    with serve(port) as process:
        process.kill()
        process.wait()
    with serve(port):
        pass


def test_readiness_is_told_to_systemd(serve, tmp_path):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(10)
        with serve(free_port(), NOTIFY_SOCKET=path) as process:
            assert manager.recv(100) == b"READY=1"
            process.send_signal(signal.SIGTERM)
            assert manager.recv(100) == b"STOPPING=1"


def test_the_watchdog_hears_of_a_living_node(serve, tmp_path):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(path)
        manager.settimeout(10)
        with serve(free_port(), NOTIFY_SOCKET=path, WATCHDOG_USEC="300000"):
            heard = [manager.recv(100) for _ in range(4)]
    assert heard == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1", b"WATCHDOG=1"]


def test_another_process_of_the_service_is_not_watched():
    assert watchdog_gap_s({"WATCHDOG_USEC": "30000000"}) == 10
    assert watchdog_gap_s({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}) is None
    assert watchdog_gap_s({}) is None


def write_certificate(directory: Path, name: str) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    (directory / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (directory / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


def certificate_name(port: int) -> str:
    pem = ssl.get_server_certificate(("127.0.0.1", port))
    found = x509.load_pem_x509_certificate(pem.encode()).subject
    return str(found.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def wait_for_line(process: WarmProcess, said: str) -> str:
    for _ in range(400):
        for line in process.err.read_text().splitlines():
            if said in line:
                return line
        assert process.poll() is None
        time.sleep(0.05)
    pytest.fail(f"in twenty seconds it did not say {said!r}")


def test_a_new_certificate_is_taken_on_sighup_and_a_broken_one_is_not(serve, made, tmp_path):
    directory, port = tmp_path / "node", free_port()
    write_certificate(directory, "first")
    with (directory / "gwd.toml").open("a") as settings:
        settings.write('[server]\ntls_cert = "cert.pem"\ntls_key = "key.pem"\n')
    text = (directory / "gwd.toml").read_text().replace("[server]\n", "", 1)
    (directory / "gwd.toml").write_text(text)
    with serve(port, "https") as process:
        assert certificate_name(port) == "first"
        write_certificate(directory, "second")
        process.send_signal(signal.SIGHUP)
        wait_for_line(process, "reloaded")
        assert certificate_name(port) == "second"
        (directory / "cert.pem").write_text("broken")
        process.send_signal(signal.SIGHUP)
        wait_for_line(process, "the old one stays")
        assert certificate_name(port) == "second"


def test_mistakes_stop_the_start_with_one_line(gwd, made, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for arguments, said in [
            (("--port", port), "the port is in use"),
            (("--host", "0.0.0.0"), "not a loopback address"),
            (("--config", "nowhere"), "run `gwd init"),
        ]:
            done = gwd("serve", "--config", "node", *arguments)
            assert done.code == 1
            assert said in done.err
            assert done.err.count("\n") == 1
    (tmp_path / "node" / "keyring.json").chmod(0o640)
    assert "chmod 600" in gwd("serve", "--config", "node").err


def test_a_missing_database_is_not_made_by_the_way(gwd, made, tmp_path):
    (tmp_path / "node" / "gwd.db").unlink()
    before = sorted(file.name for file in (tmp_path / "node").iterdir())
    done = gwd("serve", "--config", "node", "--port", str(free_port()))
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert "gwd.db does not exist; run `gwd init` or restore a backup" in done.err
    assert sorted(file.name for file in (tmp_path / "node").iterdir()) == before


def test_a_database_that_cannot_be_written_is_one_line(made, tmp_path, monkeypatch):
    # Root may write whatever the mode says, so SQLite is told that it may not.
    real = apsw.Connection
    monkeypatch.setattr(
        apsw,
        "Connection",
        lambda path, **more: real(path, **{**more, "flags": apsw.SQLITE_OPEN_READONLY}),
    )
    with pytest.raises(ReadOnlyDatabaseError, match="cannot be written") as caught:
        open_connection(str(tmp_path / "node" / "gwd.db"), "writer")
    assert text_of(caught.value) == str(caught.value)


def test_a_manager_that_does_not_listen_is_only_a_warning(serve, tmp_path):
    with serve(free_port(), NOTIFY_SOCKET=str(tmp_path / "nobody")) as process:
        assert "READY=1 was not sent" in wait_for_line(process, "NOTIFY_SOCKET")


@pytest.mark.parametrize(
    ("arguments", "environ", "said"),
    [
        (("--host", "0.0.0.0"), {}, "error: --host: 0.0.0.0 is not a loopback address"),
        ((), {"GWD_SERVER_HOST": "0.0.0.0"}, "error: GWD_SERVER_HOST: 0.0.0.0 is not a loopback"),
        (
            (),
            {"GWD_SERVER_METRICS_PORT": "8080"},
            "error: GWD_SERVER_METRICS_PORT: 8080 is the port",
        ),
        (("--config", ""), {}, "it is empty; name a directory"),
    ],
)
def test_a_mistake_is_named_where_it_was_made(gwd, made, arguments, environ, said):
    done = gwd("serve", "--config", "node", *arguments, environ=environ)
    assert done.code in (1, 2)
    assert said in done.err
