"""What learners hand in, by each way in."""
