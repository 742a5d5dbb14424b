"""Lab 06, exercise 7: Get the code"""

import re

import torch

from hood.judge.checks.exercise import Case, Check
from utils.drivers.compiling import fresh
from utils.drivers.emitting import FUNCTION, LOG, SETTING, VARIABLE

generated = Check(
    "generated",
    parts={"there": 1, "and back": 1, "nothing left on": 1},
    reads="How to look, anywhere",
)


# lines that are in each module that Inductor writes: the first, one before the function `call`, one
# after it
FIRST, BEGINS = "# AOT ID: ", "async_compile = AsyncCompile()"
ENDS = 'if __name__ == "__main__":'
SIZES = re.compile(r"assert_size_stride\(\w+, \(([^()]*)\), \(")
PRODUCTS = re.compile(r"^ *(?:\w+ = )?extern_kernels\.\w+\(", re.M)


@generated.reference
def _(function, *inputs):
    """Doesn't run Inductor: writes the necessary lines of each module from Dynamo's graphs."""
    texts, graphs = [], []

    def backend(gm, _):
        def run(*given):
            graphs.append((gm, given))
            return gm.forward(*given)

        return run

    with fresh():
        result = torch.compile(function, backend=backend)(*inputs)
    back = result.requires_grad
    if back:
        result.sum().backward()
    for gm, given in graphs:
        count = sum(node.op == "call_function" for node in gm.graph.nodes)
        for start in ("arg", "tangents_") if back else ("arg",):
            laid = [f"{tuple(one.shape)}, {tuple(one.stride())}" for one in given]
            lines = [f"assert_size_stride({start}{at}, {one})" for at, one in enumerate(laid)]
            lines += ["extern_kernels.mm(out=buf0)"] * count
            body = "\n    ".join(["def call(args):", *lines])
            texts.append(f"{FIRST}\n{BEGINS}\n\n{body}\n\n{ENDS}\n    pass")
    return texts


LEFT = {
    LOG: "The level or the handlers of a log are not as they were before.",
    SETTING: "A setting of torch is not as it was before.",
    VARIABLE: "An environment variable is not as it was before.",
    FUNCTION: "One of torch's own functions is still replaced.",
}


def _said(text):
    """How many library products a module calls, and whether the module is a backward."""
    return len(PRODUCTS.findall(text)), "tangents_1" in text or "tangents_0" in text


def _is_whole(text):
    begins, _, rest = text.partition("def call(")
    return begins.lstrip().startswith(FIRST) and BEGINS in begins and ENDS in rest


def _facts(counts, x, w, back, wide, fails, texts, raised):
    """Facts that must be true of the texts that a call returns, the simplest facts first."""
    if fails:  # on the way back; whoever never goes there has lost another point by it
        return {}
    fails = 0 in counts
    listed = isinstance(texts, list | tuple) and all(isinstance(text, str) for text in texts)
    facts = {"let out": raised or not fails, "listed": listed or fails}
    if fails or not listed:
        return facts
    due = [(count, way) for count in counts for way in ((False, True) if back else (False,))]
    stride = f"({x.shape[0]}, {x.shape[1]}), ({x.shape[1] + wide}, 1)"
    sizes = {", ".join(map(str, one.shape)) for one in (x, w)}
    return {
        **facts,
        "any": len(texts) > 0,
        "least": len(texts) >= len(due),
        "most": len(texts) <= len(due),
        "sizes": all(set(SIZES.findall(text)) == sizes for text in texts),
        "strides": any(stride in text for text in texts),
        "products": sorted(map(_said, texts)) == sorted(due),
        "whole": all(_is_whole(text) for text in texts),
    }


PLACES = {
    "let out": "The compiled function raised an error, and this error did not reach the caller.",
    "listed": "The result is not a list of texts.",
    "python": "Python can't parse a text with `ast.parse`.",
    "any": "There is no text.",
    "least": "There are fewer texts than the call has modules.",
    "most": "There are more texts than the call has modules.",
    "once": "The function is not called exactly once.",
    "sizes": "A text does not have the sizes of this call's inputs, written as numbers.",
    "strides": "No text has the strides of this call's inputs.",
    "whole": "A text is not a whole module: its beginning or its end is missing.",
    "products": "The texts and the modules of this call do not have the same products.",
}


@generated.cases
def _(draw):
    there, back, switched = generated.parts

    def asked(part, *all_counts, again=False, fails=False, **how):
        m, n = draw.sample(range(2, 9), 2)
        w = draw.tensor((n, n))
        calls = [(counts, draw.tensor((m + at, n)), w) for at, counts in enumerate(all_counts)]
        if again:  # with other sizes between the two
            calls.append(calls[0])

        needs = part == back or fails
        how.update({"wide": True} if again else {}, **({"fails": True} if fails else {}))

        def play(subject):
            came = subject.drive("emitting:dumped", *calls, back=needs, **how)
            found = []
            for at, given in enumerate(calls):
                goes_back, wide = needs and "cut" not in how, again and at > 0
                facts = _facts(*given, goes_back, wide, fails, came["texts"][at], came["raised"][at])
                if part == switched:  # what its own process says
                    facts["python"] = all(came["python"][at])
                    facts["once"] = fails or came["passed"][at] == (len(given[0]) > 1)
                    facts |= {word: word in came["left"][at] for word in LEFT}
                found.append(facts)
            return found

        places = {}
        for at in range(len(calls)):
            which = f"In call {at + 1}: " if len(calls) > 1 else ""
            for key, words in {**PLACES, **LEFT}.items():
                places[f"[{at}]['{key}']"] = which + words
        words = [f"`emitting.products({', '.join(map(str, counts))})` of x {tuple(x.shape)}" for counts, x, _ in calls]
        shown = ", then ".join(words)
        shown += ", and x is part of a wider tensor in each call after the first" if again else ""
        shown += ", going back" if needs and "cut" not in how else ""
        shown += ", with a call that raises an error" if fails else ""
        shown += ", compiled before" if "before" in how else ""
        shown += ", x requires a gradient but the result doesn't" if "cut" in how else ""
        # no example is searched: that would be slow, because each case is compiled several times
        return Case(part, play, shown=shown, places=places, example=False)

    one, two, three = draw.sample((1, 2, 3, 4), 3)
    yield asked(there, (one,), (one,), again=True)
    yield asked(there, (one, two), before=True)
    yield asked(back, (two, one))
    yield asked(back, (two,), before=True)
    yield asked(back, (one, three), cut=True)
    yield asked(switched, (two, 0), (three, one))
    yield asked(switched, (one, two), fails=True)
