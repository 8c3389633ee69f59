# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of thread block clusters: special registers, distributed shared memory, barriers of a cluster, mbarriers of
other blocks, asynchronous stores and reductions, bulk copies with and without tensors."""
from .forms_control import kernel_case, words
from .writer import Array

ALL = 0xFFFFFFFF
HOPPER = (86, 90)

# %g: number of the thread in the launch, blocks of 32 in a row; %t: in its block; %r: rank of the block in its cluster
START = """  .reg .u32 %g, %t, %b, %n, %r, %x, %y, %z, %a0, %a1; .reg .u64 %at, %to, %w0, %w1, %state; .reg .pred %p, %q;
  .reg .b16 %h; .reg .f32 %f;
  mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %g, %b, %n, %t;
  mov.u32 %r, %cluster_ctarank;
"""
MEET = "  barrier.cluster.arrive; barrier.cluster.wait;\n"


def load(name, register, index="%g"):
    return f"  ld.param.u64 %at, [{name}]; mad.wide.u32 %at, {index}, 4, %at; ld.global.u32 {register}, [%at];\n"


def store(name, register, index="%g"):
    return f"  ld.param.u64 %at, [{name}]; mad.wide.u32 %at, {index}, 4, %at; st.global.u32 [%at], {register};\n"


def case(mnemonic, name, title, arrays, body, launch, declared="", headers=(), before="", target=None):
    params = ", ".join(f".param .u64 {a.name}" for a in arrays)
    text = f"{before}.visible .entry test({params})\n{{\n{declared}{START}{body}  ret;\n}}"
    return kernel_case(mnemonic, name, title, arrays, text, launch, target=target or HOPPER, headers=headers)


# ---- special registers ----


def places(grid, cluster):
    """For every block, x fastest: clusterid and cluster_ctaid of each axis, the rank."""
    out = []
    for z in range(grid[2]):
        for y in range(grid[1]):
            for x in range(grid[0]):
                at = (x, y, z)
                ids = [a // c for a, c in zip(at, cluster)]
                inner = [a % c for a, c in zip(at, cluster)]
                rank = inner[0] + cluster[0] * (inner[1] + cluster[1] * inner[2])
                out.append(ids + inner + [rank])
    return out


def registers():
    names = [f"%clusterid.{a}" for a in "xyz"] + [f"%cluster_ctaid.{a}" for a in "xyz"] + ["%cluster_ctarank"]
    sizes = [f"%nclusterid.{a}" for a in "xyz"] + [f"%cluster_nctaid.{a}" for a in "xyz"]
    sizes += ["%cluster_nctarank", "%is_explicit_cluster"]
    for grid, cluster in (((4, 6, 2), (2, 3, 1)), ((8, 1, 1), (8, 1, 1)), ((3, 1, 4), (1, 1, 4)), ((2, 2, 1), None)):
        shape = cluster or (1, 1, 1)
        each = [v for place in places(grid, shape) for v in place]
        count = shape[0] * shape[1] * shape[2]
        every = [g // c for g, c in zip(grid, shape)] + list(shape) + [count, int(cluster is not None)]
        body = """  mov.u32 %x, %nctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %nctaid.y; mov.u32 %a0, %ctaid.z;
  mad.lo.u32 %y, %a0, %z, %y; mad.lo.u32 %b, %y, %x, %b;
"""
        for n, name in enumerate(names):
            body += f"  mov.u32 %x, {name}; mad.lo.u32 %y, %b, {len(names)}, {n};\n" + store("d", "%x", "%y")
        for n, name in enumerate(sizes):
            explicit = name == "%is_explicit_cluster"
            body += f"  mov.pred %p, {name}; selp.u32 %x, 1, 0, %p;\n" if explicit else f"  mov.u32 %x, {name};\n"
            body += f"  mov.u32 %y, {n};\n" + store("e", "%x", "%y")
        launch = f"grid {grid[0]} {grid[1]} {grid[2]} block 1"
        if cluster:
            launch += f" cluster {cluster[0]} {cluster[1]} {cluster[2]}"
        yield case(
            "mov",
            f"mov.u32.cluster.{'x'.join(map(str, cluster)) if cluster else 'none'}",
            f"special registers of a cluster; grid {grid}",
            [Array("out", "d", "u32", each), Array("out", "e", "u32", every)],
            body,
            launch,
        )


# ---- distributed shared memory ----


def neighbours():
    values = words("mapa", 128)

    def turned(ranks):
        return [values[(i // 32 // ranks * ranks + (i // 32 + 1) % ranks) * 32 + i % 32] for i in range(128)]

    own = "  mov.u32 %a0, area; mad.lo.u32 %a0, %t, 4, %a0; st.shared.u32 [%a0], %x;\n"
    other = "  mov.u32 %n, %cluster_nctarank; add.u32 %y, %r, 1; rem.u32 %y, %y, %n;\n"
    ways = {
        "mapa.shared::cluster.u32": "mapa.shared::cluster.u32 %a1, %a0, %y; ld.shared::cluster.u32 %x, [%a1];",
        "mapa.shared::cluster.u32.variable": "mapa.shared::cluster.u32 %a1, area, %y; mad.lo.u32 %a1, %t, 4, %a1; ld.shared::cluster.u32 %x, [%a1];",
        "mapa.shared::cluster.u64": "cvt.u64.u32 %w0, %a0; mapa.shared::cluster.u64 %w1, %w0, %y; ld.shared::cluster.u32 %x, [%w1];",
        "mapa.u64": "cvt.u64.u32 %w0, %a0; cvta.shared.u64 %w0, %w0; mapa.u64 %w1, %w0, %y; ld.u32 %x, [%w1];",
        "mapa.u64.to": "cvt.u64.u32 %w0, %a0; cvta.shared.u64 %w0, %w0; mapa.u64 %w1, %w0, %y; cvta.to.shared.u64 %w1, %w1; ld.shared::cluster.u32 %x, [%w1];",
    }
    for name, line in ways.items():
        for ranks in (2, 4):
            yield case(
                "mapa",
                f"{name}.{ranks}",
                f"reads what the next of {ranks} blocks has written",
                [Array("in", "a", "u32", values), Array("out", "d", "u32", turned(ranks))],
                load("a", "%x") + own + other + MEET + f"  {line}\n" + MEET + store("d", "%x"),
                f"grid 4 block 32 cluster {ranks}",
                "  .shared .u32 area[32];\n",
            )
    wide = "mapa.shared::cluster.u32 %a1, %a0, %y; st.shared::cluster.u32 [%a1], %x;"
    back = [values[(i // 32 // 4 * 4 + (i // 32 + 3) % 4) * 32 + i % 32] for i in range(128)]
    yield case(
        "mapa",
        "st.shared::cluster.u32",
        "writes into the next of 4 blocks",
        [Array("in", "a", "u32", values), Array("out", "d", "u32", back)],
        load("a", "%x")
        + "  mov.u32 %a0, area; mad.lo.u32 %a0, %t, 4, %a0;\n"
        + other
        + MEET
        + f"  {wide}\n"
        + MEET
        + "  ld.shared.u32 %x, [%a0];\n"
        + store("d", "%x"),
        "grid 4 block 32 cluster 4",
        "  .shared .u32 area[32];\n",
    )
    both = [i // 32 % 2 * 10 + (i // 32 + 1) % 2 for i in range(128)]
    yield case(
        "getctarank",
        "getctarank.shared::cluster.u32",
        "of the block's own address and of a neighbour's, with and without a space",
        [Array("out", "d", "u32", both), Array("out", "e", "u32", both)],
        "  mov.u32 %a0, area;\n"
        + other
        + """  mapa.shared::cluster.u32 %a1, %a0, %y; getctarank.shared::cluster.u32 %x, %a0; getctarank.shared::cluster.u32 %z, %a1;
  mad.lo.u32 %x, %x, 10, %z;
"""
        + store("d", "%x")
        + """  cvt.u64.u32 %w0, %a0; cvta.shared.u64 %w0, %w0; mapa.u64 %w1, %w0, %y; getctarank.u64 %x, %w0; getctarank.u64 %z, %w1;
  mad.lo.u32 %x, %x, 10, %z;
"""
        + store("e", "%x"),
        "grid 4 block 32 cluster 2",
        "  .shared .u32 area[32];\n",
    )
    yield case(
        "isspacep",
        "isspacep.shared::cluster",
        "1: shared::cluster, 2: shared::cta; of the own address, a neighbour's, and global memory",
        [Array("out", "d", "u32", [3 + 10 * 1 + 0] * 64)],
        "  mov.u64 %w0, area; cvta.shared.u64 %w0, %w0;\n"
        + other
        + """  mapa.u64 %w1, %w0, %y; mov.u32 %x, 0;
  isspacep.shared::cluster %p, %w0; @%p add.u32 %x, %x, 1; isspacep.shared::cta %p, %w0; @%p add.u32 %x, %x, 2;
  isspacep.shared::cluster %p, %w1; @%p add.u32 %x, %x, 10; isspacep.shared::cta %p, %w1; @%p add.u32 %x, %x, 20;
  ld.param.u64 %at, [d]; isspacep.shared::cluster %p, %at; @%p add.u32 %x, %x, 100;
"""
        + store("d", "%x"),
        "grid 2 block 32 cluster 2",
        "  .shared .u32 area[32];\n",
    )
    values = words("cluster.atom", 128, 1000)
    sums = [sum(values[i // 64 * 64 : i // 64 * 64 + 64]) for i in range(128)]
    for name, line in (
        ("atom.add.shared::cluster.u32", "atom.add.shared::cluster.u32 %y, [%a1], %x;"),
        ("red.add.shared::cluster.u32", "red.add.shared::cluster.u32 [%a1], %x;"),
        ("red.add.generic.cluster", "cvt.u64.u32 %w0, %a1; cvta.shared::cluster.u64 %w0, %w0; red.add.u32 [%w0], %x;"),
        (
            "red.async.relaxed.cluster.add.u32",
            "mapa.shared::cluster.u32 %z, mark, 0; red.async.relaxed.cluster.global_marker [%a1], %x, [%z];".replace(
                "global_marker", "shared::cluster.mbarrier::complete_tx::bytes.add.u32"
            ),
        ),
    ):
        wait = ""
        if "async" in name:
            wait = """  setp.ne.u32 %p, %r, 0;
  @%p bra over;
wait:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [mark], 0;
  @!%p bra wait;
over:
"""
        yield case(
            "red" if name.startswith("red") else "atom",
            name,
            "both blocks of a cluster add to a cell of the first",
            [Array("in", "a", "u32", values), Array("out", "d", "u32", sums)],
            load("a", "%x")
            + """  setp.ne.u32 %p, %t, 0;
  @%p bra ready;
  st.shared.u32 [area], 0; mbarrier.init.shared.b64 [mark], 1; mbarrier.arrive.expect_tx.shared.b64 _, [mark], 256;
ready:
"""
            + MEET
            + f"  mapa.shared::cluster.u32 %a1, area, 0;\n  {line}\n"
            + wait
            + MEET
            + "  mapa.shared::cluster.u32 %a1, area, 0; ld.shared::cluster.u32 %x, [%a1];\n"
            + MEET
            + store("d", "%x"),
            "grid 4 block 32 cluster 2",
            "  .shared .align 8 .b64 mark; .shared .u32 area;\n",
        )


# ---- barriers ----


def barriers():
    values = words("barrier.cluster", 256)
    turned = [values[i // 128 * 128 + (i + 37) % 128] for i in range(256)]
    for name, arrive, wait in (
        ("barrier.cluster", "barrier.cluster.arrive;", "barrier.cluster.wait;"),
        ("barrier.cluster.aligned", "barrier.cluster.arrive.release.aligned;", "barrier.cluster.wait.acquire.aligned;"),
        ("barrier.cluster.relaxed", "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed.aligned;", "barrier.cluster.wait.aligned;"),
    ):
        body = (
            load("a", "%x")
            + f"""  ld.param.u64 %w0, [e]; mad.wide.u32 %w1, %g, 4, %w0; st.global.u32 [%w1], %x;
  {arrive} add.u32 %y, %x, 1; {wait}
  and.b32 %y, %g, 127; add.u32 %y, %y, 37; and.b32 %y, %y, 127; and.b32 %z, %g, 128; or.b32 %y, %y, %z;
  mad.wide.u32 %w1, %y, 4, %w0; ld.global.u32 %x, [%w1];
"""
            + store("d", "%x")
        )
        yield case(
            "barrier",
            name,
            "four blocks of a warp read what the others have written to global memory",
            [Array("in", "a", "u32", values), Array("out", "e", "u32", values), Array("out", "d", "u32", turned)],
            body,
            "grid 8 block 32 cluster 4",
        )
    yield case(
        "barrier",
        "barrier.cluster.phases",
        "a token goes around four blocks of two warps, a phase each",
        [Array("out", "d", "u32", [6] * 256)],
        """  setp.eq.u32 %p, %t, 0; @%p st.shared.u32 [token], 0; mov.u32 %z, 0;
"""
        + MEET
        + """again:
  setp.ne.u32 %p, %t, 0; setp.ne.or.u32 %p, %r, %z, %p;
  @%p bra other;
  ld.shared.u32 %x, [token]; add.u32 %y, %r, 1; and.b32 %y, %y, 3; mapa.shared::cluster.u32 %a0, token, %y; add.u32 %x, %x, %r;
  st.shared::cluster.u32 [%a0], %x;
other:
"""
        + MEET
        + """  add.u32 %z, %z, 1; setp.lt.u32 %p, %z, 4;
  @%p bra again;
  mapa.shared::cluster.u32 %a0, token, 0; ld.shared::cluster.u32 %x, [%a0];
"""
        + MEET
        + store("d", "%x"),
        "grid 4 block 64 cluster 4",
        "  .shared .u32 token;\n",
    )
    yield case(
        "barrier",
        "barrier.cluster.exited",
        "threads that have exited are not waited for",
        [Array("inout", "d", "u32", ([0] * 64, ([0] * 16 + [7] * 16) * 2))],
        """  setp.lt.u32 %p, %t, 16;
  @%p bra done;
"""
        + MEET
        + "  mov.u32 %x, 7;\n"
        + store("d", "%x")
        + "done:\n",
        "grid 2 block 32 cluster 2",
    )
    yield case(
        "barrier",
        "barrier.cluster.reqnctapercluster",
        "the kernel says how large its clusters are",
        [Array("out", "d", "u32", [10 * (i // 32 % 2) + 2 for i in range(128)])],
        "  mov.u32 %y, %cluster_nctarank; mad.lo.u32 %x, %r, 10, %y;\n" + store("d", "%x"),
        "grid 4 block 32",
    )


# ---- mbarriers of other blocks ----

INIT = """  setp.ne.u32 %p, %t, 0;
  @%p bra ready;
  mbarrier.init.shared.b64 [mark], {count};
  {expect}
  fence.mbarrier_init.release.cluster;
ready:
"""
WAIT = """wait:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [mark], 0;
  @!%p bra wait;
"""


def remote():
    values = words("mbarrier.remote", 128)
    back = [values[(i // 32 // 2 * 2 + (i // 32 + 1) % 2) * 32 + i % 32] for i in range(128)]
    arrays = [Array("in", "a", "u32", values), Array("out", "d", "u32", back)]
    declared = "  .shared .align 16 .b8 area[512]; .shared .align 8 .b64 mark;\n"
    own = "  mov.u32 %a0, area; mad.lo.u32 %a0, %t, 4, %a0; xor.b32 %y, %r, 1;\n"
    to = "  mapa.shared::cluster.u32 %a1, %a0, %y; mapa.shared::cluster.u32 %z, mark, %y;\n"
    read = WAIT + "  ld.shared.u32 %x, [%a0];\n" + MEET + store("d", "%x")
    yield case(
        "mbarrier",
        "mbarrier.arrive.release.cluster.shared::cluster.b64",
        "the other block's threads write here and arrive",
        arrays,
        load("a", "%x") + INIT.format(count=32, expect="") + MEET + own + to + "  st.shared::cluster.u32 [%a1], %x;\n"
        "  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%z];\n" + read,
        "grid 4 block 32 cluster 2",
        declared,
    )
    expect = "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [mark], {};"
    yield case(
        "st",
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32",
        "the other block's stores are counted here",
        arrays,
        load("a", "%x") + INIT.format(count=1, expect=expect.format(128)) + MEET + own + to
        + "  st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%a1], %x, [%z];\n" + read,
        "grid 4 block 32 cluster 2",
        declared,
    )
    yield case(
        "st",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32",
        "two words at a time",
        arrays,
        load("a", "%x") + INIT.format(count=1, expect=expect.format(256)) + MEET
        + "  mov.u32 %a0, area; mad.lo.u32 %a0, %t, 8, %a0; xor.b32 %y, %r, 1;\n" + to
        + "  add.u32 %n, %x, 5; st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%a1], {%n, %x}, [%z];\n"
        + WAIT + "  ld.shared.u32 %x, [%a0+4]; ld.shared.u32 %y, [%a0]; sub.u32 %y, %y, 5; sub.u32 %y, %y, %x; add.u32 %x, %x, %y;\n"
        + MEET + store("d", "%x"),
        "grid 4 block 32 cluster 2",
        declared,
    )


# ---- bulk copies ----


def bulk():
    values = words("bulk", 128)
    arrays = [Array("in", "a", "u32", values), Array("out", "d", "u32", values)]
    declared = "  .shared .align 128 .b8 area[512]; .shared .align 8 .b64 mark;\n"
    expect = "mbarrier.arrive.expect_tx.shared.b64 _, [mark], {};"
    from_global = "ld.param.u64 %at, [a]; cp.async.bulk.shared::{}.global.mbarrier::complete_tx::bytes{} [area], [%at], 512, [mark]{};"
    read = WAIT + "  mov.u32 %a0, area; mad.lo.u32 %a0, %t, 4, %a0; ld.shared.u32 %x, [%a0];\n"
    one = "  setp.ne.u32 %p, %t, 0;\n  @%p bra done;\n  {}\ndone:\n"
    for name, line in (
        ("cp.async.bulk.shared::cluster.global", from_global.format("cluster", "", "")),
        ("cp.async.bulk.shared::cta.global", from_global.format("cta", "", "")),
        (
            "cp.async.bulk.shared::cluster.global.L2::cache_hint",
            "createpolicy.fractional.L2::evict_first.b64 %w0, 1.0; " + from_global.format("cluster", ".L2::cache_hint", ", %w0"),
        ),
    ):
        yield case(
            "cp",
            name,
            "512 bytes, counted by an mbarrier",
            arrays,
            INIT.format(count=1, expect=expect.format(512)) + "  bar.sync 0;\n" + one.format(line) + read + store("d", "%x"),
            "grid 1 block 128",
            declared,
        )
    yield case(
        "cp",
        "cp.async.bulk.shared::cluster.global.multicast::cluster",
        "each block of four fetches a quarter for all",
        [arrays[0], Array("out", "d", "u32", values * 4)],
        INIT.format(count=1, expect=expect.format(512))
        + MEET
        + one.format(
            """mov.b16 %h, 15; mov.u32 %a0, area; mad.lo.u32 %a0, %r, 128, %a0; ld.param.u64 %at, [a]; mad.wide.u32 %at, %r, 128, %at;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%a0], [%at], 128, [mark], %h;"""
        )
        + read
        + MEET
        + store("d", "%x"),
        "grid 4 block 128 cluster 4",
        declared,
    )
    back = [values[(i + 64) % 128] for i in range(128)]
    own = load("a", "%x") + "  mov.u32 %a0, area; mad.lo.u32 %a0, %t, 4, %a0; st.shared.u32 [%a0], %x; fence.proxy.async.shared::cta;\n"
    yield case(
        "cp",
        "cp.async.bulk.shared::cluster.shared::cta",
        "256 bytes into the other block",
        [arrays[0], Array("out", "d", "u32", back)],
        own
        + INIT.format(count=1, expect=expect.format(256))
        + MEET
        + one.format(
            """xor.b32 %y, %r, 1; mapa.shared::cluster.u32 %a1, area, %y; mapa.shared::cluster.u32 %z, mark, %y;
  cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%a1+256], [area], 256, [%z];"""
        )
        + WAIT
        + "  ld.shared.u32 %x, [%a0+256];\n"
        + MEET
        + store("d", "%x"),
        "grid 2 block 64 cluster 2",
        declared,
    )
    out = """  bar.sync 0;
"""
    end = " cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0;"
    yield case(
        "cp",
        "cp.async.bulk.global.shared::cta.bulk_group",
        "512 bytes to global memory",
        arrays,
        own + out + one.format("ld.param.u64 %at, [d]; cp.async.bulk.global.shared::cta.bulk_group [%at], [area], 512;" + end),
        "grid 1 block 128",
        declared,
    )
    some = [v if 0x35A1 >> (4 * (n % 4)) & 15 == 15 else sum(
        (v if 0x35A1 >> (4 * (n % 4) + k) & 1 else 0) & 0xFF << 8 * k for k in range(4)) for n, v in enumerate(values)]
    yield case(
        "cp",
        "cp.async.bulk.global.shared::cta.bulk_group.cp_mask",
        "some bytes of each 16 to global memory that is zero",
        [arrays[0], Array("inout", "d", "u32", ([0] * 128, some))],
        own + out + one.format(
            "mov.b16 %h, 0x35a1; ld.param.u64 %at, [d]; cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%at], [area], 512, %h;" + end),
        "grid 1 block 128",
        declared,
        target=(86, 100),
    )
    yield case(
        "cp",
        "cp.async.bulk.prefetch.L2.global",
        "changes nothing",
        arrays,
        load("a", "%x") + "  ld.param.u64 %at, [a]; cp.async.bulk.prefetch.L2.global [%at], 512;\n" + store("d", "%x"),
        "grid 1 block 128",
        declared,
    )
    yield from reductions(own, out, one, end, declared, values, expect)


def signed(v):
    return v - (1 << 32) if v >> 31 else v


def reductions(own, out, one, end, declared, values, expect):
    before = words("bulk.reduce", 128)
    operations = {
        "add.u32": lambda a, b: a + b & ALL,
        "min.s32": lambda a, b: min(signed(a), signed(b)) & ALL,
        "max.u32": max,
        "and.b32": lambda a, b: a & b,
        "or.b32": lambda a, b: a | b,
        "xor.b32": lambda a, b: a ^ b,
        "inc.u32": lambda a, b: 0 if a >= b else a + 1,
        "dec.u32": lambda a, b: b if a == 0 or a > b else a - 1,
    }
    for name, operation in operations.items():
        after = [operation(a, b) for a, b in zip(before, values)]
        yield case(
            "cp",
            f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{name}",
            "512 bytes into global memory",
            [Array("in", "a", "u32", values), Array("inout", "d", "u32", (before, after))],
            own
            + out
            + one.format(
                f"ld.param.u64 %at, [d]; cp.reduce.async.bulk.global.shared::cta.bulk_group.{name} [%at], [area], 512;" + end
            ),
            "grid 1 block 128",
            declared,
        )
    small = words("bulk.add64", 64)
    total = []
    for n in range(0, 64, 2):
        a, b = small[n] | small[n + 1] << 32, values[n] | values[n + 1] << 32
        total += [a + b & ALL, (a + b) >> 32 & ALL]
    yield case(
        "cp",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64",
        "256 bytes into global memory",
        [Array("in", "a", "u32", values), Array("inout", "d", "u32", (small, total))],
        own
        + out
        + one.format("ld.param.u64 %at, [d]; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64 [%at], [area], 256;" + end),
        "grid 1 block 128",
        declared,
    )
    other = words("bulk.reduce.cluster", 128)
    sums = [(v + other[i]) & ALL for i, v in enumerate(values)]
    yield case(
        "cp",
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32",
        "each block adds its words to those of the other",
        [Array("in", "a", "u32", values[:64] + other[:64]), Array("out", "d", "u32", sums[:64] * 2)],
        own
        + INIT.format(count=1, expect=expect.format(256))
        + """  st.shared.u32 [%a0+256], %x; fence.proxy.async.shared::cta;
"""
        + MEET
        + one.format(
            """xor.b32 %y, %r, 1; mapa.shared::cluster.u32 %a1, area, %y; mapa.shared::cluster.u32 %z, mark, %y;
  cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%a1+256], [area], 256, [%z];"""
        )
        + WAIT
        + "  ld.shared.u32 %x, [%a0+256];\n"
        + MEET
        + store("d", "%x"),
        "grid 2 block 64 cluster 2",
        declared,
    )


def cases():
    yield from registers()
    yield from neighbours()
    for one in barriers():
        if one.name.endswith("reqnctapercluster"):
            one.text = one.text.replace("{\n", ".reqnctapercluster 2, 1, 1\n{\n", 1)
        yield one
    yield from remote()
    yield from bulk()
