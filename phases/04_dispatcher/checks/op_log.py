"""Lab 04, exercise 2: An ear at the bottom"""


from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.lab_solution import lab_solution

LONGEST, MOST = 40, 4  # the operators of a log, and the tensors of an operator, with words

op_log = Check(
    "OpLog",
    parts={"names": 1, "shapes": 1, "nobody notices": 1},
    reads="Listening in",
)
op_log.reference(lab_solution(__name__, "OpLog"))


def _by_tensor(shapes):
    """The shapes of one operator, in a dict with a key for each tensor that a report can name.
    """
    if not isinstance(shapes, (list, tuple)):
        return shapes
    return {f"tensor {number}": shape for number, shape in enumerate(shapes, 1)}


@op_log.cases
def _(draw):
    def heard(part, program, *tensors, times=1):
        place = 0 if part == "names" else 1

        def play(subject):
            came = subject.drive("dispatch:log_ops", program, *tensors, times=times)
            told = [entry[place] for entry in came["ops"]]
            return told if part == "names" else [_by_tensor(shapes) for shapes in told]

        places = {"": "how many operators the log has"}
        for number in range(LONGEST):
            where = f"operator {number + 1} of the log"
            places[f"[{number}]"] = (
                f"{where}: this is not the full name of the operator, with namespace and overload."
                if part == "names"
                else f"{where}: the shapes of its tensors"
            )
            for tensor in range(1, MOST + 1):
                places[f"[{number}]['tensor {tensor}']"] = f"{where}: the shape of tensor {tensor}"
        return Case(part, play, shown=f"the program {program!r}", places=places)

    def unnoticed(program, *tensors):
        def play(subject):
            came = subject.drive("dispatch:log_ops", program, *tensors)
            return came["result"], len(came["ops"])

        places = {"[0]": "what the program returns", "[1]": "how many operators were heard"}
        return Case("nobody notices", play, shown=f"the program {program!r}", places=places)

    def nested(program, *tensors):
        def play(subject):
            came = subject.drive("dispatch:log_nested", program, *tensors)
            return {name: len(came[name]) for name in ("outer", "inner")}

        places = {
            "['outer']": "how many operators the outer log heard",
            "['inner']": "how many operators the inner log heard",
        }
        return Case("nobody notices", play, shown="one log inside another", places=places)

    a, b, c, d = draw.shape(4)
    programs = {
        "two layers": (draw.tensor((a, b)), draw.tensor((b, c)), draw.tensor((c, d))),
        "joined": (draw.tensor((a, b)), draw.tensor((c, b))),
        "made": (draw.tensor((a, b)),),
        "in place": (draw.tensor((a, b, c)),),
        "linear": (draw.tensor((a, b)), draw.tensor((c, b)), draw.tensor((c,))),
        "with keywords": (draw.tensor((a, b)),),
        "sorted": (draw.tensor((a, b)),),
        "there and back": (draw.tensor((a, b)), draw.tensor((c, b))),
        "attention": (draw.tensor((a, b, c)), draw.tensor((a, d, c)), draw.tensor((a, d, b))),
    }
    for program, tensors in programs.items():
        yield heard("names", program, *tensors)
        yield heard("shapes", program, *tensors)
        yield unnoticed(program, *tensors)
    yield heard("names", "in place", draw.tensor(()), times=2)
    yield heard("shapes", "made", draw.tensor((1, 3)), times=2)
    yield heard("shapes", "joined", draw.tensor((0, b)), draw.tensor((c, b)))
    yield heard("shapes", "with itself", draw.tensor((a, b)))
    yield nested("two layers", *programs["two layers"])
    yield nested("in place", *programs["in place"])
