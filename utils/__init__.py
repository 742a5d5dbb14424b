"""What the course's notebooks import: expectations, drills, figures and live views.

Import the part you need (`from utils.views import stride_explorer`): this package itself loads
nothing.
"""
