# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's Warp, whose kernels it compiles with an NVRTC of its own, against its CPU and NumPy."""
import numpy as np
import warp as wp
import warp.sparse
from scipy.sparse import random as random_matrix

from check import check

RANDOM = np.random.default_rng(0)
POINTS, VELOCITIES = RANDOM.standard_normal((2, 100, 3)).astype(np.float32)
QUATERNIONS = RANDOM.standard_normal((100, 4)).astype(np.float32)


@wp.kernel
def move(x: wp.array(dtype=wp.vec3), v: wp.array(dtype=wp.vec3), q: wp.array(dtype=wp.quat), dt: float):
    i = wp.tid()
    v[i] = v[i] + wp.vec3(0.0, -9.8, 0.0) * dt
    x[i] = wp.quat_rotate(wp.normalize(q[i]), x[i] + v[i] * dt)
    v[i] = wp.outer(x[i], v[i]) * v[i] * 0.1 + wp.cross(x[i], v[i])


@wp.kernel
def functions(x: wp.array(dtype=wp.vec3), out: wp.array2d(dtype=float), counts: wp.array(dtype=int)):
    i = wp.tid()
    a = x[i][0]
    out[i, 0] = wp.sin(a) * wp.exp(a) + wp.atan2(a, 1.0)
    out[i, 1] = wp.erf(a) + wp.cbrt(a) + wp.pow(wp.abs(a), 1.5)
    state = wp.rand_init(42, i)
    out[i, 2] = wp.randf(state) + wp.noise(state, wp.vec2(float(i) * 0.1, 0.3))
    if a > 0.0:
        wp.atomic_add(counts, 0, 1)
    wp.atomic_max(counts, 1, int(a * 100.0))


@wp.kernel
def energy(x: wp.array(dtype=float), sum: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(sum, 0, wp.sin(x[i]) * x[i])


@wp.kernel
def neighbours(grid: wp.uint64, x: wp.array(dtype=wp.vec3), counts: wp.array(dtype=int)):
    i = wp.tid()
    for j in wp.hash_grid_query(grid, x[i], 0.8):
        if wp.length(x[i] - x[j]) < 0.8:
            counts[i] = counts[i] + 1


@wp.kernel
def nearest(mesh: wp.uint64, x: wp.array(dtype=wp.vec3), distance: wp.array(dtype=float)):
    i = wp.tid()
    found = wp.mesh_query_point(mesh, x[i], 10.0)
    if found.result:
        distance[i] = wp.length(wp.mesh_eval_position(mesh, found.face, found.u, found.v) - x[i])


@wp.kernel
def rows(a: wp.array2d(dtype=float), sums: wp.array(dtype=float)):
    i = wp.tid()
    wp.tile_store(sums, wp.tile_sum(wp.tile_load(a[i], shape=256)), offset=i)


@wp.kernel
def count_down(n: wp.array(dtype=int), rounds: wp.array(dtype=int)):
    rounds[0] = rounds[0] + 1
    n[0] = n[0] - 1


def on_both(kernel, make):
    """Whether the arrays of both devices agree after the kernel; make(device) gives the arguments."""
    results = []
    for device in ("cpu", "cuda:0"):
        arguments = make(device)
        wp.launch(kernel, dim=100, inputs=arguments, device=device)
        results.append([one.numpy() for one in arguments if isinstance(one, wp.array)])
    return all(np.allclose(a, b, 1e-4, 1e-4) for a, b in zip(*results))


def vectors(device):
    return [wp.array(POINTS, dtype=wp.vec3, device=device), wp.array(VELOCITIES, dtype=wp.vec3, device=device),
            wp.array(QUATERNIONS, dtype=wp.quat, device=device), 0.1]


def gradient():
    x = wp.array(POINTS[:, 0].copy(), dtype=float, requires_grad=True)
    sum = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(energy, 100, [x, sum])
    tape.backward(sum)
    return np.allclose(x.grad.numpy(), np.sin(POINTS[:, 0]) + POINTS[:, 0] * np.cos(POINTS[:, 0]), atol=1e-4)


def grid():
    x, counts = wp.array(POINTS, dtype=wp.vec3), wp.zeros(100, dtype=int)
    made = wp.HashGrid(16, 16, 16)
    made.build(x, 0.8)
    wp.launch(neighbours, 100, [made.id, x, counts])
    return np.array_equal(counts.numpy(), (np.linalg.norm(POINTS[:, None] - POINTS[None], axis=-1) < 0.8).sum(1))


def mesh():
    corners, faces = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32), np.array([0, 1, 2, 0, 1, 3, 0, 2, 3, 1, 2, 3])
    distances = []
    for device in ("cpu", "cuda:0"):
        made = wp.Mesh(wp.array(corners, dtype=wp.vec3, device=device), wp.array(faces, dtype=int, device=device))
        out = wp.zeros(100, dtype=float, device=device)
        wp.launch(nearest, 100, [made.id, wp.array(POINTS * 0.3, dtype=wp.vec3, device=device), out], device=device)
        distances.append(out.numpy())
    return np.allclose(*distances, atol=1e-4)


def sort_and_scan():
    keys = RANDOM.integers(0, 1000, 500).astype(np.int32)
    pairs, places, sums = wp.array(np.tile(keys, 2), dtype=int), wp.array(np.tile(np.arange(500), 2), dtype=int), wp.zeros(500, dtype=int)
    wp.utils.radix_sort_pairs(pairs, places, 500)
    wp.utils.array_scan(wp.array(keys, dtype=int), sums, inclusive=True)
    return (np.array_equal(pairs.numpy()[:500], np.sort(keys)) and np.array_equal(places.numpy()[:500], np.argsort(keys, kind="stable"))
            and np.array_equal(sums.numpy(), np.cumsum(keys)))


def sparse():
    matrix = random_matrix(40, 40, 0.1, random_state=0, format="coo", dtype=np.float32)
    a = warp.sparse.bsr_from_triplets(40, 40, *[wp.array(part.astype(np.int32), dtype=int) for part in (matrix.row, matrix.col)],
                                      wp.array(matrix.data, dtype=float))
    x = POINTS[:40, 0].copy()
    y = warp.sparse.bsr_mv(warp.sparse.bsr_mm(a, a), wp.array(x, dtype=float))
    return np.allclose(y.numpy(), matrix @ (matrix @ x), atol=1e-4)


def tile_sum():
    a, sums = RANDOM.standard_normal((8, 256)).astype(np.float32), wp.zeros(8, dtype=float)
    wp.launch_tiled(rows, dim=[8], inputs=[wp.array(a, dtype=float), sums], block_dim=64)
    return np.allclose(sums.numpy(), a.sum(1), atol=1e-3)


def loop_in_a_graph():
    n, rounds = wp.array([5], dtype=int), wp.zeros(1, dtype=int)
    wp.load_module()
    with wp.ScopedCapture() as capture:
        wp.capture_while(n, lambda: wp.launch(count_down, 1, [n, rounds]))
    wp.capture_launch(capture.graph)
    return n.numpy()[0] == 0 and rounds.numpy()[0] == 5


wp.config.quiet = True
wp.init()
wp.set_device("cuda:0")
check("vectors and quaternions", lambda: on_both(move, vectors))
check("functions, random numbers, atomics",
      lambda: on_both(functions, lambda device: [wp.array(POINTS, dtype=wp.vec3, device=device), wp.zeros((100, 3), dtype=float, device=device),
                                                 wp.zeros(2, dtype=int, device=device)]))
check("gradient by a tape", gradient)
check("hash grid", grid)
check("mesh queries", mesh)
check("sort and scan", sort_and_scan)
check("sparse product", sparse)
check("tile sum", tile_sum)
check("loop in a graph", loop_in_a_graph)
