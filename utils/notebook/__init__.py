"""What a notebook's cells ask and show: expectations, verdicts, drills, progress and figures."""
