"""Shared by all tests: one thread, no display, no network, folders of their own."""

import os
import signal
import socket

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Started in the background of a script, a process ignores SIGINT and so do its children, which the tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    import torch

    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    """Refuse connections to other machines; sockets between processes of this one stay allowed."""
    connect = socket.socket.connect

    def refuse(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in (
            "127.0.0.1",
            "::1",
            "localhost",
        ):
            raise AssertionError(f"a test tried to reach {address}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def run_dir(tmp_path):
    """A new run folder."""
    from moopt.runs import RunDir

    return RunDir.create(
        tmp_path / "run", algo="cmorl", env="deep-sea-treasure-v0", seed=0, config={"x": 1}, total_steps=10
    )
