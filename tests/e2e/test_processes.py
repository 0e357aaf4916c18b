"""What only processes of their own can show: signals, pipes, locales, a server."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.request

import pytest
from e2e.shop import write_shop

from primexmc.cli import main

LONG = ["--preset", "static-cpu", "--set", "training.epochs=4", "--set", "training.threads=1", "--quiet"]


def wait_for(condition, process, timeout_s=60.0):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.002)


@pytest.mark.slow
def test_a_training_that_is_killed_goes_on_as_if_nothing_had_been(tmp_path, command):
    write_shop(tmp_path / "shop.csv", 1000)
    arguments = ["train", str(tmp_path / "shop.csv"), *LONG, "--set", "training.batch_size=16", "--out"]
    metrics = tmp_path / "stopped" / "metrics.jsonl"
    process = command(*arguments, tmp_path / "stopped")
    wait_for(lambda: metrics.exists() and metrics.read_bytes().count(b"\n") >= 2, process)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.decode().startswith("primexmc: stopped after step ") and "--resume" in said.decode()
    assert not (tmp_path / "stopped" / "primexmc.json").exists()
    assert main([*arguments, str(tmp_path / "stopped")]) == 2, "it asks before it starts afresh"
    assert main([*arguments, str(tmp_path / "stopped"), "--resume"]) == 0
    assert main([*arguments, str(tmp_path / "whole")]) == 0
    assert not (tmp_path / "stopped" / "training").exists()
    for name in ("network.safetensors", "prototypes.safetensors", "encoder/vectors.safetensors", "labels.jsonl"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_a_reader_that_has_seen_enough_ends_it_quietly(model, tmp_path, command):
    (tmp_path / "many.txt").write_text("red kettle\n" * 20_000, encoding="utf-8")
    process = command("predict", model, tmp_path / "many.txt")
    assert json.loads(process.stdout.readline())["text"] == "red kettle"
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == b""


def test_answers_come_as_questions_do_and_in_utf8_whatever_the_locale(model, command):
    process = command("predict", model, "--top", "1", stdin=subprocess.PIPE, locale="C")
    for text in ("théière 茶", "red kettle"):
        process.stdin.write(text.encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline().decode("utf-8"))["text"] == text  # stdin is still open
    process.stdin.close()
    assert process.wait(timeout=60) == 0


def test_the_server_answers_and_ends_when_told(model, command):
    process = command("serve", model, "--port", "0")
    address = process.stdout.readline().decode().split()[-1]
    body = json.dumps({"texts": ["secret kettle", ""], "top": 2}).encode()
    with urllib.request.urlopen(f"{address}/predict", body, timeout=30) as response:
        results = json.load(response)["results"]
    assert results[0]["labels"][0]["label"] == "Home, kitchen & dining" and results[1] == {"labels": []}
    with urllib.request.urlopen(f"{address}/info", timeout=30) as response:
        assert json.load(response)["labels"] == 12
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "POST /predict 200" in log.decode() and "secret" not in log.decode()
