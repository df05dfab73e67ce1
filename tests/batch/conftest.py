"""What tests of batches share."""

import signal
import threading

import pytest


@pytest.fixture
def interrupts():
    """Ctrl-C reaches this thread, also where a shell has the tests in the background."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals reach the main thread alone, and this is another")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
