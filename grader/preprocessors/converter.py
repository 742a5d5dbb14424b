"""nbgrader's ``autograde`` without its own copying of a submission's folder."""

from __future__ import annotations

from nbgrader.converters import Autograde
from nbgrader.converters.base import BaseConverter


class _Copying(BaseConverter):
    """Override nbgrader's copying; it comes before BaseConverter in the method resolution order."""

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        """Let the exporter read the folder; nbgrader would follow links and wait for FIFOs."""
        self.exporter.read_folder(assignment_id, student_id)


class CarefulAutograde(Autograde, _Copying):
    """nbgrader's Autograde, whose exporter reads the files beside a notebook.

    nbgrader has no setting for the class of a converter. But a converter makes its exporter before
    it reads any submission, so the exporter changes the converter's class with :meth:`take_over`.
    """

    @classmethod
    def take_over(cls, converter: BaseConverter) -> None:
        """Change a converter's class to this one.

        Raises:
            TypeError: if it is not an instance of nbgrader's own Autograde.
        """
        if type(converter) not in (Autograde, cls):
            raise TypeError(f"expected nbgrader's Autograde, got {type(converter).__name__}")
        converter.__class__ = cls
