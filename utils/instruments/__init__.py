"""Instruments to look into PyTorch: traces, compiling, dispatch, devices and simulated ranks."""
