"""gwd serve: one daemon per directory, reachable where the settings say, ending cleanly."""

import signal
import socket

import httpx

from tests.commands.conftest import free_port


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
