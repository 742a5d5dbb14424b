"""The modules that this course's lessons import, and the modules that its sandboxes start with."""
