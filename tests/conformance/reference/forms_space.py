# SPDX-License-Identifier: Apache-2.0
"""Conformance cases of address spaces, addresses, initial values, special registers, asynchronous copies and mbarrier."""
from .forms_control import INDEX, kernel_case, load, store, words
from .writer import Array

ALL = 0xFFFFFFFF


# ---- address spaces ----


def generic_addresses():
    values = words("generic", 64)
    turned = [values[(i + 9) % 64] for i in range(64)]
    arrays = [Array("in", "a", "u32", values), Array("out", "d", "u32", turned)]
    read = f"""  bar.sync 0;
  add.u32 %y, %i, 9; and.b32 %y, %y, 63; mad.wide.u32 %at, %y, 4, %to; ld.u32 %y, [%at];
{store("d", "%y")}  ret;
}}"""
    for name, line in (
        ("cvta.shared.u64", "mov.u64 %to, area; cvta.shared.u64 %to, %to;"),
        ("cvta.shared.u64.variable", "cvta.shared.u64 %to, area;"),
        ("cvta.shared.u64.offset", "cvta.shared.u64 %to, area+16; sub.u64 %to, %to, 16;"),
    ):
        text = f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
  .shared .align 16 .b8 area[256];
{INDEX}{load("a", "%x")}  {line}
  mad.wide.u32 %at, %i, 4, %to; st.u32 [%at], %x;
{read}"""
        yield kernel_case("cvta", name, "shared memory by generic loads and stores", arrays, text, "grid 1 block 64")
    text = f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
  .shared .align 16 .b8 area[256];
{INDEX}{load("a", "%x")}  cvta.shared.u64 %to, area; mad.wide.u32 %at, %i, 4, %to;
  cvta.to.shared.u64 %at, %at; st.shared.u32 [%at], %x;
{read}"""
    yield kernel_case("cvta", "cvta.to.shared.u64", "there and back", arrays, text, "grid 1 block 64")
    same = [Array("in", "a", "u32", values), Array("out", "d", "u32", [v ^ 1 for v in values])]
    for name, lines in (
        ("cvta.local.u64", "cvta.local.u64 %to, mine; st.local.u32 [mine+4], %x; ld.u32 %y, [%to+4];"),
        (
            "cvta.to.local.u64",
            "cvta.local.u64 %to, mine; st.u32 [%to+8], %x; cvta.to.local.u64 %at, %to; ld.local.u32 %y, [%at+8];",
        ),
        (
            "cvta.local.u64.register",
            "mov.u64 %at, mine; add.u64 %at, %at, 4; cvta.local.u64 %to, %at; st.u32 [%to], %x; ld.local.u32 %y, [mine+4];",
        ),
    ):
        text = f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
  .local .align 8 .b8 mine[16];
{INDEX}{load("a", "%x")}  {lines}
  xor.b32 %y, %y, 1;
{store("d", "%y")}  ret;
}}"""
        yield kernel_case("cvta", name, "each thread's own memory by generic addresses", same, text, "grid 1 block 64")
    variables = f""".const .align 4 .u32 fixed[4] = {{11, 22, 33, 44}};
.global .align 4 .u32 moving[4] = {{1, 2, 3, 4}};
"""
    text = (
        variables
        + f""".visible .entry test(.param .u64 d)
{{
{INDEX}  and.b32 %z, %i, 3;
  cvta.const.u64 %to, fixed; mad.wide.u32 %at, %z, 4, %to; ld.u32 %x, [%at];
  cvta.global.u64 %to, moving; mad.wide.u32 %at, %z, 4, %to; ld.u32 %y, [%at];
  cvta.to.global.u64 %at, %at; ld.global.u32 %z, [%at]; mad.lo.u32 %x, %x, 10, %y; add.u32 %x, %x, %z;
{store("d", "%x")}  ret;
}}"""
    )
    out = [((i & 3) + 1) * 110 + 2 * ((i & 3) + 1) for i in range(64)]
    yield kernel_case(
        "cvta",
        "cvta.const.u64",
        "constants and globals by generic addresses",
        [Array("out", "d", "u32", out)],
        text,
        "grid 1 block 64",
    )
    text = f""".visible .entry test(.param .u64 d, .param .align 8 .b8 given[16])
{{
{INDEX}  cvta.param.u64 %to, given; and.b32 %z, %i, 3; mad.wide.u32 %at, %z, 4, %to; ld.u32 %x, [%at];
{store("d", "%x")}  ret;
}}"""
    given = words("given", 4)
    yield kernel_case(
        "cvta",
        "cvta.param.u64",
        "the kernel's parameters by generic addresses",
        [Array("out", "d", "u32", (given * 16)[:64]), Array("param", "given", "u32", given)],
        text,
        "grid 1 block 64",
        target=(77, 80),
    )
    for name, take in (
        ("cvta.param.u64", "mov.b32 %x, given; cvt.u64.u32 %to, %x; cvta.param.u64 %to, %to; mad.wide.u32 %at, %z, 4, %to; ld.u32 %x, [%at];"),
        ("ld.param.u32", "mov.b32 %x, given; mad.lo.u32 %x, %z, 4, %x; ld.param.u32 %x, [%x];"),
        ("cvta.const.u64", "mov.b32 %x, table; cvt.u64.u32 %to, %x; cvta.const.u64 %to, %to; mad.wide.u32 %at, %z, 4, %to; ld.u32 %x, [%at];"),
        ("ld.const.u32", "mov.b32 %x, table; mad.lo.u32 %x, %z, 4, %x; ld.const.u32 %x, [%x];"),
    ):
        text = f""".const .align 8 .b32 table[4] = {{{", ".join(str(x) for x in given)}}};
.visible .entry test(.param .u64 d, .param .align 8 .b8 given[16])
{{
{INDEX}  and.b32 %z, %i, 3; {take}
{store("d", "%x")}  ret;
}}"""
        yield kernel_case(
            "cvta",
            f"{name}.short",
            "an address taken in 32 bits, as LLVM takes short pointers",
            [Array("out", "d", "u32", (given * 16)[:64]), Array("param", "given", "u32", given)],
            text,
            "grid 1 block 64",
            target=(77, 80),
        )


def space_tests():
    for space in ("global", "shared", "local", "const"):
        text = (
            f""".const .u32 fixed = 5;
.global .u32 moving;
.visible .entry test(.param .u64 d)
{{
  .shared .u32 ours; .local .u32 mine;
{INDEX}  mov.u32 %x, 0;
"""
            + "".join(
                f"  cvta.{s}.u64 %to, {v}; isspacep.{space} %p, %to;\n  @%p or.b32 %x, %x, {1 << k};\n"
                for k, (s, v) in enumerate(
                    (("global", "moving"), ("shared", "ours"), ("local", "mine"), ("const", "fixed"))
                )
            )
            + f"""  ld.param.u64 %to, [d]; isspacep.{space} %p, %to;
  @%p or.b32 %x, %x, 16;
{store("d", "%x")}  ret;
}}"""
        )
        expected = {"global": 1 | 16, "shared": 2, "local": 4, "const": 8}[space]
        yield kernel_case(
            "isspacep",
            f"isspacep.{space}",
            "bits: a .global, .shared, .local, .const variable, allocated memory",
            [Array("out", "d", "u32", [expected] * 32)],
            text,
            "grid 1 block 32",
        )


def address_forms():
    values = words("addresses", 64)
    arrays = [
        Array("in", "a", "u32", values),
        Array("out", "d", "u32", [(values[i] + values[(i + 2) % 64] + values[i ^ 1]) & ALL for i in range(64)]),
    ]
    text = f""".shared .align 4 .u32 area[66];
.visible .entry test(.param .u64 a, .param .u64 d)
{{
  .reg .u32 %s;
{INDEX}{load("a", "%x")}  mov.u32 %s, area; mad.lo.u32 %s, %i, 4, %s; st.shared.u32 [%s], %x;
  setp.lt.u32 %p, %i, 2;
  @%p st.shared.u32 [%s+256], %x;
  bar.sync 0;
  ld.shared.u32 %y, [%s+8]; add.u32 %x, %x, %y;
  xor.b32 %z, %i, 1; mov.u64 %to, area+12; mad.wide.u32 %to, %z, 4, %to; ld.shared.u32 %y, [%to+-12]; add.u32 %x, %x, %y;
{store("d", "%x")}  ret;
}}"""
    yield kernel_case(
        "ld",
        "address.forms",
        "32-bit shared addresses, offsets of both signs, a variable plus a constant",
        arrays,
        text,
        "grid 1 block 64",
    )
    text = f""".global .align 4 .u32 cells[8] = {{10, 20, 30, 40, 50, 60, 70, 80}};
.visible .entry test(.param .u64 d)
{{
{INDEX}  ld.global.u32 %x, [cells]; ld.global.u32 %y, [cells+12]; add.u32 %x, %x, %y; ld.global.u32 %y, [cells+28]; add.u32 %x, %x, %y;
{store("d", "%x")}  ret;
}}"""
    yield kernel_case(
        "ld",
        "address.variable",
        "a variable and a variable plus an offset as the address",
        [Array("out", "d", "u32", [130] * 32)],
        text,
        "grid 1 block 32",
    )


def initial_values():
    text = f""".global .align 4 .u32 numbers[6] = {{1, 0x20, 3}};
.global .align 1 .b8 letters[8] = {{72, 105, 0x21, -1}};
.global .align 8 .u64 pointers[3] = {{numbers, numbers+8, generic(letters)}};
.global .align 4 .f32 halves[2] = {{0.5, 0f3E800000}};
.global .align 16 .v4 .u32 four = {{5, 6, 7, 8}};
.const .align 2 .s16 table[2][3] = {{{{1, -2, 3}}, {{-4, 5, -6}}}};
.const .align 8 .f64 doubles[2] = {{1.5, 0d4000000000000000}};
.visible .entry test(.param .u64 d, .param .u64 e)
{{
  .reg .f32 %f; .reg .f64 %g, %h; .reg .u32 %sum;
{INDEX}  ld.global.u32 %sum, [numbers+4]; ld.global.u32 %x, [numbers+16]; add.u32 %sum, %sum, %x;
  ld.global.u8 %x, [letters+2]; add.u32 %sum, %sum, %x; ld.global.s8 %x, [letters+3]; add.u32 %sum, %sum, %x; ld.global.u8 %x, [letters+5]; add.u32 %sum, %sum, %x;
  ld.global.u64 %to, [pointers+8]; ld.global.u32 %x, [%to]; add.u32 %sum, %sum, %x;
  ld.global.u64 %to, [pointers+16]; ld.u8 %x, [%to]; add.u32 %sum, %sum, %x;
  ld.global.u32 %x, [four+12]; add.u32 %sum, %sum, %x;
  ld.const.s16 %x, [table+6]; add.u32 %sum, %sum, %x; ld.const.s16 %x, [table+10]; add.u32 %sum, %sum, %x;
{store("d", "%sum")}  ld.global.f32 %f, [halves]; cvt.f64.f32 %g, %f; ld.global.f32 %f, [halves+4]; cvt.f64.f32 %h, %f; add.f64 %g, %g, %h;
  ld.const.f64 %h, [doubles]; add.f64 %g, %g, %h; ld.const.f64 %h, [doubles+8]; add.f64 %g, %g, %h;
  ld.param.u64 %at, [e]; mad.wide.u32 %at, %i, 8, %at; st.global.f64 [%at], %g;
  ret;
}}"""
    total = 0x20 + 0 + 0x21 - 1 + 0 + 3 + 72 + 8 - 4 - 6
    yield kernel_case(
        "ld",
        "initial.values",
        "initial values of every kind, addresses among them; what is not given is zero",
        [Array("out", "d", "u32", [total] * 8), Array("out", "e", "f64", [0x4011000000000000] * 8)],
        text,
        "grid 1 block 8",
    )


def shared_variables():
    values = words("dynamic", 64)
    text = f""".extern .shared .align 16 .b8 dynamic[];
.shared .align 4 .u32 fixed[64];
.visible .entry test(.param .u64 a, .param .u64 d, .param .u64 e)
{{
{INDEX}{load("a", "%x")}  mov.u64 %to, dynamic; mad.wide.u32 %to, %i, 4, %to; st.shared.u32 [%to], %x;
  mov.u64 %to, fixed; mad.wide.u32 %to, %i, 4, %to; not.b32 %x, %x; st.shared.u32 [%to], %x;
  bar.sync 0;
  xor.b32 %y, %i, 63; mov.u64 %to, dynamic; mad.wide.u32 %to, %y, 4, %to; ld.shared.u32 %x, [%to];
{store("d", "%x")}  mov.u64 %to, fixed; mad.wide.u32 %to, %y, 4, %to; ld.shared.u32 %x, [%to];
{store("e", "%x")}  ret;
}}"""
    back = values[::-1]
    yield kernel_case(
        "ld",
        "shared.dynamic",
        "memory whose size the launch gives, in addition to a variable of known size",
        [
            Array("in", "a", "u32", values),
            Array("out", "d", "u32", back),
            Array("out", "e", "u32", [v ^ ALL for v in back]),
        ],
        text,
        "grid 1 block 64 shared 256",
    )
    text = f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
  .local .align 4 .b8 mine[64];
{INDEX}{load("a", "%x")}  mov.u32 %y, 0;
fill:
  mov.u64 %to, mine; mad.wide.u32 %to, %y, 4, %to; add.u32 %z, %x, %y; st.local.u32 [%to], %z;
  add.u32 %y, %y, 1; setp.lt.u32 %p, %y, 16;
  @%p bra fill;
  and.b32 %y, %x, 15; mov.u64 %to, mine; mad.wide.u32 %to, %y, 4, %to; ld.local.u32 %z, [%to];
{store("d", "%z")}  ret;
}}"""
    yield kernel_case(
        "ld",
        "local.indexed",
        "each thread indexes its own array by its own value",
        [Array("in", "a", "u32", values), Array("out", "d", "u32", [(v + (v & 15)) & ALL for v in values])],
        text,
        "grid 1 block 64",
    )


# ---- special registers ----


def special_registers():
    grid, block = (3, 2, 2), (4, 3, 2)
    threads = block[0] * block[1] * block[2]
    blocks = [(x, y, z) for z in range(grid[2]) for y in range(grid[1]) for x in range(grid[0])]
    lanes = [(x, y, z) for z in range(block[2]) for y in range(block[1]) for x in range(block[0])]
    index = """  .reg .u32 %i, %v, %w, %b;
  .reg .u64 %at;
  mov.u32 %v, %tid.z; mov.u32 %w, %ntid.y; mad.lo.u32 %i, %v, %w, 0; mov.u32 %v, %tid.y; add.u32 %i, %i, %v;
  mov.u32 %w, %ntid.x; mov.u32 %v, %tid.x; mad.lo.u32 %i, %i, %w, %v;
  mov.u32 %v, %ctaid.z; mov.u32 %w, %nctaid.y; mov.u32 %b, %ctaid.y; mad.lo.u32 %b, %v, %w, %b;
  mov.u32 %w, %nctaid.x; mov.u32 %v, %ctaid.x; mad.lo.u32 %b, %b, %w, %v;
"""
    launch = f"grid {' '.join(map(str, grid))} block {' '.join(map(str, block))}"
    for k, axis in enumerate("xyz"):
        for name, function in (
            ("tid", lambda c, t, k=k: t[k]),
            ("ntid", lambda c, t, k=k: block[k]),
            ("ctaid", lambda c, t, k=k: c[k]),
            ("nctaid", lambda c, t, k=k: grid[k]),
        ):
            out = [function(c, t) for c in blocks for t in lanes]
            text = f""".visible .entry test(.param .u64 d)
{{
{index}  mad.lo.u32 %i, %b, {threads}, %i; mov.u32 %v, %{name}.{axis};
  ld.param.u64 %at, [d]; mad.wide.u32 %at, %i, 4, %at; st.global.u32 [%at], %v;
  ret;
}}"""
            yield kernel_case(
                "mov", f"mov.u32.{name}.{axis}", f"%{name}.{axis}", [Array("out", "d", "u32", out)], text, launch
            )
    out = [t % 32 for c in blocks for t in range(threads)]
    text = f""".visible .entry test(.param .u64 d)
{{
{index}  mad.lo.u32 %i, %b, {threads}, %i; mov.u32 %v, %laneid;
  ld.param.u64 %at, [d]; mad.wide.u32 %at, %i, 4, %at; st.global.u32 [%at], %v;
  ret;
}}"""
    yield kernel_case("mov", "mov.u32.laneid", "%laneid", [Array("out", "d", "u32", out)], text, launch)
    yield from bounded_registers()


def bounded_registers():
    """Values that the manual bounds rather than gives: each check that holds adds a bit."""
    checks = [
        ("mov.u32 %x, %smid; mov.u32 %y, %nsmid; setp.lt.u32 %p, %x, %y;", "%smid < %nsmid"),
        ("mov.u32 %x, %warpid; mov.u32 %y, %nwarpid; setp.lt.u32 %p, %x, %y;", "%warpid < %nwarpid"),
        ("mov.u64 %at, %clock64; mov.u64 %to, %clock64; setp.ge.u64 %p, %to, %at;", "%clock64 does not go back"),
        (
            "mov.u32 %x, %clock; mov.u32 %y, %clock; sub.u32 %x, %y, %x; setp.lt.u32 %p, %x, 0x40000000;",
            "%clock neither",
        ),
        ("mov.u64 %at, %globaltimer; mov.u64 %to, %globaltimer; setp.ge.u64 %p, %to, %at;", "%globaltimer neither"),
        ("mov.u32 %x, %dynamic_smem_size; setp.eq.u32 %p, %x, 256;", "%dynamic_smem_size is what the launch gave"),
        ("mov.u32 %x, %total_smem_size; setp.ge.u32 %p, %x, 256;", "%total_smem_size is at least that"),
        ("mov.u32 %x, WARP_SZ; setp.eq.u32 %p, %x, 32;", "WARP_SZ is 32"),
        ("mov.u32 %x, %clock_hi; mov.u32 %y, %clock_hi; setp.ge.u32 %p, %y, %x;", "%clock_hi does not go back"),
    ]
    lines = "".join(
        f"  {line} // {1 << k}: {what}\n  @%p or.b32 %z, %z, {1 << k};\n" for k, (line, what) in enumerate(checks)
    )
    text = f""".visible .entry test(.param .u64 d)
{{
{INDEX}  mov.u32 %z, 0;
{lines}{store("d", "%z")}  ret;
}}"""
    yield kernel_case(
        "mov",
        "mov.bounded",
        "special registers of which only bounds are known",
        [Array("out", "d", "u32", [(1 << len(checks)) - 1] * 64)],
        text,
        "grid 1 block 64 shared 256",
    )


# ---- asynchronous copies ----


def asynchronous_copies():
    values = words("cp.async", 256)
    forms = [("cp.async.ca.shared.global", n) for n in (4, 8, 16)]
    forms += [
        ("cp.async.cg.shared.global", 16),
        ("cp.async.cg.shared.global.L2::128B", 16),
        ("cp.async.ca.shared.global.L2::64B", 8),
    ]
    for opcode, size in forms:
        yield copy_file(opcode, size, size, values, "")
    yield copy_file("cp.async.ca.shared.global", 16, 8, values, ".zeros")
    yield copy_file("cp.async.cg.shared.global", 16, 0, values, ".nothing")
    yield wait_file(values)


def copy_file(opcode, size, taken, values, suffix):
    """Thread i copies `size` bytes, of which `taken` are read and the rest are zeros; another thread reads them."""
    count = size // 4
    data = values[: 64 * count]
    out = []
    for i in range(64):
        j = (i + 40) % 64
        out += [v if 4 * k < taken else 0 for k, v in enumerate(data[j * count : (j + 1) * count])]
    copies = "".join(f"  ld.shared.u32 %x, [%to+{4 * k}]; st.global.u32 [%at+{4 * k}], %x;\n" for k in range(count))
    last = f", {taken}" if taken != size else ""
    text = f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
  .shared .align 16 .b8 area[{64 * size}];
{INDEX}  ld.param.u64 %at, [a]; mad.wide.u32 %at, %i, {size}, %at;
  mov.u64 %to, area; mad.wide.u32 %to, %i, {size}, %to;
  {opcode} [%to], [%at], {size}{last};
  cp.async.wait_all;
  bar.sync 0;
  add.u32 %y, %i, 40; and.b32 %y, %y, 63; mov.u64 %to, area; mad.wide.u32 %to, %y, {size}, %to;
  ld.param.u64 %at, [d]; mad.wide.u32 %at, %i, {size}, %at;
{copies}  ret;
}}"""
    return kernel_case(
        "cp",
        f"{opcode}.{size}{suffix}",
        f"{size} bytes per thread, {taken} of them from memory",
        [Array("in", "a", "u32", data), Array("out", "d", "u32", out)],
        text,
        "grid 1 block 64",
        target=(74, 80),
    )


def wait_file(values):
    data = values[:128]
    text = f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
  .shared .align 16 .b8 area[512];
{INDEX}  ld.param.u64 %at, [a]; mad.wide.u32 %at, %i, 4, %at; mov.u64 %to, area; mad.wide.u32 %to, %i, 4, %to;
  cp.async.ca.shared.global [%to], [%at], 4;
  cp.async.commit_group;
  cp.async.ca.shared.global [%to+256], [%at+256], 4;
  cp.async.commit_group;
  cp.async.wait_group 1;
  ld.shared.u32 %x, [%to];
  cp.async.wait_group 0;
  ld.shared.u32 %y, [%to+256]; add.u32 %x, %x, %y;
{store("d", "%x")}  ret;
}}"""
    return kernel_case(
        "cp",
        "cp.async.wait_group",
        "two groups, waited for one after the other",
        [Array("in", "a", "u32", data), Array("out", "d", "u32", [(data[i] + data[i + 64]) & ALL for i in range(64)])],
        text,
        "grid 1 block 64",
    )


def memory_barriers():
    """mbarrier: 64 threads arrive, all wait, values pass; then the next phase."""
    values = words("mbarrier", 64)
    waits = {
        "mbarrier.test_wait.shared.b64": "mbarrier.test_wait.shared.b64 %p, [flag], %state;",
        "mbarrier.try_wait.shared.b64": "mbarrier.try_wait.shared.b64 %p, [flag], %state;",
        "mbarrier.try_wait.parity.shared.b64": "mbarrier.try_wait.parity.shared.b64 %p, [flag], 0;",
        "mbarrier.test_wait.parity.shared::cta.b64": "mbarrier.test_wait.parity.shared::cta.b64 %p, [flag], 0;",
    }
    for name, wait in waits.items():
        arrive = "mbarrier.arrive.shared::cta.b64" if "::cta" in name else "mbarrier.arrive.shared.b64"
        text = f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
  .shared .align 8 .b64 flag; .shared .u32 area[64]; .reg .b64 %state;
{INDEX}{load("a", "%x")}  setp.ne.u32 %p, %i, 0;
  @%p bra ready;
  mbarrier.init.shared.b64 [flag], 64;
ready:
  bar.sync 0;
  mov.u64 %to, area; mad.wide.u32 %to, %i, 4, %to; st.shared.u32 [%to], %x;
  {arrive} %state, [flag];
wait:
  {wait}
  @!%p bra wait;
  xor.b32 %y, %i, 63; mov.u64 %to, area; mad.wide.u32 %to, %y, 4, %to; ld.shared.u32 %x, [%to];
{store("d", "%x")}  bar.sync 0;
  setp.ne.u32 %p, %i, 0;
  @%p bra done;
  mbarrier.inval.shared.b64 [flag];
done:
  ret;
}}"""
        yield kernel_case(
            "mbarrier",
            name,
            "64 threads arrive and wait",
            [Array("in", "a", "u32", values), Array("out", "d", "u32", values[::-1])],
            text,
            "grid 1 block 64",
            target=(80, 90),
        )


def late_waits():
    """A thread gives the mbarrier up as soon as its own wait is over, as a destructor does: the phase stays over."""
    values = words("mbarrier.inval", 128)
    for wait in ("test_wait", "try_wait"):
        text = f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
  .shared .align 8 .b64 flag; .shared .u32 area[128];
{INDEX}{load("a", "%x")}  setp.ne.u32 %p, %i, 0;
  @%p bra ready;
  mbarrier.init.shared.b64 [flag], 128;
ready:
  bar.sync 0;
  mov.u64 %to, area; mad.wide.u32 %to, %i, 4, %to; st.shared.u32 [%to], %x;
  mbarrier.arrive.shared.b64 _, [flag];
wait:
  mbarrier.{wait}.parity.shared.b64 %q, [flag], 0;
  @!%q bra wait;
  @%p bra kept;
  mbarrier.inval.shared.b64 [flag];
kept:
  xor.b32 %y, %i, 127; mov.u64 %to, area; mad.wide.u32 %to, %y, 4, %to; ld.shared.u32 %x, [%to];
{store("d", "%x")}  ret;
}}"""
        yield kernel_case(
            "mbarrier",
            f"mbarrier.inval.{wait}",
            "128 threads wait, and one ends the object's life",
            [Array("in", "a", "u32", values), Array("out", "d", "u32", values[::-1])],
            text,
            "grid 1 block 128",
            target=(80, 90),
        )


def counted_barriers():
    """mbarriers that also count bytes, or copies of this thread that are on their way."""
    values = words("mbarrier.expect_tx", 64)
    arrays = [Array("in", "a", "u32", values), Array("out", "d", "u32", values[::-1])]
    bytes_ = """setp.ne.u32 %q, %i, 5;
  @!%q mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [flag], 96;
  bar.sync 0;
  st.shared.u32 [%to], %x;
  mbarrier.arrive.shared::cta.b64 _, [flag];
  @!%q mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [flag], 96;"""
    copied = """cp.async.ca.shared.global [%to], [%at], 4;
  cp.async.mbarrier.arrive.noinc.shared.b64 [flag];"""
    counted = """cp.async.ca.shared.global [%to], [%at], 4;
  cp.async.mbarrier.arrive.shared.b64 [flag];
  mbarrier.arrive.shared.b64 _, [flag];"""
    for name, title, lines in (
        ("mbarrier.expect_tx.relaxed.cta.shared::cta.b64", "bytes are expected and completed", bytes_),
        ("cp.async.mbarrier.arrive.noinc.shared.b64", "the copies' ends are the arrivals", copied),
        ("cp.async.mbarrier.arrive.shared.b64", "the copies' ends are further arrivals", counted),
    ):
        text = f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
  .shared .align 8 .b64 flag; .shared .align 16 .u32 area[64];
{INDEX}{load("a", "%x")}  setp.ne.u32 %p, %i, 0;
  @!%p mbarrier.init.shared.b64 [flag], 64;
  bar.sync 0;
  mov.u64 %to, area; mad.wide.u32 %to, %i, 4, %to;
  {lines}
wait:
  mbarrier.try_wait.parity.shared.b64 %p, [flag], 0;
  @!%p bra wait;
  xor.b32 %y, %i, 63; mov.u64 %to, area; mad.wide.u32 %to, %y, 4, %to; ld.shared.u32 %x, [%to];
{store("d", "%x")}  ret;
}}"""
        yield kernel_case(name.split(".")[0], name, title, arrays, text, "grid 1 block 64", target=(80, 90))


def barrier_phases():
    """Four phases of one mbarrier, each waited for by the state its arrival gave."""
    values = words("mbarrier.phases", 64)
    expected = list(values)
    for step in range(4):
        expected = [(expected[i] + expected[(i + 7 + step) % 64]) & ALL for i in range(64)]
    text = f""".visible .entry test(.param .u64 a, .param .u64 d)
{{
  .shared .align 8 .b64 flag; .shared .align 16 .u32 area[128]; .reg .b64 %state; .reg .u32 %step;
{INDEX}{load("a", "%x")}  setp.ne.u32 %p, %i, 0;
  @!%p mbarrier.init.shared.b64 [flag], 64;
  bar.sync 0;
  mov.u32 %step, 0;
round:
  and.b32 %y, %step, 1; mad.lo.u32 %y, %y, 64, %i; mov.u64 %to, area; mad.wide.u32 %to, %y, 4, %to; st.shared.u32 [%to], %x;
  mbarrier.arrive.release.cta.shared::cta.b64 %state, [flag];
wait:
  mbarrier.test_wait.acquire.cta.shared::cta.b64 %p, [flag], %state;
  @!%p bra wait;
  add.u32 %z, %i, 7; add.u32 %z, %z, %step; and.b32 %z, %z, 63; and.b32 %y, %step, 1; mad.lo.u32 %y, %y, 64, %z;
  mov.u64 %to, area; mad.wide.u32 %to, %y, 4, %to; ld.shared.u32 %y, [%to]; add.u32 %x, %x, %y;
  add.u32 %step, %step, 1; setp.lt.u32 %p, %step, 4;
  @%p bra round;
{store("d", "%x")}  ret;
}}"""
    yield kernel_case(
        "mbarrier",
        "mbarrier.phases",
        "four phases, two buffers",
        [Array("in", "a", "u32", values), Array("out", "d", "u32", expected)],
        text,
        "grid 1 block 64",
        target=(80, 90),
    )
    text = f""".visible .entry test(.param .u64 d)
{{
  .shared .align 8 .b64 one; .shared .align 8 .b64 two; .reg .b64 %state;
{INDEX}  mbarrier.init.shared.b64 [one], 5; mbarrier.init.shared::cta.b64 [two], 2;
  mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %state, [one], 2; mbarrier.pending_count.b64 %x, %state;
  mbarrier.arrive.shared.b64 %state, [one]; mbarrier.pending_count.b64 %y, %state; mad.lo.u32 %x, %x, 10, %y;
  mbarrier.arrive.shared.b64 %state, [one]; mbarrier.pending_count.b64 %y, %state; mad.lo.u32 %x, %x, 10, %y;
  mbarrier.arrive_drop.shared.b64 _, [two]; mbarrier.test_wait.parity.shared.b64 %p, [two], 0; selp.u32 %y, 1, 0, %p; mad.lo.u32 %x, %x, 10, %y;
  mbarrier.arrive.shared.b64 _, [two]; mbarrier.test_wait.parity.shared.b64 %p, [two], 0; selp.u32 %y, 1, 0, %p; mad.lo.u32 %x, %x, 10, %y;
  mbarrier.arrive.shared.b64 _, [two]; mbarrier.test_wait.parity.shared.b64 %p, [two], 1; selp.u32 %y, 1, 0, %p; mad.lo.u32 %x, %x, 10, %y;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [two], 8; mbarrier.test_wait.parity.shared.b64 %p, [two], 0; selp.u32 %y, 1, 0, %p; mad.lo.u32 %x, %x, 10, %y;
  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [two], 8; mbarrier.test_wait.parity.shared.b64 %p, [two], 0; selp.u32 %y, 1, 0, %p; mad.lo.u32 %x, %x, 10, %y;
{store("d", "%x")}  ret;
}}"""
    yield kernel_case(
        "mbarrier",
        "mbarrier.counts",
        "pending counts 5, 3, 2; a dropped arrival; bytes that keep a phase open",
        [Array("out", "d", "u32", [53201101])],
        text,
        "grid 1 block 1",
        target=(80, 90),
    )


def cases():
    for group in (
        generic_addresses,
        space_tests,
        address_forms,
        initial_values,
        shared_variables,
        special_registers,
        asynchronous_copies,
        memory_barriers,
        late_waits,
        counted_barriers,
        barrier_phases,
    ):
        yield from group()
