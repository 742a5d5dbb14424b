"""The service's jobs of a learner who is removed from the gradebook."""

from nbgrader.api import Gradebook
from sqlalchemy import select

from hood.classroom.gradebook.service_jobs import JOBS, State
from hood.classroom.nbgrader.guard import guard


def job(learner):
    words = dict.fromkeys(("lab", "exercise", "cells"), "")
    return {"id": learner, "learner": learner, "state": State.DONE, "received": 0.0} | words


def test_to_remove_a_student_removes_their_jobs_and_no_others(tmp_path):
    guard()
    with Gradebook(f"sqlite:///{tmp_path}/gradebook.db") as gradebook:
        for student in ("ana", "eve"):
            gradebook.add_student(student)
        gradebook.remove_student("ana")  # before the service has made its table
        gradebook.add_student("ana")
        JOBS.metadata.create_all(gradebook.engine)
        with gradebook.engine.begin() as connection:
            flags = {"teaches": False, "long": False}
            connection.execute(JOBS.insert(), [job(one) | flags for one in ("ana", "eve")])
        gradebook.remove_student("eve")
        assert gradebook.db.scalars(select(JOBS.c.learner)).all() == ["ana"]
        assert [student.id for student in gradebook.students] == ["ana"]
