// SPDX-License-Identifier: Apache-2.0
// The terms that the page uses, in the order in which a newcomer needs them.

export const GLOSSARY = [
  [
    'memory manager',
    "what decides where each page of the program's GPU memory is, and when it moves: the program's own copies, or demand paging in its variants. " +
      'NAME+PART=VALUE is a manager with a part changed, NAME@1 a manager on GPU 1 of a program that has several.',
  ],
  [
    'copy',
    "the program's own cudaMemcpy calls, as they are written in it: all data is moved before a kernel runs. The other managers are compared with it.",
  ],
  ['ideal', 'everything is in GPU memory at no cost: what the kernels alone take. No manager can be faster on the same machine.'],
  [
    'far-fault',
    'a kernel asks for a page that is not in GPU memory. The page has to be brought over the link, which takes tens of microseconds; the warps that asked wait.',
  ],
  ['demand paging', "pages start in the CPU's memory and come when a kernel first touches them, by far-faults."],
  [
    'replay',
    'the warp that faulted waits, and tries its access again once the page is there; other warps of its SM go on meanwhile. Without replays a far-fault stops the whole SM.',
  ],
  ['batch', "far-faults that the driver takes from the GPU's fault buffer and serves together, as NVIDIA's driver does."],
  [
    'prefetch',
    'pages that come together with a far-fault because they will probably be wanted soon (their neighbours, the rest of a block of 2 MiB).',
  ],
  ['eviction', 'a page has to leave GPU memory to make room for another one; if it was written to, it is copied back first.'],
  ['refault', 'a far-fault on a page that had been evicted before: it travels a second time. Many of them are called thrashing.'],
  [
    'link',
    "the connection of CPU and GPU (PCI Express, NVLink). It carries data in both directions at once. Link used: the busier direction's share of the time.",
  ],
  ['to GPU, to CPU', "data that moves from the CPU's memory to the GPU's (host to device, h2d), and back (d2h)."],
  [
    'TLB',
    "the translation lookaside buffer: the GPU's small memory of which page is where. A translation that it does not hold (TLB miss) costs a walk through the page table.",
  ],
  ['SM, warp', 'a streaming multiprocessor is a core of the GPU; a warp is 32 threads that run on it in step.'],
  ['unit', 'the piece of memory that a far-fault moves at least: from 4 KiB to 2 MiB, by manager.'],
];
