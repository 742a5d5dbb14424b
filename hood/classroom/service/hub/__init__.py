"""The sample settings of a JupyterHub with the service, and what a hub's own settings mean."""

from pathlib import Path

CONFIG = Path(__file__).with_name("jupyterhub_config.py")
