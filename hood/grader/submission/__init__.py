"""Read what a learner handed in, repair it and identify it. No learner's code runs here."""
