"""Lab 02, exercise 1: Three lines, five adjoints"""

from hood.judge.checks.exercise import Case, Check, Paste

from .shared import many_digits

scalar_adjoints = Check(
    "scalar_adjoints",
    parts={"down to the fork": 1, "where two paths meet": 1},
    reads="Three lines, by hand",
)


@scalar_adjoints.reference
def _(a, b):
    of_d = 2 * (a * b + a)
    return {"L": 1, "d": of_d, "c": of_d, "b": of_d * a, "a": of_d * b + of_d}


@scalar_adjoints.cases
def _(draw):
    def adjoints(part, a, b, names, shown):
        def play(subject):
            found = subject(a, b)
            return [as_float(found[name]) for name in names]

        places = {f"[{k}]": f"the adjoint of `{name}`" for k, name in enumerate(names)}
        return Case(part, play, places=places, shown=shown)

    def exact(part, a, b, names):
        """A case as in `adjoints`, for numbers with more digits than a float has."""

        def play(subject):
            found = subject.drive("exact:adjoints", a, b)
            return [found[name] for name in names]

        places = {f"[{k}]": f"the adjoint of `{name}`" for k, name in enumerate(names)}
        shows = {f"[{k}]": f"{{}}[{name!r}]" for k, name in enumerate(names)}
        paste = Paste("scalar_adjoints(Exact({}), Exact({}))", (a, b), shows)
        return Case(part, play, places=places, shown="exact numbers", paste=paste)

    def as_float(value):
        """Return a plain number as a float, even if it is an int."""
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if plain else value

    def eighths():
        return draw.integer(3, 30) / 8

    for shown, a, b in (
        ("d below 0", eighths(), -1 - eighths()),
        ("a and b above 0", eighths(), eighths()),
        ("a below 0", -eighths(), eighths()),
        ("a = 0", 0.0, eighths()),
        ("b = 0", eighths(), 0.0),
        ("b = -1, where d is 0", eighths(), -1.0),
    ):
        yield adjoints("down to the fork", a, b, "Ldcb", shown)
        yield adjoints("where two paths meet", a, b, "a", shown)
    long = many_digits(draw), -many_digits(draw)
    yield exact("down to the fork", *long, "Ldcb")
    yield exact("where two paths meet", *long, "a")
