"""Test the checks: the answers that they accept and reject, and the mistakes that they name."""
