"""What a learner wrote or showed is made safe to show."""
