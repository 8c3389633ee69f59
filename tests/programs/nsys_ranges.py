# SPDX-License-Identifier: Apache-2.0
# nsys_ranges.py DATABASE: the ranges of a database of `farfault report --export-nsys` with their kernels, as scripts for nsys' databases
# find them: by the call that launched a kernel, on the range's thread and in its time; and by the kernels' time alone.
import sqlite3, sys

db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
name = "coalesce(n.text, s.value)"
ranges = f"NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId JOIN ENUM_NSYS_EVENT_TYPE e ON e.id = n.eventType"
called = "CUPTI_ACTIVITY_KIND_RUNTIME r ON r.globalTid = n.globalTid AND r.start >= n.start AND r.end <= n.end"
kernels = "CUPTI_ACTIVITY_KIND_KERNEL k ON k.correlationId = r.correlationId JOIN StringIds i ON i.id = k.shortName"


def rows(sql): return db.execute(sql).fetchall()


domains = dict(rows("SELECT domainId, text FROM NVTX_EVENTS WHERE eventType = 75"))
launched = {key[:2]: key[2:] for key in rows(f"SELECT {name}, n.domainId, i.value, count(*) FROM {ranges} JOIN {called} JOIN {kernels} WHERE n.eventType IN (59, 60) GROUP BY 1, 2, 3")}
timed = {key[:2]: key[2] for key in rows(f"SELECT {name}, n.domainId, count(*) FROM {ranges} JOIN CUPTI_ACTIVITY_KIND_KERNEL k ON k.start >= n.start AND k.end <= n.end WHERE n.eventType IN (59, 60) GROUP BY 1, 2")}
for text, domain, kind, times in rows(f"SELECT {name}, n.domainId, e.name, count(*) FROM {ranges} WHERE n.eventType IN (59, 60) GROUP BY 1, 2, 3 ORDER BY 1"):
    kernel, count = launched.get((text, domain), ("", 0))
    by_time = timed.get((text, domain), 0)
    print(f"{text} ({kind}{', ' + domains[domain] if domain else ''}): {times} time{'s' if times > 1 else ''}" + (f", {count} {kernel}" if count else "") + (f", {by_time} by time" if by_time == count and count else ""))
alone = rows(f"SELECT i.value, count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN {kernels} WHERE NOT EXISTS (SELECT 1 FROM NVTX_EVENTS n WHERE n.eventType IN (59, 60) AND r.globalTid = n.globalTid AND r.start >= n.start AND r.end <= n.end) GROUP BY 1")
for kernel, count in alone: print(f"{kernel} in no range: {count}")
for call, count in rows("SELECT value, count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds ON id = nameId GROUP BY 1 ORDER BY 1"): print(f"{call}: {count}")
assert rows("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.end < r.start OR r.start < 0") == [(0,)]
assert rows("SELECT count(*) FROM NVTX_EVENTS WHERE end < start OR text != (SELECT value FROM StringIds WHERE id = textId)") == [(0,)]
assert rows("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) WHERE k.start < r.start") == [(0,)]
assert rows("SELECT count(*), count(DISTINCT correlationId) FROM CUPTI_ACTIVITY_KIND_RUNTIME") == [rows("SELECT count(*), count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME")[0]]
assert rows("SELECT count(*) FROM TARGET_INFO_GPU g JOIN TARGET_INFO_CUDA_DEVICE c ON g.id = c.gpuId") != [(0,)]
