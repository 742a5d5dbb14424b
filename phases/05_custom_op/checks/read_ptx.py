"""Lab 05, exercise 4: Read the PTX"""

import re

import torch

from hood.judge.checks.exercise import Case, Check
from utils.drivers.custom_op import compile_softmax

read_ptx = Check(
    "read_ptx",
    parts={"loads and stores": 1, "their widths": 2, "reductions": 1},
    reads="The same kernel as PTX",
)

_ACCESS = re.compile(
    r"^\s*(?:@!?%\w+\s+)?(ld|st)\.global(?:\.[\w:]+)*?(?:\.v([24]))?\.[bfus](8|16|32|64)\s", re.M
)


@read_ptx.reference
class _:
    def accesses(ptx):
        kinds = [found[1] for found in _ACCESS.finditer(ptx)]
        return kinds.count("ld"), kinds.count("st")

    def widths(ptx, kind):
        every = [found for found in _ACCESS.finditer(ptx) if found[1] == kind]
        return [int(found[2] or 1) * int(found[3]) // 8 for found in every]

    def reductions(ptx):
        code = re.sub("//.*", "", ptx)
        return len(re.findall(r"\bshfl\.", code)), len(re.findall(r"\bbar\.sync\b", code))


# Lines of PTX that the lab's small kernel does not have. The keys say what is in a line. `%r`, `%p`
# and the like get random numbers, `+0` gets a random offset, and `LD` and `ST` get random cache
# hints.
LINES = {
    "a load of 32 bits": "\tld.global.b32 \t%r, [%rd];",
    "a store of 16 bits": "\tst.global.b16 \t[%rd], %rs;",
    "a load of 8 bits, `u8`": "\tld.global.u8 \t%rs, [%rd+0];",
    "a store of 64 bits, `s64`, and a load of 32 bits, `f32`": "\tst.global.s64 \t[%rd+0], %rd;\n\tld.global.f32 %f, [%rd];",
    "a guard": "\t@%p ld.global.b32 \t%r, [%rd];",
    "a guard that is negated, `@!`": "\t@!%p st.global.b32 \t[%rd], %r;",
    "`v2`": "\tst.global.v2.b16 \t[%rd], {%rs, %rs};",
    "`v4`, guarded": "@%p ld.global.v4.b32 { %r, %r, %r, %r }, [ %rd + 0 ];",
    "a cache hint, then `v4`": "\tLD.v4.b32 {%r, %r, %r, %r}, [%rd];",
    "a store with a cache hint": "\tST.b32 [%rd+0], %r;",
    "two cache hints": "\tLD.L2::64B.u16 \t%rs, [%rd+0];",
    "three loads, one of them of fewer bits": "\tld.global.v2.f64 \t{%fd, %fd}, [%rd];\n"
    "\tld.global.b8 \t%rs, [%rd];\n\tld.global.v2.f64 \t{%fd, %fd}, [%rd];",
    "one number, loaded into a register with the name `%v4`": "\tld.global.b32 \t%v4, [%rd+0];",
    "atomics, which count as no load and no store": "\tatom.global.add.u32 \t%r, [%rd], 1;\n"
    "\tred.global.add.f32 \t[%rd], %f;",
    "shared memory": "\tst.shared.v4.b32 \t[%r], {%r, %r, %r, %r};\n\tld.shared.f32 \t%f, [%r];",
    "a parameter": "\tld.param.b64 \t%rd, [kernel_param_0];",
    "local memory": "\tld.local.b32 \t%r, [%rd];",
    "a declaration with `.global` in it": ".visible .entry kernel(\n"
    "\t.param .u64 .ptr .global .align 1 kernel_param_0\n)\n{",
    "a comment": "\t// ld.global.b32 %r would be an instruction, and a bar.sync or a shfl.sync too",
    "a label, and an end": "$L__BB0_1:\n\tret;\n}",
    "a barrier, and a comment after it": "\tbar.sync \t0;\t// all warps",
    "a barrier with a guard": "\t@%p bar.sync \t1;",
    "`bar.arrive` and `barrier.sync`": "\tbar.arrive \t2, 64;\n\tbarrier.sync \t0;",
    "`vote.sync`": "\tvote.sync.ballot.b32 \t%r, %p, -1;",
    "`shfl.sync.bfly`": "\tshfl.sync.bfly.b32 \t%r, %r, 1, 31, -1;",
    "`shfl.sync.down`": "\tshfl.sync.down.b32 \t%r, %r, 4, 31, -1;",
    "`shfl.sync.down`, guarded": "\t@%p shfl.sync.down.b32 \t%r, %r, 2, 31, -1;",
}
# Cache hints. There may be any number of them between `ld` or `st` and the type.
CACHES = "L1::evict_first", "L1::evict_last", "L1::no_allocate", "L1::evict_unchanged", "L1::evict_normal"
REGISTER = re.compile(r"%(rd|rs|fd|r|f|p)(?!\w)")


def _written(draw, kinds, others):
    """The lines of a text: the given kinds and some others, with random registers and offsets."""
    lines = [LINES[kind] for kind in kinds]
    for _ in range(others):
        what = draw.choice(("ld", "st"))
        bits, count = draw.choice(((8, 1), (8, 2), (8, 4), (16, 1), (16, 2), (16, 4), (32, 1), (32, 2), (32, 4), (64, 1), (64, 2)))
        letter = draw.choice("bus" if bits == 8 else "busf")
        words = [draw.choice(CACHES)] * draw.integer(0, 1) + ["L2::128B"] * draw.integer(0, 1)
        name = ".".join([what, "global", *words, *([f"v{count}"] if count > 1 else []), f"{letter}{bits}"])
        register = {8: "%rs", 16: "%rs", 32: "%r", 64: "%rd"}[bits]
        value = f"{{{', '.join([register] * count)}}}" if count > 1 else register
        guard = draw.choice(("", "@%p ", "@!%p "))
        lines.append(f"\t{guard}{name} \t" + (f"{value}, [%rd+0];" if what == "ld" else f"[%rd+0], {value};"))
    lines = draw.sample(lines, len(lines)) if others else lines
    text = "\n".join(lines)
    text = REGISTER.sub(lambda found: f"%{found[1]}{draw.integer(1, 400)}", text)
    text = re.sub(r"(\+ ?)0]", lambda found: f"{found[1]}{16 * draw.integer(1, 200)}]", text)
    text = re.sub(r"(\+ )0 ]", lambda found: f"{found[1]}{16 * draw.integer(1, 200)} ]", text)
    return re.sub(r"\b(LD|ST)\b", lambda found: f"{found[1].lower()}.global.{draw.choice(CACHES)}", text)


@read_ptx.cases
def _(draw):
    loads, widths, reductions = read_ptx.parts
    dtypes = torch.float16, torch.bfloat16, torch.float32, torch.float64
    kinds = {kind: _written(draw, [kind], 0) for kind in LINES}
    asked = {**kinds, "no kernel": "//\n// Generated by a compiler\n//\n\n.version 8.7\n"}
    # Each kind alone, and then all kinds together with random lines: a text that nobody has seen.
    asked["lines of all kinds, in any order"] = _written(draw, [*LINES], draw.integer(8, 16))

    def compiled(columns, dtype, **how):
        words = f"{columns} columns, {str(dtype).removeprefix('torch.')}"
        words += "".join(f", {name} {value}" for name, value in how.items())
        asked[words] = compile_softmax(columns, dtype, **how)

    compiled(600, torch.float32)
    compiled(4096, torch.float32, evict="evict_first")
    compiled(draw.choice((256, 512, 1024)), torch.bfloat16, num_warps=1)
    compiled(draw.choice((512, 1024)), torch.float64, num_warps=draw.choice((2, 4)))
    compiled(512, draw.choice(dtypes[:2]), result=torch.float32, num_warps=2, evict="evict_last")

    def pair(part, of, ptx, words, first, second):
        right = read_ptx.right[of](ptx)

        def play(subject):
            one, other = subject[of](ptx)
            came = {first: one, second: other}
            facts = {}
            for (name, got), number in zip(came.items(), right, strict=True):
                known = type(got) is int
                facts[f"{name}, more"] = not known or got <= number
                facts[f"{name}, fewer"] = not known or got >= number
            return {**facts, **came}

        places = {}
        for name in (first, second):
            places[f"['{name}']"] = f"the number of {name}"
            places[f"['{name}, more']"] = f"More {name} are counted than the text has."
            places[f"['{name}, fewer']"] = f"Fewer {name} are counted than the text has."
        return Case(part, play, of, words, places)

    def list_of(ptx, kind, words):
        right = read_ptx.right["widths"](ptx, kind)

        def play(subject):
            got = subject["widths"](ptx, kind)
            shuffled = isinstance(got, list) and got != right
            return not (shuffled and sorted(map(repr, got)) == sorted(map(repr, right))), got

        places = {
            "[0]": "The widths are right, but their order is not that of the text.",
            "[1]": "the list",
        }
        return Case(widths, play, "widths", words, places)

    for words, ptx in asked.items():
        if words in LINES and "\n" not in ptx:
            words += f" (`{' '.join(ptx.split())}`)"
        yield pair(loads, "accesses", ptx, words, "loads", "stores")
        stores = read_ptx.right["widths"](ptx, "st")
        if not stores or read_ptx.right["widths"](ptx, "ld"):
            yield list_of(ptx, "ld", f"the loads' widths, {words}")
        if stores:
            yield list_of(ptx, "st", f"the stores' widths, {words}")
        yield pair(reductions, "reductions", ptx, words, "`shfl`", "`bar.sync`")


