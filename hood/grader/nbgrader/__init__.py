"""Run nbgrader's commands, and patch nbgrader; `patches` names the version and the reasons."""
