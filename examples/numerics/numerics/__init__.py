"""What the lessons of this course import, and what its sandboxes start with."""
