"""A JupyterHub with the service: a sample of its settings, and what tries it on one machine."""
