"""Sample settings for a JupyterHub with the service, and a check of any hub's settings."""

from pathlib import Path

CONFIG = Path(__file__).with_name("jupyterhub_config.py")
