"""MiniGPT, the course's running example: a small grammar model over English and Spanish verbs."""

from utils.minigpt.config import MiniGPTConfig

__all__ = ["MiniGPTConfig"]
