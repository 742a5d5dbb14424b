"""nbgrader's ``autograde``, with its own copying of a submission's folder taken out."""

from __future__ import annotations

from nbgrader.converters import Autograde
from nbgrader.converters.base import BaseConverter


class _Copying(BaseConverter):
    """Stands before nbgrader's own class in the order of calls, where that would copy."""

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        """Read the folder by :mod:`grader.submission.files`; nbgrader would follow links, wait for
        FIFOs.
        """
        self.exporter.read_folder(assignment_id, student_id)


class CarefulAutograde(Autograde, _Copying):
    """nbgrader's Autograde; what lies beside a notebook comes from its exporter.

    nbgrader makes its converters by name and has no setting for their class. So the exporter, which
    a converter makes before it looks into any submission, makes its converter one of these.
    """

    @classmethod
    def take_over(cls, converter: BaseConverter) -> None:
        """Make this of a converter.

        Raises:
            TypeError: when it is not nbgrader's own Autograde, which is all that is known here.
        """
        if type(converter) not in (Autograde, cls):
            raise TypeError(f"expected nbgrader's Autograde, got {type(converter).__name__}")
        converter.__class__ = cls
