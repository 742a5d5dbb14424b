"""For all tests: an interrupt interrupts."""

import signal


def pytest_configure() -> None:
    """A shell lets what it runs in the background ignore SIGINT, and that is inherited."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
