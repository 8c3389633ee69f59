# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of barriers of a block, fences, hints, and threads that wait for each other."""
from .forms_control import ALL, INDEX, kernel_case, lane_case, load, store, words
from .writer import Array

# ---- barriers ----


def barriers():
    threads = 96
    values = words("bar", threads)
    shifted = [values[(i + 33) % threads] for i in range(threads)]
    through = """  .shared .u32 area[96];
  mov.u64 %to, area; mad.wide.u32 %to, %i, 4, %to; st.shared.u32 [%to], %x;
"""
    again = """  add.u32 %y, %i, 33; rem.u32 %y, %y, 96; mov.u64 %to, area; mad.wide.u32 %to, %y, 4, %to; ld.shared.u32 %y, [%to];
"""
    for name, instruction in (
        ("bar.sync", "bar.sync 0;"),
        ("bar.sync.named", "bar.sync 5;"),
        ("bar.sync.count", "bar.sync 3, 96;"),
        ("bar.cta.sync", "bar.cta.sync 0;"),
        ("barrier.sync", "barrier.sync 0;"),
        ("barrier.sync.aligned", "barrier.sync.aligned 1, 96;"),
        ("barrier.cta.sync", "barrier.cta.sync 15;"),
        ("bar.sync.register", "mov.u32 %z, 7; bar.sync %z;"),
    ):
        text = f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
{INDEX}{load("a", "%x")}{through}  {instruction}
{again}{store("d", "%y")}  ret;
}}"""
        yield kernel_case(
            name.split(".")[0],
            name,
            "three warps pass values through shared memory",
            [Array("in", "a", "u32", values), Array("out", "d", "u32", shifted)],
            text,
            f"grid 1 block {threads}",
            target=(78, 80) if ".cta" in name else (70, 80),
        )
    yield from barrier_reductions(values, threads)
    yield from barrier_arrive()
    yield from barrier_divergent()


def barrier_reductions(values, threads):
    odd = [v & 1 for v in values]
    for family in ("bar", "barrier"):
        forms = (("popc.u32", sum(odd), threads - sum(odd)), ("and.pred", 0, int(not any(odd))), ("or.pred", 1, 1))
        for tail, plain, complement in forms:
            name = f"{family}.red.{tail}"
            if tail.startswith("popc"):
                lines = f"  {name} %y, 0, %p;\n  {name} %z, 1, 96, !%p;\n"
            else:
                lines = f"  {name} %q, 0, %p; selp.u32 %y, 1, 0, %q;\n  {name} %q, 2, !%p; selp.u32 %z, 1, 0, %q;\n"
            text = f""".visible .entry test(.param .u64 a, .param .u64 d, .param .u64 e)
{{
{INDEX}{load("a", "%x")}  and.b32 %x, %x, 1; setp.ne.u32 %p, %x, 0;
{lines}{store("d", "%y")}{store("e", "%z")}  ret;
}}"""
            yield kernel_case(
                family,
                name,
                "over three warps; e: of the complement",
                [
                    Array("in", "a", "u32", values),
                    Array("out", "d", "u32", [plain] * threads),
                    Array("out", "e", "u32", [complement] * threads),
                ],
                text,
                f"grid 1 block {threads}",
            )


def barrier_arrive():
    """The first warp produces and does not wait; the second waits for it."""
    values = words("arrive", 32)
    for family in ("bar", "barrier"):
        text = f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
  .shared .u32 area[32];
{INDEX}  and.b32 %y, %i, 31; setp.ge.u32 %p, %i, 32;
  mov.u64 %to, area; mad.wide.u32 %to, %y, 4, %to;
  @%p bra consumer;
{load("a", "%x", index="%y")}  st.shared.u32 [%to], %x;
  {family}.arrive 1, 64;
  ret;
consumer:
  {family}.sync 1, 64;
  ld.shared.u32 %x, [%to];
{store("d", "%x", index="%y")}  ret;
}}"""
        yield kernel_case(
            family,
            f"{family}.arrive",
            "a warp arrives without waiting, another waits",
            [Array("in", "a", "u32", values), Array("out", "d", "u32", values)],
            text,
            "grid 1 block 64",
        )


def barrier_divergent():
    """barrier.sync in the two sides of a divergent branch: the warp's lanes arrive one after the other."""
    text = f""".visible .entry test(.param .u64 d)
{{
  .shared .u32 count;
{INDEX}  mov.u64 %to, count; setp.eq.u32 %p, %i, 0;
  @%p st.shared.u32 [%to], 0;
  bar.sync 0;
  and.b32 %y, %i, 1; setp.eq.u32 %p, %y, 0;
  @%p bra even;
  atom.shared.add.u32 %x, [%to], 100;
  barrier.sync 1;
  bra done;
even:
  atom.shared.add.u32 %x, [%to], 1;
  barrier.sync 1;
done:
  ld.shared.u32 %x, [%to];
{store("d", "%x")}  ret;
}}"""
    yield kernel_case(
        "barrier",
        "barrier.sync.divergent",
        "both sides of a branch meet at one barrier",
        [Array("out", "d", "u32", [32 * 100 + 32] * 64)],
        text,
        "grid 1 block 64",
    )


def fences():
    values = words("fences", 62)
    names = [
        "membar.cta",
        "membar.gl",
        "membar.sys",
        "fence.sc.cta",
        "fence.sc.gpu",
        "fence.sc.sys",
        "fence.acq_rel.cta",
        "fence.acq_rel.gpu",
        "fence.acq_rel.sys",
    ]
    for name in names:
        arrays = [Array("in", "a", "u32", values), Array("out", "d", "u32", [(v + 1) & ALL for v in values])]
        yield lane_case(name.split(".")[0], name, "changes no value", arrays, ["add.u32 %d, %a, 1;", f"{name};"])
    arrays = [Array("in", "a", "u32", values), Array("out", "d", "u32", [(v + 1) & ALL for v in values])]
    yield lane_case(
        "nanosleep",
        "nanosleep.u32",
        "by a constant and by a register",
        arrays,
        ["nanosleep.u32 20;", "and.b32 %x, %a, 63; nanosleep.u32 %x;", "add.u32 %d, %a, 1;"],
        ["u32 %x"],
    )
    yield lane_case(
        "griddepcontrol",
        "griddepcontrol",
        "nothing to wait for, nothing that depends",
        arrays,
        ["griddepcontrol.wait;", "add.u32 %d, %a, 1;", "griddepcontrol.launch_dependents;"],
        target=(78, 90),
    )
    for name, operand in (
        ("prefetch.global.L1", "%at"),
        ("prefetch.global.L2", "%at"),
        ("prefetch.L1", "%at"),
        ("prefetch.global.L2::evict_last", "%at"),
        ("prefetchu.L1", "%at"),
    ):
        yield lane_case(
            name.split(".")[0],
            name,
            "changes no value",
            arrays,
            [f"ld.param.u64 %at, [a]; {name} [{operand}];", "add.u32 %d, %a, 1;"],
            target=(74, 80),
        )


# ---- threads that wait for each other ----


def waiting():
    text = f""".global .u32 lock; .global .u32 counter;
.visible .entry test(.param .u64 d)
{{
{INDEX}again:
  atom.global.cas.b32 %x, [lock], 0, 1;
  setp.ne.u32 %p, %x, 0;
  @%p bra again;
  membar.gl;
  ld.volatile.global.u32 %y, [counter]; add.u32 %y, %y, 3; st.volatile.global.u32 [counter], %y;
  membar.gl;
  atom.global.exch.b32 %x, [lock], 0;
  mov.u32 %z, %ctaid.x; mov.u32 %x, %ntid.x; mad.lo.u32 %i, %z, %x, %i;
  ld.param.u64 %at, [d]; red.global.add.u32 [%at], 1; atom.global.max.u32 %x, [%at+4], %y;
  ret;
}}"""
    yield kernel_case(
        "bra",
        "wait.lock",
        "every thread of three blocks takes one lock: lanes of a warp wait for each other",
        [Array("inout", "d", "u32", ([0, 0], [240, 720]))],
        text,
        "grid 3 block 80",
    )
    text = f""".visible .entry test(.param .u64 d)
{{
  .shared .u32 flag; .shared .u32 value;
{INDEX}  setp.eq.u32 %p, %i, 0;
  @%p st.shared.u32 [flag], 0;
  bar.sync 0;
  setp.lt.u32 %p, %i, 20;
  @%p bra consumer;
  setp.ne.u32 %p, %i, 31;
  @%p bra done;
  mov.u32 %x, 1234; st.volatile.shared.u32 [value], %x; membar.cta; mov.u32 %x, 1; st.volatile.shared.u32 [flag], %x;
  bra done;
consumer:
  ld.volatile.shared.u32 %x, [flag]; setp.eq.u32 %p, %x, 0;
  @%p bra consumer;
  ld.volatile.shared.u32 %x, [value]; add.u32 %x, %x, %i;
{store("d", "%x")}done:
  ret;
}}"""
    yield kernel_case(
        "bra",
        "wait.lanes",
        "lanes of one warp wait for another lane of it",
        [Array("inout", "d", "u32", ([5] * 32, [1234 + i if i < 20 else 5 for i in range(32)]))],
        text,
        "grid 1 block 32",
    )
    for name, title, other, first in (
        ("wait.before", "every block waits for the one before it", "sub.u32 %y, %z, 1;", "0"),
        ("wait.after", "every block waits for the one after it", "add.u32 %y, %z, 1;", "11"),
    ):
        text = f""".visible .entry test(.param .u64 flags, .param .u64 d)
{{
{INDEX}  mov.u32 %z, %ctaid.x; {other} ld.param.u64 %to, [flags]; mad.wide.u32 %at, %y, 4, %to;
  setp.ne.u32 %p, %i, 0;
  @%p bra joined;
  mov.u32 %x, 0; setp.eq.u32 %p, %z, {first};
  @%p bra known;
wait:
  ld.acquire.gpu.global.u32 %x, [%at]; setp.eq.u32 %p, %x, 0;
  @%p bra wait;
known:
  add.u32 %x, %x, 1; mad.wide.u32 %at, %z, 4, %to; st.release.gpu.global.u32 [%at], %x;
joined:
  bar.sync 0;
  mad.wide.u32 %at, %z, 4, %to; ld.volatile.global.u32 %x, [%at]; mov.u32 %y, %ntid.x; mad.lo.u32 %i, %z, %y, %i;
{store("d", "%x")}  ret;
}}"""
        order = list(range(1, 13)) if first == "0" else list(range(12, 0, -1))
        yield kernel_case(
            "bra",
            name,
            title,
            [
                Array("inout", "flags", "u32", ([0] * 12, order)),
                Array("out", "d", "u32", [v for v in order for _ in range(40)]),
            ],
            text,
            "grid 12 block 40",
        )
    text = f""".visible .entry test(.param .u64 d)
{{
  .shared .u32 sum;
{INDEX}  setp.eq.u32 %p, %i, 95;
  @%p st.shared.u32 [sum], 0;
  shr.u32 %z, %i, 2; mov.u32 %y, 0;
round:
  bar.sync 0;
  atom.shared.add.u32 %x, [sum], 1;
  add.u32 %y, %y, 1; setp.le.u32 %p, %y, %z;
  @%p bra round;
{store("d", "%y")}  ret;
}}"""
    yield kernel_case(
        "bar",
        "bar.sync.leaving",
        "threads leave a loop of barriers one by one; the others go on",
        [Array("out", "d", "u32", [i // 4 + 1 for i in range(96)])],
        text,
        "grid 1 block 96",
    )


def cases():
    for group in (barriers, fences, waiting):
        yield from group()
