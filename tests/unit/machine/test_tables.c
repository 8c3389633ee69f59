/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the model against naive ones: the event heap and its wheel, slots, the LRU table, the cache (few ways
 * and many), division by multiplication. */
#include "rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t state_of_random = 1;
static uint64_t random_below(uint64_t n) {
  state_of_random ^= state_of_random << 13;
  state_of_random ^= state_of_random >> 7;
  state_of_random ^= state_of_random << 17;
  return (state_of_random >> 8) % n;
}

/* ---- events ---- */

/* An entry that sinks makes room for others, and says where these stand. */
static void test_events_rise(void **state) {
  event_heap heap = {.next_time = UINT64_MAX, .horizon = UINT64_MAX};
  for (uint32_t i = 0; i < 85; i++) event_push(&heap, i, EVENT_WARP, i); /* sorted: each stands in its place */
  event_pop(&heap);
  event_push(&heap, 1000, EVENT_WARP, 85);
  assert_int_equal(heap.risen[0], 1);
  assert_int_equal(event_index(heap.items[0]), 1); /* 1 came from there, 5 to there and 21 to where that was */
  assert_int_equal(event_index(heap.items[1]), 5);
  assert_int_equal(heap.risen[1], 5);
  assert_int_equal(event_index(heap.items[5]), 21);
  event_pop(&heap);
  event_push(&heap, 3, EVENT_WARP, 86); /* sinks by one level: 2 comes first, and leaves it its place */
  assert_int_equal(event_index(heap.items[0]), 2);
  assert_int_equal(heap.risen[0], 2);
  assert_int_equal(heap.risen[1], 0);
  event_heap_free(&heap);
}

/* Some time from now: near, or with a wheel as far as any of its digits. */
static ps random_wait(const event_heap *heap) {
  return random_below(heap->wheel && random_below(3) == 0 ? UINT64_C(1) << random_below(40) : 20);
}

static void check_events(event_heap *heap, uint64_t most, int steps) {
  enum { PUSHES = 20000 };
  struct {
    ps time;
    bool in, first;
  } *naive = ff_alloc(PUSHES * sizeof *naive);
  uint32_t count = 0, inside = 0;
  for (int step = 0; step < steps; step++) {
    bool push = inside == 0 || (inside < most && count < PUSHES && random_below(100) < 52);
    if (push && count == PUSHES) break;
    if (push) {
      ps time = heap->now + random_wait(heap);
      /* they are numbered anew now, or soon */
      if (heap->order < 1000 && random_below(100) == 0) heap->order = UINT32_MAX - (uint32_t)random_below(3);
      naive[count].time = time;
      naive[count].in = true;
      naive[count].first = random_below(50) == 0;
      for (uint32_t i = 0; i < count; i++) /* one at most is the first of its time */
        if (naive[i].in && naive[i].time == time && naive[i].first) naive[count].first = false;
      (naive[count].first ? event_push_first : event_push)(heap, time, EVENT_WARP, count);
      count++;
      inside++;
    } else {
      uint32_t first = UINT32_MAX;
      for (uint32_t i = 0; i < count; i++)
        if (naive[i].in && (first == UINT32_MAX || naive[i].time < naive[first].time ||
                            (naive[i].time == naive[first].time && naive[i].first)))
          first = i;
      assert_int_equal(heap->next_time, naive[first].time);
      assert_int_equal(event_next(heap), naive[first].time);
      event e = event_pop(heap);
      assert_int_equal(event_index(e), first); /* the earliest; of equal ones, the first that came */
      assert_int_equal(event_kind_of(e), EVENT_WARP);
      naive[first].in = false;
      inside--;
    }
    assert_int_equal(event_any(heap), inside > 0);
  }
  free(naive);
}

/* What the host puts late comes before what is in the wheel's run already. */
static void check_back(event_heap *heap) {
  ps now = heap->now;
  for (uint32_t i = 0; i < 100; i++) event_push(heap, now + 100000 + i * 10, EVENT_WARP, i);
  assert_int_equal(event_index(event_pop(heap)), 0);
  event_back(heap, now + 50);
  event_push(heap, now + 50, EVENT_WARP, 1000);
  assert_int_equal(heap->next_time, now + 50);
  assert_int_equal(event_index(event_pop(heap)), 1000);
  for (uint32_t i = 1; i < 100; i++) assert_int_equal(event_index(event_pop(heap)), i);
}

static event_heap heap_of(uint64_t sms) {
  event_heap heap = {.next_time = UINT64_MAX, .horizon = UINT64_MAX};
  if (sms) event_heap_widen(&heap, sms);
  if (sms) heap.wheel->few = 64; /* the tests' queues are short */
  return heap;
}

static void test_event_wheel(void **state) {
  static const uint32_t sms[] = {1, 15, 132, 30000};
  for (int i = 0; i < 8; i++) {
    event_heap heap = heap_of(sms[i % 4]);
    check_events(&heap, i < 4 ? 500 : 80, 8000);
    while (event_any(&heap)) event_pop(&heap);
    check_back(&heap);
    event_heap_free(&heap);
  }
}

/* Most events are in the wheel, and few are put there more than once: a queue's length costs nothing. */
static void test_wheel_holds(void **state) {
  event_heap heap = heap_of(132);
  for (uint32_t i = 0; i < 8000; i++) event_push(&heap, 1000 + random_below(50000), EVENT_WARP, i);
  assert_in_range(heap.wheel->inside, 7900, 8000);
  for (uint32_t i = 0; i < 4000; i++) event_pop(&heap);
  assert_in_range(heap.count + heap.wheel->run.count - heap.wheel->at, 1, 300);
  while (event_any(&heap)) event_pop(&heap);
  assert_int_equal(heap.wheel->inside, 0);
  event_heap_free(&heap);
}

/* What was reserved, and what comes before all others, has its turn also where a heap has just become long enough for
 * the wheel. */
static void test_wheel_ties(void **state) {
  enum { EVENTS = 64, RESERVED = 100, FIRST };
  event_heap heap = heap_of(132);
  uint32_t order = event_reserve(&heap);
  for (uint32_t i = 0; i < EVENTS; i++) event_push(&heap, 1000000, EVENT_WARP, i);
  event_push_reserved(&heap, 1000000, order, EVENT_WARP, RESERVED);
  event_push_first(&heap, 1000000, EVENT_WARP, FIRST);
  assert_int_equal(event_index(event_pop(&heap)), FIRST);
  assert_int_equal(event_index(event_pop(&heap)), RESERVED);
  for (uint32_t i = 0; i < EVENTS; i++) assert_int_equal(event_index(event_pop(&heap)), i);
  event_heap_free(&heap);
}

/* Numbered anew, what is in the run still comes before what is put at its time afterwards. */
static void test_wheel_renumbered(void **state) {
  enum { EVENTS = 200, LATER = 1000 };
  event_heap heap = heap_of(132);
  heap.order = UINT32_MAX - EVENTS;
  for (uint32_t i = 0; i < EVENTS; i++) event_push(&heap, 1000000 + i * 100, EVENT_WARP, i);
  uint32_t next = 0;
  while (heap.wheel->run.count - heap.wheel->at < 2) assert_int_equal(event_index(event_pop(&heap)), next++);
  event second = heap.wheel->run.items[heap.wheel->at + 1];
  event_push(&heap, event_time(second), EVENT_WARP, LATER);
  assert_true(heap.order < EVENTS + 2);
  for (; next <= event_index(second); next++) assert_int_equal(event_index(event_pop(&heap)), next);
  assert_int_equal(event_index(event_pop(&heap)), LATER);
  for (; next < EVENTS; next++) assert_int_equal(event_index(event_pop(&heap)), next);
  assert_false(event_any(&heap));
  event_heap_free(&heap);
}

static void test_event_heap(void **state) {
  event_heap heap = heap_of(0);
  check_events(&heap, 500, 30000);
  while (event_any(&heap)) event_pop(&heap);
  assert_int_equal(heap.next_time, UINT64_MAX);
  assert_int_equal(event_next(&heap), UINT64_MAX);
  event_back(&heap, 0);
  heap.horizon = 500; /* nothing is done past it: it seems to be the next event, and is none */
  event_push(&heap, 1000, EVENT_WARP, 0);
  event_push(&heap, 400, EVENT_WARP, 1);
  assert_int_equal(heap.next_time, 400);
  event_pop(&heap);
  assert_int_equal(heap.next_time, 500);
  assert_int_equal(event_next(&heap), 1000);
  event_pop(&heap);
  assert_int_equal(heap.next_time, 500);
  assert_int_equal(event_next(&heap), UINT64_MAX);
  assert_false(event_any(&heap));
  /* what is put first comes before all of its time, and what is another slice's does not count as its own */
  heap.slice = true;
  heap.own_horizon = 3000;
  heap.horizon = 1500;
  event_push(&heap, 2000, EVENT_WARP, 2);
  event_push_first(&heap, 2000, EVENT_WARP, 3);
  assert_int_equal(heap.next_time, 1500);
  assert_int_equal(event_own_next(&heap), 2000);
  assert_int_equal(event_index(event_pop(&heap)), 3);
  assert_int_equal(event_own_next(&heap), 2000);
  assert_int_equal(event_index(event_pop(&heap)), 2);
  assert_int_equal(event_own_next(&heap), 3000);
  event_heap_free(&heap);
}

/* ---- slots ---- */

/* The earliest of the places. */
static uint64_t earliest_of(const ps *naive, uint64_t capacity) {
  uint64_t earliest = 0;
  for (uint64_t i = 1; i < capacity; i++)
    if (naive[i] < naive[earliest]) earliest = i;
  return earliest;
}

/* One of the open places, a random one, is held until this time. */
static void answer(slots *s, ps *naive, uint64_t capacity, ps until) {
  uint64_t place = random_below(capacity);
  while (naive[place] != SLOTS_OPEN) place = (place + 1) % capacity;
  naive[place] = until;
  slots_answer(s, until);
}

/* open: of eight places that are taken, how many have no known time at first. */
static void check_slots(uint64_t capacity, uint32_t open) {
  slots s;
  memset(&s, 0, sizeof s);
  arena a = {0};
  slots_init(&s, &a, capacity);
  ps naive[128] = {0}, now = 0;
  uint64_t opened = 0;
  for (int step = 0; step < 3000; step++) {
    now += random_below(5);
    if (opened == capacity) assert_int_equal(slots_wait(&s, now), SLOTS_OPEN);
    while (opened == capacity || (opened && random_below(8) < open)) {
      answer(&s, naive, capacity, now + random_below(100));
      opened--;
      assert_int_equal(slots_open(&s), opened > 0);
    }
    uint64_t earliest = earliest_of(naive, capacity);
    ps at = slots_wait(&s, now);
    assert_int_equal(at, naive[earliest] > now ? naive[earliest] : now);
    bool opens = random_below(8) < open;
    naive[earliest] = opens ? SLOTS_OPEN : at + random_below(100);
    opened += opens;
    slots_hold(&s, naive[earliest]);
    assert_int_equal(slots_open(&s), opened > 0);
  }
  arena_free(&a);
}

static void test_slots(void **state) {
  for (uint64_t capacity = 1; capacity < 100; capacity += 3)
    for (uint32_t open = 0; open < 8; open += 3) check_slots(capacity, open);
}

/* Who takes a place while all are open has not waited for one: the second of these ends the process. */
static void test_no_slot(void **state) {
  fflush(NULL);
  pid_t child = fork();
  if (!child) {
    slots s;
    arena a = {0};
    memset(&s, 0, sizeof s);
    signal(SIGABRT, SIG_DFL);
    if (!freopen("/dev/null", "w", stderr)) _exit(1);
    slots_init(&s, &a, 1);
    slots_hold(&s, SLOTS_OPEN);
    if (slots_wait(&s, 0) != SLOTS_OPEN) _exit(2);
    slots_hold(&s, SLOTS_OPEN);
    _exit(0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* ---- LRU table ---- */

static void test_lru(void **state) {
  for (uint32_t capacity = 1; capacity <= 20; capacity += 4) {
    lru t;
    memset(&t, 0, sizeof t);
    arena a = {0};
    lru_init(&t, &a, capacity);
    uint64_t keys[32];
    uint32_t count = 0; /* keys[0] is the youngest */
    for (int step = 0; step < 20000; step++) {
      uint64_t key = random_below(30);
      uint32_t at = 0;
      while (at < count && keys[at] != key) at++;
      if (random_below(10) == 0) {
        lru_remove(&t, key);
        if (at < count) memmove(&keys[at], &keys[at + 1], (--count - at) * sizeof *keys);
        continue;
      }
      lru_entry *entry = lru_find(&t, key);
      assert_int_equal(entry != NULL, at < count);
      if (!entry) {
        lru_insert(&t, key, key * 7);
        if (count == capacity) count--;
        at = count++;
      } else {
        assert_int_equal(entry->ready, key * 7);
      }
      memmove(&keys[1], &keys[0], at * sizeof *keys);
      keys[0] = key;
    }
    arena_free(&a);
  }
}

/* The census of several tables names each that has a key, and when they are empty it names none. */
static void test_lru_census(void **state) {
  enum { TABLES = 3, KEYS = 100 };
  arena a = {0};
  lru tables[TABLES] = {0};
  lru_census census;
  lru_census_init(&census, &a, TABLES * 8);
  for (int i = 0; i < TABLES; i++) {
    lru_init(&tables[i], &a, 8);
    tables[i].census = &census;
    tables[i].bit = UINT32_C(1) << i;
  }
  uint64_t lacked = 0;
  for (int step = 0; step < 20000; step++) {
    lru *t = &tables[random_below(TABLES)];
    uint64_t key = random_below(KEYS) << 40 | random_below(2);
    switch (random_below(10)) {
    case 0: lru_remove(t, key); break;
    case 1: lru_remove_range(t, key, key + (UINT64_C(2) << 40)); break;
    default:
      if (lru_find(t, key)) break;
      if (random_below(2)) {
        lru_insert(t, key, 0);
        break;
      }
      uint64_t gone;
      if (lru_insert_uncounted(t, key, 0, &gone)) lru_count(t, gone, false);
      lru_count(t, key, true);
    }
    for (uint64_t k = 0; k < KEYS; k++) {
      uint32_t holders = lru_census_holders(&census, k << 40);
      for (int i = 0; i < TABLES; i++) {
        assert_true(!lru_find(&tables[i], k << 40) || holders >> i & 1);
        lacked += !(holders >> i & 1);
      }
    }
  }
  assert_true(lacked > 20000 * TABLES * (KEYS - 8) / 2); /* it spares most looks */
  for (int i = 0; i < TABLES; i++) lru_remove_range(&tables[i], 0, UINT64_MAX);
  for (uint64_t k = 0; k < KEYS; k++) assert_int_equal(lru_census_holders(&census, k << 40), 0);
  arena_free(&a);
}

/* ---- cache ---- */

static uint32_t dirty_lines(const cache *c, uint32_t set) {
  uint32_t found = 0;
  for (uint32_t w = 0; w < c->ways; w++) found += c->lines[(uint64_t)set * c->ways + w].dirty != 0;
  return found;
}

/* With a limit of dirty lines the count of each set is that of its lines, whichever way lines come and go. */
static void random_dirt(uint64_t sets, uint64_t ways) {
  cache c;
  memset(&c, 0, sizeof c);
  arena a = {0};
  cache_init(&c, &a, sets * ways * TRACE_LINE_BYTES, ways);
  cache_limit_dirty(&c, &a, 0.5);
  assert_int_equal(c.dirty_ways, ways > 1 ? ways / 2 : 1);
  uint32_t written_back = 0;
  for (int step = 0; step < 20000; step++) {
    uint64_t tag = 1 + random_below(sets * ways * 3 / 2 + 1), old;
    uint32_t set = (uint32_t)(tag % sets);
    cache_taken taken;
    cache_line *line;
    if (step % 2) {
      cache_take(&c, set, tag, &taken);
      line = taken.line;
      assert_int_equal(line->tag, tag);
    } else if (!(line = cache_find(&c, set, tag))) {
      cache_retag(&c, set, line = cache_victim(&c, set, &old), tag);
    }
    uint8_t sectors = (uint8_t)random_below(16), before = line->dirty, back = cache_write(&c, set, line, sectors, &old);
    assert_int_equal(line->dirty, before | sectors);
    if (back) {
      assert_true(old != tag && old % sets == set && cache_find(&c, set, old) && !cache_find(&c, set, old)->dirty);
      written_back++;
    }
    if (random_below(20) == 0) cache_retag(&c, set, line, 0);
    if (step % 5000 == 1000) cache_drop(&c, random_below(sets * ways), random_below(sets * ways));
    if (step == 15000) cache_clear(&c);
    assert_int_equal(c.dirt[set].lines, dirty_lines(&c, set));
    assert_true(c.dirt[set].lines <= c.dirty_ways);
  }
  for (uint32_t set = 0; set < sets; set++) assert_int_equal(c.dirt[set].lines, dirty_lines(&c, set));
  assert_true(written_back > 500 || ways == 1);
  arena_free(&a);
}

static void test_dirty_lines(void **state) {
  random_dirt(1, 1);
  random_dirt(7, 4);
  random_dirt(5, 20);
  random_dirt(3, 48);
  random_dirt(3, 70);
}

static void random_cache(uint64_t most_sets, uint64_t ways) {
  uint64_t sets = most_sets; /* in use */
  cache c;
  memset(&c, 0, sizeof c);
  arena a = {0};
  cache_init(&c, &a, sets * ways * TRACE_LINE_BYTES, ways);
  assert_int_equal(c.sets.by, sets);
  uint64_t *order = ff_alloc(sets * ways * sizeof *order); /* per set, the youngest first; 0: empty */
  for (int step = 0; step < 30000; step++) {
    uint64_t tag = 1 + random_below(sets * ways * 3 / 2 + 1);
    uint32_t set = (uint32_t)(tag % sets);
    uint64_t *tags = &order[set * ways], at = 0;
    while (at < ways && tags[at] != tag) at++;
    bool absent = at == ways;
    if (absent)
      for (at = 0; at + 1 < ways && tags[at]; at++) {} /* an empty one, else the last */
    cache_line *line;
    if (random_below(2)) {
      cache_taken taken;
      cache_take(&c, set, tag, &taken);
      line = taken.line;
      assert_int_equal(taken.fresh, absent);
      if (absent) {
        assert_int_equal(taken.old_tag, tags[at]);
        if (tags[at]) assert_int_equal(taken.old_dirty, (uint8_t)tags[at]);
        assert_true(line->tag == tag && !line->valid && !line->dirty && !line->filled);
        line->dirty = (uint8_t)tag;
        line->valid = 15;
        line->filled = 7;
      }
    } else {
      line = cache_find(&c, set, tag);
      assert_int_equal(line == NULL, absent);
      if (!line) {
        uint64_t old;
        line = cache_victim(&c, set, &old);
        assert_int_equal(old, tags[at]);
        cache_retag(&c, set, line, tag);
        line->dirty = (uint8_t)tag;
      }
    }
    assert_int_equal(line->dirty, (uint8_t)tag);
    if (random_below(20) == 0) { /* drop it again */
      cache_retag(&c, set, line, 0);
      memmove(&tags[at], &tags[at + 1], (ways - 1 - at) * sizeof *tags);
      tags[ways - 1] = 0;
    } else {
      memmove(&tags[1], &tags[0], at * sizeof *tags);
      tags[0] = tag;
    }
    if (step == 15000) {
      cache_clear(&c);
      memset(order, 0, most_sets * ways * sizeof *order);
    }
    if (step % 5000 == 1000) { /* all of a range of tags go, those behind them stay */
      uint64_t first = random_below(sets * ways), count = random_below(sets * ways);
      cache_drop(&c, first, count);
      for (uint64_t i = 0; i < sets; i++) {
        uint64_t kept = 0;
        for (uint64_t w = 0; w < ways; w++) {
          uint64_t t = order[i * ways + w];
          if (t && t - first >= count) order[i * ways + kept++] = t;
        }
        memset(&order[i * ways + kept], 0, (ways - kept) * sizeof *order);
      }
    }
    /* the bytes of a line more than a whole number of sets change nothing; no sets are one */
    if (step % 5000 == 2500) {
      sets = random_below(most_sets + 2);
      cache_resize(&c, (sets * ways + random_below(ways)) * TRACE_LINE_BYTES);
      sets = sets > most_sets ? most_sets : sets < 1 ? 1 : sets;
      memset(order, 0, most_sets * ways * sizeof *order);
    }
  }
  free(order);
  arena_free(&a);
}

static void test_cache(void **state) {
  random_cache(1, 1);
  random_cache(7, 4);
  random_cache(16, 8);
  random_cache(5, 20);
  random_cache(9, 9);
  random_cache(3, 16);
  random_cache(3, 17);
  random_cache(1, 32);
  random_cache(3, 33);
  random_cache(2, 48);
  random_cache(2, 64);
  random_cache(2, 65);
  random_cache(4, 100);
}

/* Lines with priorities against a list of each set's lines, the youngest first. */
static void random_ranks(uint64_t sets, uint64_t ways) {
  typedef struct own {
    uint64_t tag;
    uint32_t priority;
  } own;
  cache c;
  memset(&c, 0, sizeof c);
  arena a = {0};
  cache_init(&c, &a, sets * ways * TRACE_LINE_BYTES, ways);
  own *lists = ff_alloc(sets * ways * sizeof *lists); /* tag 0: behind the last */
  for (int step = 0; step < 20000; step++) {
    uint64_t tag = 1 + random_below(sets * ways * 3 / 2 + 1);
    uint32_t set = (uint32_t)(tag % sets), priority = (uint32_t)random_below(4);
    uint32_t lasts = (uint32_t)random_below(ways + 1), count = 0, have = 0, at, victim = UINT32_MAX;
    own *list = &lists[set * ways], line = {tag, TRACE_L2_PLAIN};
    cache_taken taken;
    cache_take_ranked(&c, set, tag, (trace_l2_priority)priority, lasts, &taken);
    for (at = 0; at < ways && list[at].tag && list[at].tag != tag; at++) {}
    bool found = at < ways && list[at].tag;
    for (; count < ways && list[count].tag; count++) have += list[count].priority == TRACE_L2_LAST;
    assert_int_equal(taken.fresh, !found);
    assert_int_equal(taken.line->tag, tag);
    if (!found && count == ways) { /* one has to go */
      const uint32_t order[] = {TRACE_L2_FIRST, TRACE_L2_PLAIN, TRACE_L2_LAST};
      bool in_place = priority == TRACE_L2_LAST && have >= lasts && have;
      for (int o = in_place ? 2 : 0; o < 3 && victim == UINT32_MAX; o++)
        for (uint32_t i = 0; i < ways; i++)
          if (list[i].priority == order[o]) victim = i;
      assert_int_equal(taken.old_tag, list[victim].tag);
      at = victim;
    } else if (!found) {
      assert_int_equal(taken.old_tag, 0);
      at = count;
    }
    if (found) line = list[at];
    memmove(&list[1], &list[0], at * sizeof *list);
    list[0] = line;
    if (priority == line.priority) {
      /* it stays */
    } else if (priority == TRACE_L2_LAST && lasts) {
      uint32_t oldest = 0, others = 0;
      for (uint32_t i = 0; i < ways; i++)
        if (list[i].tag && list[i].priority == TRACE_L2_LAST) oldest = i, others++;
      if (others >= lasts) list[oldest].priority = TRACE_L2_PLAIN;
      list[0].priority = TRACE_L2_LAST;
    } else if (priority == TRACE_L2_FIRST) {
      list[0].priority = TRACE_L2_FIRST;
    } else if (priority == TRACE_L2_NORMAL || (priority == TRACE_L2_LAST && !lasts)) {
      list[0].priority = TRACE_L2_PLAIN;
    }
    assert_int_equal(taken.line->priority, list[0].priority);
    if (step % 4000 == 3999) {
      cache_forget_last(&c);
      for (uint64_t i = 0; i < sets * ways; i++)
        if (lists[i].priority == TRACE_L2_LAST) lists[i].priority = TRACE_L2_PLAIN;
    }
  }
  free(lists);
  arena_free(&a);
}

static void test_ranks(void **state) {
  random_ranks(1, 1);
  random_ranks(7, 4);
  random_ranks(5, 16);
  random_ranks(3, 17);
  random_ranks(2, 64);
  random_ranks(2, 70);
}

static void test_division(void **state) {
  uint64_t by[] = {1, 2, 3, 5, 7, 12, 64, 80, 96, 511, 4096, 4095, 123457, UINT64_C(1) << 33, (UINT64_C(1) << 33) + 1};
  for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
    divider d = divider_make(by[i]);
    for (int n = 0; n < 20000; n++) {
      uint64_t x = random_below(UINT64_C(1) << 55) >> random_below(50);
      if (n < 100) x = by[i] * random_below(1 << 20) - (n & 1);
      if (n < 4) x = d.limit - 2 + (uint64_t)n;
      assert_int_equal(divide(x, &d), x / by[i]);
      assert_int_equal(modulo(x, &d), x % by[i]);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_event_heap),
      cmocka_unit_test(test_event_wheel),
      cmocka_unit_test(test_wheel_holds),
      cmocka_unit_test(test_wheel_ties),
      cmocka_unit_test(test_wheel_renumbered),
      cmocka_unit_test(test_events_rise),
      cmocka_unit_test(test_slots),
      cmocka_unit_test(test_no_slot),
      cmocka_unit_test(test_lru),
      cmocka_unit_test(test_lru_census),
      cmocka_unit_test(test_cache),
      cmocka_unit_test(test_ranks),
      cmocka_unit_test(test_division),
      cmocka_unit_test(test_dirty_lines),
  };
  return cmocka_run_group_tests_name("tables", tests, NULL, NULL);
}
