"""Lab 08, exercise 14: Two numbers in a byte"""

import torch

from hood.judge.checks.exercise import Case, Check
from utils.drivers.adapters import REFUSED
from utils.minigpt import MiniGPTConfig

from .shared import SUMS

int4 = Check(
    "Int4",
    parts={"codes and scales": 1, "F.linear": 1, "in a model": 1, "no copy between calls": 1},
    reads="Fewer numbers to train, fewer bits to store",
    tolerance=SUMS,
)


@int4.reference
class Int4(torch.Tensor):
    @staticmethod
    def __new__(cls, packed, scales, group, columns):
        shape = (len(packed), columns)
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=scales.dtype)

    def __init__(self, packed, scales, group, columns):
        self.packed, self.scales, self.group, self.columns = packed, scales, group, columns

    def __repr__(self):
        return "Int4"

    @classmethod
    def from_float(cls, weight, group):
        columns = weight.shape[1]
        codes, scales = [], []
        for part in weight.split(group, dim=1):
            scale = part.abs().amax(1) / 7
            scales.append(scale)
            codes.append(torch.round(part / torch.where(scale > 0, scale, 1)[:, None]) + 8)
        codes = torch.cat(codes, 1).to(torch.uint8)
        packed = torch.zeros(len(weight), (columns + 1) // 2, dtype=torch.uint8)
        packed += codes[:, 0::2]
        packed[:, : columns // 2] += 16 * codes[:, 1::2]
        return cls(packed, torch.stack(scales, 1), group, columns)

    def dequantize(self):
        codes = torch.zeros(len(self.packed), 2 * self.packed.shape[1])
        codes[:, 0::2], codes[:, 1::2] = self.packed % 16, self.packed // 16
        groups = torch.arange(self.columns) // self.group
        return (codes[:, : self.columns] - 8) * self.scales[:, groups]

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is not torch.nn.functional.linear:
            return super().__torch_function__(func, types, args, kwargs)
        x, weight, bias = (*args, *(kwargs or {}).values(), None)[:3]
        product = _Product.apply(x, weight)
        return product if bias is None else product + bias

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        match func.overloadpacket.__name__:
            case "detach":
                return cls(args[0].packed, args[0].scales, args[0].group, args[0].columns)
            case "copy_":
                args[0].packed.copy_(args[1].packed)
                args[0].scales.copy_(args[1].scales)
                return args[0]
        raise NotImplementedError


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.weight = weight
        return torch.nn.functional.linear(x, weight.dequantize())

    @staticmethod
    def backward(ctx, upstream):
        return upstream.matmul(ctx.weight.dequantize()), None


LARGE = "a tensor is alive that has a byte or more for each weight."
PLACES = {
    "['shape']": "the shape and the dtype of the Int4",
    "['packed']": "`packed`",
    "['scales']": "`scales`",
    "['values']": "the result of `dequantize()`",
    "['plain']": "the output is not a plain tensor.",
    "['output']": "the output",
    "['gradients'][0]": "the gradient of x",
    "['gradients'][1]": "the gradient of the bias",
    "['gradient']": "the gradient of x",
    "['kind']": "after `load_state_dict`, a weight is not an Int4.",
    "['first']": "the logits of a MiniGPT in four bits",
    "['loaded']": "the logits after `load_state_dict`",
    "['after']": "the logits after `load_state_dict`, when the codes and scales of the first model have changed",
    "['alive'][0]": f"after `from_float`, {LARGE}",
    "['alive'][1]": f"after `F.linear` without gradients, {LARGE}",
    "['alive'][2]": f"after `F.linear` and before its backward, {LARGE}",
    "['alive'][3]": f"after the backward, {LARGE}",
}


@int4.cases
def _(draw):
    codes, product, model, alive = int4.parts

    def matrix(rows, columns, group, empty=(), size=1.0):
        """A matrix whose numbers are not nearly halfway between two codes.

        `empty` has the numbers of the groups that are 0 in the first row, and `size` multiplies
        all steps.
        """
        weight = torch.zeros(rows, columns)
        for row in range(rows):
            for number, start in enumerate(range(0, columns, group)):
                width = min(group, columns - start)
                step = draw.integer(1000, 99999) * 10.0 ** draw.integer(-7, -4) * size
                some = [draw.integer(-6, 6) + draw.integer(-45, 45) / 100 for _ in range(width)]
                some[draw.integer(0, width - 1)] = draw.choice((-7.0, 7.0))
                zero = row == 0 and number in empty
                weight[row, start : start + width] = torch.tensor(some) * (0 if zero else step)
        return weight

    def stored(rows, columns, group, shown="", turned=False, **how):
        weight = matrix(rows, columns, group, **how)
        weight = weight.T.contiguous().T if turned else weight

        def play(subject):
            came = subject.drive("adapters:packed", weight, group)
            return {name: came[name] for name in ("shape", "scales", "packed", "values")}

        said = f"a matrix {(rows, columns)} in groups of {group}{shown}"
        return Case(codes, play, shown=said, places=PLACES)

    a, b = draw.shape(2, low=2, high=4)
    yield stored(a, 2 * b, 2 * b)
    yield stored(a, 8, 4)
    yield stored(b, 9, 3, ", stored column by column", turned=True)
    yield stored(a, 8, 3)
    yield stored(a, 5, 2, " with very small numbers", size=1e-15)
    yield stored(b, 6, 1)
    yield stored(a, 4, 9)
    yield stored(1, 1, 1)
    yield stored(a, 7, 3, " with a group of zeros", empty=(1,))
    yield stored(2, 5, 4, " with two groups of zeros", empty=(0, 1))

    def linear(rows, columns, group, *batch, biased=True, upstream=True, by_name=False):
        weight, x = matrix(rows, columns, group), draw.tensor((*batch, columns))
        bias = draw.tensor((rows,)) if biased else None
        more = draw.tensor((*batch, rows)) if upstream else None

        def play(subject):
            came = subject.drive(
                "adapters:multiplied", weight, group, x, bias, by_name=by_name, upstream=more
            )
            return {name: came[name] for name in ("plain", "output", "gradients")}

        if by_name:
            how = "`bias=`" if biased else "nothing for the bias"
        else:
            how = "a bias" if biased else "a bias of None"
        said = f"a weight {(rows, columns)} in groups of {group}, x {tuple(x.shape)}, {how}"
        return Case(
            product, play, shown=said + (", with gradients" if upstream else ""), places=PLACES
        )

    yield linear(a, 6, 3, 2, upstream=False)
    yield linear(a, 5, 2, 2, 3)
    yield linear(b, 4, 4, 3)
    yield linear(b, 7, 3)
    yield linear(a, 6, 4, 2, biased=False)
    yield linear(a, 6, 4, biased=False, upstream=False, by_name=True)
    yield linear(b, 3, 2, 2, by_name=True)
    yield linear(a, 4, 2, 2, 2, 2)
    yield linear(a, 4, 2, 0, upstream=False)

    def models(layers, group, wide):
        config = MiniGPTConfig(9, 4, 2, layers, wide, 6)
        tokens = torch.tensor([[draw.integer(0, 8) for _ in range(4)]])
        seeds = draw.integer(0, 10**6), draw.integer(10**6, 2 * 10**6)

        def play(subject):
            came = subject.drive("adapters:reloaded", config, seeds, group, tokens)
            return {name: came[name] for name in ("kind", "first", "loaded", "after")}

        said = f"a MiniGPT in groups of {group}, loaded into another one"
        return Case(model, play, shown=said, places=PLACES)

    yield models(1, 2, draw.choice((5, 7)))
    yield models(2, 3, draw.integer(5, 7))
    weight, group = matrix(a, 4, 2), 2
    for name in REFUSED:
        places = {
            f"['raised']['{name}']": f"the name of the error that `{name}` raises, or '' if it raises none"
        }
        yield Case(
            model,
            lambda subject, name=name: subject.drive("adapters:refused", weight, group, [name]),
            shown=f"`{name}`",
            places=places,
        )

    def kept(rows, columns, group, *batch):
        weight, x = matrix(rows, columns, group), draw.tensor((*batch, columns))
        bias, upstream = draw.tensor((rows,)), draw.tensor((*batch, rows))

        def play(subject):
            came = subject.drive("adapters:left_behind", weight, group, x, bias, upstream)
            return {
                "alive": [count == 0 for count in came["alive"]],
                "output": came["output"],
                "gradient": came["gradient"],
            }

        said = f"a weight {(rows, columns)} in groups of {group}, x {tuple(x.shape)}"
        return Case(alive, play, shown=said, places=PLACES)

    yield kept(draw.integer(16, 20), 24, 12, 2)
    yield kept(draw.integer(21, 24), 17, 17)
