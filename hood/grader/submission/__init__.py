"""Read a submission, repair it and identify its parts. No learner's code runs here."""
