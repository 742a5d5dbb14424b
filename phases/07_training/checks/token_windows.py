"""Lab 07, exercise 1: Windows over a text"""


import torch

from hood.judge.checks.exercise import Case, Check
from hood.judge.checks.words import listed

token_windows = Check(
    "TokenWindows",
    parts={"windows": 1, "the last window": 1, "copies": 1, "a batch": 1},
    reads="Who draws the random numbers",
)


@token_windows.reference
class TokenWindows:
    def __init__(self, tokens, context, stride, pad):
        self.pairs = []
        for begin in range(0, len(tokens) - 1, stride):
            end = min(begin + context, len(tokens) - 1)
            inputs = torch.tensor(tokens[begin:end].tolist())
            self.pairs.append((inputs, torch.tensor(tokens[begin + 1 : end + 1].tolist())))
        self.pad = pad

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        inputs, targets = self.pairs[index]
        return inputs.clone(), targets.clone()

    def collate(self, items):
        rows = [inputs.tolist() for inputs, _ in items]
        wanted = [targets.tolist() for _, targets in items]
        longest = max(map(len, rows))
        filled = [row + [self.pad] * (longest - len(row)) for row in rows]
        return torch.tensor(filled), torch.tensor([t + [-100] * (longest - len(t)) for t in wanted])


@token_windows.cases
def _(draw):
    windows, last, copies, batch = token_windows.parts

    def text(count):
        return draw.tensor((count,), torch.int64) % 10  # 0 is among them

    def read(part, tokens, context, stride, pad, said=""):
        full = max(0, (len(tokens) - 1 - context) // stride + 1)

        def play(subject):
            settings = {"tokens": tokens, "context": context, "stride": stride, "pad": pad}
            came = subject.drive("training:windows", settings)
            return came["items"][:full] if part == windows else {k: came[k] for k in ("length", "items")}

        shown = f"{len(tokens)} tokens{said}, context {context}, stride {stride}"
        places = {}
        if part == last:
            places = {
                "['length']": "`len(dataset)`",
                "['items']": "the items",
            }
        return Case(part, play, shown=shown, places=places)

    def ended(tokens, context, stride, beyond, said):
        index = max(0, -(-(len(tokens) - 1) // stride)) + beyond

        def play(subject):
            made = subject(tokens=tokens, context=context, stride=stride, pad=0)
            return made.call("__getitem__", index)

        shown = f"{said}, {index}, of {len(tokens)} tokens, context {context}, stride {stride}"
        return Case(last, play, shown=shown, raises="IndexError")

    for context, stride in ((4, 4), (5, 2), (3, 5), (1, 1), (2, draw.integer(1, 3))):
        yield read(windows, text(draw.integer(14, 20)), context, stride, draw.integer(0, 9))
    for count, context, stride in (
        (9, 4, 4),  # the last window is full, and ends with the text
        (8, 4, 4),  # its target ends the text, one short
        (10, 4, 4),  # one target more: a window of a single token
        (draw.integer(11, 12), 4, 4),
        (draw.integer(9, 16), 4, 2),
        (draw.integer(9, 16), 5, 1),
        (draw.integer(9, 16), 2, 5),
        (3, draw.integer(4, 9), 2),  # shorter than a window
        (2, draw.integer(2, 9), draw.integer(1, 9)),
    ):
        yield read(last, text(count), context, stride, draw.integer(0, 9))
        yield ended(text(count), context, stride, 0, "the index behind the last")
        yield ended(text(count), context, stride, draw.integer(1, 2 * count), "an index far beyond the last")

    said = " (every third of a longer text)"
    yield read(windows, text(48)[5::3], 4, 3, draw.integer(0, 9), said)
    one_text = text(9)
    others = (one_text, (one_text + 1) % 10)  # no token of the two is the same
    pair = [{"tokens": tokens, "context": 4, "stride": 4, "pad": 0} for tokens in others]

    def beside(subject):
        one, other = (subject(**settings) for settings in pair)
        return [made.call("__getitem__", 1) for made in (one, other, one)]

    places = {f"[{at}]": f"the second item of the {name}" for at, name in enumerate(("first", "other"))}
    places["[2]"] = "the second item of the first dataset, once more"
    yield Case(windows, beside, shown="two datasets at a time", places=places)

    tokens = text(12) + 1  # no zero, which is what is written

    def written(subject):
        settings = {"tokens": tokens, "context": 5, "stride": 3, "pad": 0}
        return subject.drive("training:overwritten", settings)

    places = {
        "['inputs']": "the inputs, after zeros were written into the targets",
        "['targets']": "the targets, after zeros were written into the inputs",
        "['again']": "the same item, after zeros were written into it",
        "['next']": "the next item, after zeros were written into the item before it",
        "['stream']": "the tokens, after zeros were written into an item",
    }
    yield Case(copies, written, shown="12 tokens, context 5, stride 3", places=places)

    def collated(lengths, word=None):
        items = [(text(n), text(n)) for n in lengths]
        pad = draw.integer(1, 9)
        if word is not None:  # the text has a pad here and there, and two in a row
            items = [(t.clone(), t.roll(-1)) for t, _ in items]
            for inputs, targets in items:
                inputs[word : word + 2] = targets[word - 1 : word + 1] = pad

        def play(subject):
            made = subject(tokens=tokens, context=6, stride=1, pad=pad)
            return made.call("collate", items)

        places = {"[0]": "the inputs", "[1]": "the targets"}
        shown = f"items of {listed(lengths)} tokens{'' if word is None else ', `pad` among them'}"
        return Case(batch, play, shown=shown, places=places)

    yield collated([draw.integer(1, 3), 5, draw.integer(1, 4)])
    yield collated([4, draw.integer(1, 3)])
    yield collated([3, 3])
    yield collated([4, 6], word=1)
    yield collated([draw.integer(1, 6)])
