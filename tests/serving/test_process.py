"""`primexmc serve` as a process: what it prints, what signals do, and what it says where something is missing."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from serving.served import wait_for

import primexmc
from primexmc.cli import main
from primexmc.serving.serve import listen

SOURCE = Path(primexmc.__file__).parents[1]


@pytest.fixture
def start(model_path):
    """Starts it; gives the process and its port."""
    started = []

    def run(*arguments, **variables):
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", **variables}
        command = [sys.executable, "-m", "primexmc", "serve", str(model_path), "--port", "0", *arguments]
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
        )
        started.append(process)
        line = process.stdout.readline()
        assert line.startswith(f"serving {model_path} at http://127.0.0.1:"), process.stderr.read()
        return process, int(line.rpartition(":")[2])

    yield run
    for process in started:
        process.kill()
        process.communicate()


def predict(port, texts, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/predict", json.dumps({"texts": texts}), headers or {})
    response = connection.getresponse()
    answer = response.status, json.loads(response.read())
    connection.close()
    return answer


def test_sigterm_lets_requests_finish_and_takes_no_new_ones(start):
    process, port = start()
    assert predict(port, ["kettle"])[0] == 200
    answers = []
    many = ["kettle and saucepan " * 200] * 1024
    clients = [threading.Thread(target=lambda: answers.append(predict(port, many))) for _ in range(2)]
    for client in clients:
        client.start()
    wait_for(lambda: waiting(port) > 0)
    process.send_signal(signal.SIGTERM)
    for client in clients:
        client.join(60)
    assert [status for status, _ in answers] == [200, 200]
    assert all(len(answer["results"]) == 1024 for _, answer in answers)
    _, log = process.communicate(timeout=30)
    assert process.returncode == 0 and "Traceback" not in log
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def waiting(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    return sum(float(line.split()[1]) for line in lines if line.startswith("primexmc_waiting_requests "))


def test_sighup_reads_the_model_again(start):
    process, port = start()
    process.send_signal(signal.SIGHUP)
    assert "generation 2" in process.stderr.readline()
    assert predict(port, ["kettle"])[0] == 200
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0


def test_the_key_comes_from_the_environment_or_a_file(start, tmp_path):
    (tmp_path / "key").write_text("the-files-key\n")
    _, port = start("--api-key-file", str(tmp_path / "key"))
    assert predict(port, ["kettle"])[0] == 401
    assert predict(port, ["kettle"], {"Authorization": "Bearer the-files-key"})[0] == 200
    _, port = start(PRIMEXMC_API_KEY="the-other-key")
    assert predict(port, ["kettle"], {"X-API-Key": "the-other-key"})[0] == 200


def test_answers_do_not_wait_for_acknowledgements():
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_one_sentence_for_what_cannot_be(model_path, capsys, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", str(model_path), "--port", str(port)]) == 2
    assert f"cannot listen at 127.0.0.1:{port}: Address already in use." in capsys.readouterr().err
    assert main(["serve", str(model_path), "--queue", "0"]) == 2
    assert "--queue is more than 0, not 0." in capsys.readouterr().err
    for module in [name for name in sys.modules if name.startswith("primexmc.serving")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve", str(model_path)]) == 2
    assert capsys.readouterr().err == (
        'primexmc: error: serving needs uvicorn, which is not installed: pip install "primexmc[serve]".\n'
    )
