/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic on affine values. Bounds are computed in 128 bits; what does not fit 64 is no longer known. */
#include "ptx/ranges/ranges_value.h"

#include <string.h>

typedef __int128 wide;

static bool fits(wide number) { return number >= INT64_MIN && number <= INT64_MAX; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t clamp(wide number) {
  return number < INT64_MIN ? INT64_MIN : number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

static uint8_t zeros_of(int64_t number) { return number ? (uint8_t)__builtin_ctzll((uint64_t)number) : 64; }

affine affine_constant(int64_t number) {
  return (affine){.lo = number, .hi = number, .min = number, .max = number, .zeros = zeros_of(number)};
}

affine affine_interval(int64_t min, int64_t max) {
  if (min == max) return affine_constant(min);
  return (affine){.lo = min, .hi = max, .min = min, .max = max};
}

affine affine_top(uint32_t line, affine_cause cause) {
  return (affine){.top = true, .line = line, .cause = (uint8_t)cause};
}

bool affine_is_constant(const affine *v) { return !v->top && v->min == v->max; }

/* ---- bounds ---- */

/* The least and the most of c . (x, y, z) over the grid. */
static void span(const affine_grid *grid, const int64_t c[3], wide *least, wide *most) {
  *least = *most = 0;
  for (int d = 0; d < 3; d++) {
    wide first = (wide)c[d] * grid->first[d], last = (wide)c[d] * grid->last[d];
    *least += first < last ? first : last;
    *most += first < last ? last : first;
  }
}

bool affine_is_sound(const affine_grid *grid, const affine *v) {
  wide least, most;
  if (v->top) return true;
  span(grid, v->c, &least, &most);
  return v->lo <= v->hi && v->min <= v->max && v->min >= clamp(v->lo + least) && v->max <= clamp(v->hi + most);
}

bool affine_tighten(const affine_grid *grid, affine *v) {
  if (v->top) return true;
  wide least, most;
  for (int d = 0; d < 3; d++) {
    wide at = (wide)v->c[d] * grid->first[d];
    if (grid->first[d] != grid->last[d] || !fits(v->lo + at) || !fits(v->hi + at)) continue;
    v->c[d] = 0;
    v->lo = (int64_t)(v->lo + at);
    v->hi = (int64_t)(v->hi + at);
  }
  span(grid, v->c, &least, &most);
  v->min = larger(v->min, clamp(v->lo + least));
  v->max = smaller(v->max, clamp(v->hi + most));
  v->lo = larger(v->lo, clamp(v->min - most));
  v->hi = smaller(v->hi, clamp(v->max - least));
  if (v->lo > v->hi || v->min > v->max) return false;
  if (v->min == v->max) {
    affine old = *v;
    memset(v->c, 0, sizeof v->c);
    v->lo = v->hi = old.min;
    v->zeros = zeros_of(old.min);
  }
  return true;
}

/* What arithmetic made cannot be empty; if bounds contradict each other by a rounding, nothing is known. */
static affine tight(const affine_grid *grid, affine v) {
  if (affine_tighten(grid, &v)) return v;
  affine unknown = affine_top(v.line, AFFINE_COMPUTED);
  unknown.points = v.points;
  return unknown;
}

void affine_reform(const affine_grid *grid, const affine *v, const int64_t c[3], int64_t *lo, int64_t *hi) {
  int64_t difference[3];
  wide least, most, least_c, most_c;
  bool same = true;
  for (int d = 0; d < 3; d++) {
    wide exact = (wide)v->c[d] - c[d];
    difference[d] = clamp(exact);
    same = same && fits(exact);
  }
  span(grid, difference, &least, &most);
  span(grid, c, &least_c, &most_c);
  wide low = same ? v->lo + least : INT64_MIN, high = same ? v->hi + most : INT64_MAX;
  if (v->min - most_c > low) low = v->min - most_c;
  if (v->max - least_c < high) high = v->max - least_c;
  *lo = clamp(low);
  *hi = clamp(high);
}

/* ---- types ---- */

static wide type_min(affine_type type) { return type.is_signed ? -((wide)1 << (type.bits - 1)) : 0; }
static wide type_max(affine_type type) { return ((wide)1 << (type.bits - type.is_signed)) - 1; }

affine affine_whole_type(affine_type type) {
  if (!fits(type_max(type))) return affine_top(0, AFFINE_COMPUTED);
  return affine_interval((int64_t)type_min(type), (int64_t)type_max(type));
}

static affine forget(const affine *v, affine_type type) {
  affine whole = affine_whole_type(type);
  whole.points = v->points;
  whole.line = v->line;
  whole.cause = v->cause;
  whole.zeros = v->zeros < type.bits ? v->zeros : (uint8_t)(type.bits - 1);
  whole.root = v->root;
  whole.root_offset = v->root_offset;
  return whole;
}

affine affine_as(const affine_grid *grid, const affine *v, affine_type type) {
  (void)grid;
  if (v->top) return forget(v, type);
  wide low = type_min(type), high = type_max(type);
  if (v->min >= low && v->max <= high) return *v;
  wide size = (wide)1 << type.bits, distance = v->min - low;
  wide turns = distance >= 0 ? distance / size : -((-distance + size - 1) / size);
  wide shift = -turns * size;
  if (v->max + shift > high || !fits(v->lo + shift) || !fits(v->hi + shift) || !fits(v->min + shift) ||
      !fits(v->max + shift))
    return forget(v, type);
  affine moved = *v;
  moved.lo = (int64_t)(v->lo + shift);
  moved.hi = (int64_t)(v->hi + shift);
  moved.min = (int64_t)(v->min + shift);
  moved.max = (int64_t)(v->max + shift);
  if (moved.zeros > type.bits) moved.zeros = type.bits;
  return moved;
}

/* ---- sums ---- */

/* What is known whether or not the number is. */
static affine unknown_of(const affine *a, const affine *b, uint64_t points) {
  const affine *source = a->line ? a : b;
  affine v = affine_top(source->line, (affine_cause)source->cause);
  v.points = points;
  return v;
}

static affine combine(const affine_grid *grid, const affine *a, const affine *b, int sign, uint64_t points) {
  uint8_t zeros = a->zeros < b->zeros ? a->zeros : b->zeros;
  affine v = unknown_of(a, b, points);
  v.zeros = zeros;
  if (a->top || b->top) return v;
  wide c[3], lo, hi, min, max;
  bool good = true;
  for (int d = 0; d < 3; d++) {
    c[d] = (wide)a->c[d] + sign * (wide)b->c[d];
    good = good && fits(c[d]);
    v.c[d] = clamp(c[d]);
  }
  lo = (wide)a->lo + (sign > 0 ? (wide)b->lo : -(wide)b->hi);
  hi = (wide)a->hi + (sign > 0 ? (wide)b->hi : -(wide)b->lo);
  min = (wide)a->min + (sign > 0 ? (wide)b->min : -(wide)b->max);
  max = (wide)a->max + (sign > 0 ? (wide)b->max : -(wide)b->min);
  if (!good || !fits(lo) || !fits(hi) || !fits(min) || !fits(max)) return v;
  v.top = false;
  v.lo = (int64_t)lo;
  v.hi = (int64_t)hi;
  v.min = (int64_t)min;
  v.max = (int64_t)max;
  return tight(grid, v);
}

/* `from` is a loop's register plus steps, `by` is added so many times `sign`. */
static void carry_base(affine *v, const affine *from, const affine *by, int sign) {
  if (!from->base || by->base || by->top) return;
  wide lo = (wide)from->step_lo + (sign > 0 ? (wide)by->min : -(wide)by->max);
  wide hi = (wide)from->step_hi + (sign > 0 ? (wide)by->max : -(wide)by->min);
  if (!fits(lo) || !fits(hi)) return;
  v->base = from->base;
  v->step_lo = (int64_t)lo;
  v->step_hi = (int64_t)hi;
}

static void carry_root(affine *v, const affine *from, const affine *by, int sign) {
  wide offset = (wide)from->root_offset + sign * (wide)by->min;
  if (!from->root || !affine_is_constant(by) || !fits(offset)) return;
  v->root = from->root;
  v->root_offset = (int64_t)offset;
}

affine affine_add(const affine_grid *grid, const affine *a, const affine *b) {
  affine v = combine(grid, a, b, 1, a->points | b->points);
  if (affine_is_constant(b)) carry_root(&v, a, b, 1);
  else carry_root(&v, b, a, 1);
  if (a->base) carry_base(&v, a, b, 1);
  else carry_base(&v, b, a, 1);
  return v;
}

/* A pointer less a pointer is a distance: it points nowhere. */
affine affine_subtract(const affine_grid *grid, const affine *a, const affine *b) {
  uint64_t points = b->points & ~AFFINE_ANY ? 0 : a->points ? a->points : b->points;
  affine v = combine(grid, a, b, -1, points);
  carry_base(&v, a, b, -1);
  carry_root(&v, a, b, -1);
  if (b->points & AFFINE_OTHER) { /* the number would be that of a made-up address */
    v.top = true;
    v.base = v.root = 0;
    v.points = a->points & AFFINE_ANY;
  }
  return v;
}

affine affine_difference(const affine_grid *grid, const affine *a, const affine *b) {
  wide difference = (wide)a->root_offset - b->root_offset;
  if (a->root && a->root == b->root && fits(difference)) return affine_constant((int64_t)difference);
  return affine_subtract(grid, a, b);
}

/* ---- products ---- */

static affine scaled(const affine_grid *grid, const affine *a, int64_t by) {
  affine v = unknown_of(a, a, by == 1 ? a->points : 0);
  uint32_t zeros = a->zeros + (uint32_t)zeros_of(by);
  v.zeros = zeros > 64 ? 64 : (uint8_t)zeros;
  if (a->top) return v;
  wide lo = (wide)a->lo * by, hi = (wide)a->hi * by, min = (wide)a->min * by, max = (wide)a->max * by;
  for (int d = 0; d < 3; d++) {
    if (!fits((wide)a->c[d] * by)) return v;
    v.c[d] = (int64_t)((wide)a->c[d] * by);
  }
  if (!fits(lo) || !fits(hi) || !fits(min) || !fits(max)) return v;
  v.top = false;
  v.lo = (int64_t)(by < 0 ? hi : lo);
  v.hi = (int64_t)(by < 0 ? lo : hi);
  v.min = (int64_t)(by < 0 ? max : min);
  v.max = (int64_t)(by < 0 ? min : max);
  if (by == 1) {
    v.base = a->base;
    v.step_lo = a->step_lo;
    v.step_hi = a->step_hi;
  }
  return tight(grid, v);
}

affine affine_multiply(const affine_grid *grid, const affine *a, const affine *b) {
  if (affine_is_constant(b)) return scaled(grid, a, b->min);
  if (affine_is_constant(a)) return scaled(grid, b, a->min);
  affine v = unknown_of(a, b, 0);
  uint32_t zeros = (uint32_t)a->zeros + b->zeros;
  v.zeros = zeros > 64 ? 64 : (uint8_t)zeros;
  if (a->top || b->top) return v;
  wide corners[4] = {(wide)a->min * b->min, (wide)a->min * b->max, (wide)a->max * b->min, (wide)a->max * b->max};
  wide low = corners[0], high = corners[0];
  for (int i = 1; i < 4; i++) {
    if (corners[i] < low) low = corners[i];
    if (corners[i] > high) high = corners[i];
  }
  if (!fits(low) || !fits(high)) return v;
  affine product = affine_interval((int64_t)low, (int64_t)high);
  product.line = v.line;
  product.cause = v.cause;
  product.zeros = v.zeros;
  return product;
}

/* ---- quotients ---- */

static int64_t floor_quotient(int64_t number, int64_t by) {
  int64_t q = number / by;
  return number % by < 0 ? q - 1 : q;
}

static bool divides(int64_t by, const int64_t c[3]) { return c[0] % by == 0 && c[1] % by == 0 && c[2] % by == 0; }

affine affine_divide(const affine_grid *grid, const affine *v, int64_t by, bool floor) {
  affine q = unknown_of(v, v, v->points & AFFINE_ANY);
  if (v->top) return q;
  bool down = floor || v->min >= 0;
  q.top = false;
  q.min = down ? floor_quotient(v->min, by) : v->min / by;
  q.max = down ? floor_quotient(v->max, by) : v->max / by;
  q.lo = q.min;
  q.hi = q.max;
  if (down && divides(by, v->c)) {
    for (int d = 0; d < 3; d++) q.c[d] = v->c[d] / by;
    q.lo = floor_quotient(v->lo, by);
    q.hi = floor_quotient(v->hi, by);
  }
  return tight(grid, q);
}

affine affine_remainder(const affine_grid *grid, const affine *v, int64_t by) {
  affine r = unknown_of(v, v, v->points);
  if (v->top) return r;
  if (v->min >= 0 && v->max < by) return *v;
  r.top = false;
  if (v->min < 0) { /* the sign of the dividend, as in C */
    r.min = larger(v->min, -(by - 1));
    r.max = v->max < 0 ? 0 : smaller(v->max, by - 1);
  } else if (divides(by, v->c) && floor_quotient(v->lo, by) == floor_quotient(v->hi, by)) {
    r.min = v->lo - floor_quotient(v->lo, by) * by;
    r.max = v->hi - floor_quotient(v->hi, by) * by;
  } else {
    r.max = by - 1;
  }
  r.lo = r.min;
  r.hi = r.max;
  return tight(grid, r);
}

/* ---- bits ---- */

/* v with its low `bits` bits cleared. */
static affine round_down(const affine_grid *grid, const affine *v, uint32_t bits) {
  int64_t unit = (int64_t)1 << bits, rest = unit - 1;
  affine r = *v;
  r.base = r.root = 0;
  if (r.zeros < bits) r.zeros = (uint8_t)bits;
  if (v->top || v->zeros >= bits) return r;
  bool even = divides(unit, v->c);
  wide lo = even ? (wide)floor_quotient(v->lo, unit) * unit : (wide)v->lo - rest,
       min = (wide)floor_quotient(v->min, unit) * unit;
  r.top = !fits(lo) || !fits(min);
  if (r.top) return r;
  r.lo = (int64_t)lo;
  r.min = (int64_t)min;
  if (even) r.hi = floor_quotient(v->hi, unit) * unit;
  r.max = floor_quotient(v->max, unit) * unit;
  return tight(grid, r);
}

/* v modulo 2^bits: true whatever wraps. */
static affine low_bits(const affine_grid *grid, const affine *v, uint32_t bits) {
  int64_t unit = (int64_t)1 << bits;
  affine whole = affine_interval(0, unit - 1);
  whole.zeros = v->zeros < bits ? v->zeros : 0;
  whole.line = v->line;
  whole.cause = v->cause;
  whole.points = v->points & AFFINE_ANY;
  if (v->zeros >= bits) return affine_constant(0);
  if (v->top) return whole;
  if (v->min >= 0 && v->max < unit) return *v;
  if (!divides(unit, v->c) || floor_quotient(v->lo, unit) != floor_quotient(v->hi, unit)) return whole;
  int64_t below = floor_quotient(v->lo, unit) * unit;
  affine r = affine_interval(v->lo - below, v->hi - below);
  r.line = v->line;
  r.cause = v->cause;
  return tight(grid, r);
}

static affine and_constant(const affine_grid *grid, const affine *v, int64_t mask, affine_type type) {
  uint64_t bits = (uint64_t)mask;
  if (type.bits < 64) { /* sign-extended, so that -16 is -16 for 32 bits as well */
    uint32_t above = 64 - type.bits;
    bits = (uint64_t)((int64_t)(bits << above) >> above);
  }
  if (!bits) return affine_constant(0);
  if (bits == UINT64_MAX) return *v;
  uint64_t low = bits + 1, high = ~bits + 1;
  if (low == UINT64_C(1) << 63) low = 0; /* units that no signed number has are left out */
  if (high == UINT64_C(1) << 63) high = 0;
  if (!(bits & low) && low) return low_bits(grid, v, (uint32_t)__builtin_ctzll(low));
  if (!(~bits & (~bits + 1)) && high) return round_down(grid, v, (uint32_t)__builtin_ctzll(high));
  affine r = unknown_of(v, v, v->points);
  if ((int64_t)bits < 0) return r;
  affine number = affine_as(grid, v, (affine_type){type.bits, false});
  int64_t most = !number.top && number.max < (int64_t)bits ? number.max : (int64_t)bits;
  affine result = affine_interval(0, most);
  result.line = v->line;
  result.cause = v->cause;
  result.points = v->points & AFFINE_ANY;
  return result;
}

affine affine_and(const affine_grid *grid, const affine *a, const affine *b, affine_type type) {
  if (affine_is_constant(b)) return and_constant(grid, a, b->min, type);
  if (affine_is_constant(a)) return and_constant(grid, b, a->min, type);
  affine first = affine_as(grid, a, (affine_type){type.bits, false}),
         second = affine_as(grid, b, (affine_type){type.bits, false});
  affine r = unknown_of(a, b, a->points | b->points);
  if (first.top && second.top) return r;
  affine result = affine_interval(0, first.top ? second.max : second.top ? first.max : smaller(first.max, second.max));
  result.points = r.points;
  result.line = r.line;
  result.cause = r.cause;
  return result;
}

/* a | b with b of few bits is a + [0, b]; with no bit in common, a + b. a ^ b is a - b at the least. */
affine affine_or(const affine_grid *grid, const affine *a, const affine *b, affine_type type, bool exclusive) {
  affine_type plain = {type.bits, false};
  affine first = affine_as(grid, a, plain), second = affine_as(grid, b, plain);
  affine r = unknown_of(a, b, a->points | b->points);
  r.zeros = a->zeros < b->zeros ? a->zeros : b->zeros;
  if (second.top || (!first.top && first.max < second.max)) {
    affine swapped = first;
    first = second;
    second = swapped;
  }
  if (second.top) return r;
  bool apart = first.zeros < 63 && second.max < (int64_t)1 << first.zeros;
  if (!first.top && !apart && second.zeros < 63) apart = first.max < (int64_t)1 << second.zeros;
  if (apart && !first.top) return affine_add(grid, &first, &second);
  if (first.top) return r;
  affine by = affine_interval(exclusive ? -second.max : 0, second.max);
  affine sum = affine_add(grid, &first, &by);
  sum.zeros = r.zeros;
  sum.points = r.points;
  sum.base = sum.root = 0;
  return sum;
}

/* ---- choices ---- */

static void pass_on(affine *v, const affine *a, const affine *b) {
  v->points = a->points | b->points;
  v->zeros = a->zeros < b->zeros ? a->zeros : b->zeros;
  v->line = a->line ? a->line : b->line;
  v->cause = a->line ? a->cause : b->cause;
}

/* Written with a's coefficients: both bounds are the smaller ones (or the larger). */
static affine extreme(const affine_grid *grid, const affine *a, const affine *b, bool maximum) {
  affine v = unknown_of(a, b, a->points | b->points);
  if (a->top || b->top) return v;
  const affine *form = a;
  wide width_a = (wide)a->hi - a->lo, width_b = (wide)b->hi - b->lo;
  bool flat_a = !a->c[0] && !a->c[1] && !a->c[2], flat_b = !b->c[0] && !b->c[1] && !b->c[2];
  if ((flat_a && !flat_b) || (flat_a == flat_b && width_b < width_a)) form = b;
  int64_t lo_a, hi_a, lo_b, hi_b;
  v = *form;
  v.base = v.root = 0;
  affine_reform(grid, a, form->c, &lo_a, &hi_a);
  affine_reform(grid, b, form->c, &lo_b, &hi_b);
  v.lo = maximum ? larger(lo_a, lo_b) : smaller(lo_a, lo_b);
  v.hi = maximum ? larger(hi_a, hi_b) : smaller(hi_a, hi_b);
  v.min = maximum ? larger(a->min, b->min) : smaller(a->min, b->min);
  v.max = maximum ? larger(a->max, b->max) : smaller(a->max, b->max);
  pass_on(&v, a, b);
  return tight(grid, v);
}

affine affine_minimum(const affine_grid *grid, const affine *a, const affine *b) { return extreme(grid, a, b, false); }
affine affine_maximum(const affine_grid *grid, const affine *a, const affine *b) { return extreme(grid, a, b, true); }

typedef struct sided {
  const affine_grid *grid;
  const affine *value;
} sided;

static affine hull(const affine_grid *grid, sided a, sided b, const int64_t c[3]) {
  int64_t lo_a, hi_a, lo_b, hi_b;
  affine_reform(a.grid, a.value, c, &lo_a, &hi_a);
  affine_reform(b.grid, b.value, c, &lo_b, &hi_b);
  affine v = {.c = {c[0], c[1], c[2]},
              .lo = smaller(lo_a, lo_b),
              .hi = larger(hi_a, hi_b),
              .min = smaller(a.value->min, b.value->min),
              .max = larger(a.value->max, b.value->max)};
  pass_on(&v, a.value, b.value);
  return tight(grid, v);
}

affine affine_join_of(const affine_grid *grid, const affine_grid *grid_a, const affine *a, const affine_grid *grid_b,
                      const affine *b) {
  affine v = {.top = true};
  pass_on(&v, a, b);
  if (!a->top && !b->top) {
    sided x = {grid_a, a}, y = {grid_b, b};
    v = hull(grid, x, y, a->c);
    affine other = hull(grid, x, y, b->c);
    if (v.top || (!other.top && (wide)other.hi - other.lo < (wide)v.hi - v.lo)) v = other;
  } else {
    v.line = a->top ? a->line : b->line;
    v.cause = a->top ? a->cause : b->cause;
  }
  bool one_root = a->root == b->root && a->root_offset == b->root_offset;
  v.root = one_root ? a->root : 0;
  v.root_offset = one_root ? a->root_offset : 0;
  v.base = a->base == b->base ? a->base : 0;
  if (v.base) {
    v.step_lo = smaller(a->step_lo, b->step_lo);
    v.step_hi = larger(a->step_hi, b->step_hi);
  }
  return v;
}

affine affine_join(const affine_grid *grid, const affine *a, const affine *b) {
  return affine_join_of(grid, grid, a, grid, b);
}

affine_grid affine_grid_join(const affine_grid *a, const affine_grid *b) {
  affine_grid both;
  for (int d = 0; d < 3; d++) {
    both.first[d] = smaller(a->first[d], b->first[d]);
    both.last[d] = larger(a->last[d], b->last[d]);
  }
  return both;
}

static wide floor_wide(wide number, wide by) { return number >= 0 ? number / by : -((-number + by - 1) / by); }

/* c * x <= max - lo - the rest, and >= min - hi - the rest. */
bool affine_grid_narrow(affine_grid *grid, const affine *v) {
  if (v->top) return true;
  for (int d = 0; d < 3; d++) {
    int64_t others[3] = {v->c[0], v->c[1], v->c[2]};
    wide least, most, c = v->c[d];
    others[d] = 0;
    if (!c) continue;
    span(grid, others, &least, &most);
    wide low = (wide)v->min - v->hi - most, high = (wide)v->max - v->lo - least; /* of c * x */
    if (c < 0) {
      wide swapped = -low;
      low = -high;
      high = swapped;
      c = -c;
    }
    wide first = -floor_wide(-low, c), last = floor_wide(high, c);
    if (first > grid->first[d]) grid->first[d] = first > grid->last[d] ? grid->last[d] + 1 : (int64_t)first;
    if (last < grid->last[d]) grid->last[d] = last < grid->first[d] ? grid->first[d] - 1 : (int64_t)last;
    if (grid->first[d] > grid->last[d]) return false;
  }
  return true;
}

bool affine_covers(const affine_grid *grid, const affine *outer, const affine *inner) {
  if ((inner->points & ~outer->points) || inner->zeros < outer->zeros) return false;
  if (outer->root && (inner->root != outer->root || inner->root_offset != outer->root_offset)) return false;
  if (outer->base && (inner->base != outer->base || inner->step_lo < outer->step_lo || inner->step_hi > outer->step_hi))
    return false;
  if (outer->top) return true;
  if (inner->top) return false;
  int64_t lo, hi;
  affine_reform(grid, inner, outer->c, &lo, &hi);
  return lo >= outer->lo && hi <= outer->hi && inner->min >= outer->min && inner->max <= outer->max;
}

/* ---- meeting ---- */

static bool same_reading(const affine_grid *grid, const affine *a, const affine *b, uint8_t bits, affine *x,
                         affine *y) {
  affine_type types[2] = {{bits, true}, {bits, false}};
  if (a->top || b->top) {
    *x = *a;
    *y = *b;
    return false;
  }
  for (int i = 0; i < 2; i++) {
    wide low = type_min(types[i]), high = type_max(types[i]);
    *x = affine_as(grid, a, types[i]);
    *y = affine_as(grid, b, types[i]);
    bool lost = x->top || y->top || (wide)x->max - x->min > (wide)a->max - a->min ||
                (wide)y->max - y->min > (wide)b->max - b->min;
    if (!lost && x->min >= low && y->min >= low && x->max <= high && y->max <= high) return true;
  }
  return false;
}

/* Of two that cannot be compared the narrower is kept: both are true. */
bool affine_meet(const affine_grid *grid, const affine *a, const affine *b, uint8_t bits, affine *met) {
  affine x, y;
  if (!same_reading(grid, a, b, bits, &x, &y)) {
    *met = a->top || (!b->top && (wide)b->max - b->min < (wide)a->max - a->min) ? *b : *a;
    met->points = a->points & b->points ? a->points & b->points : a->points;
    met->root = a->root;
    met->root_offset = a->root_offset;
    return true;
  }
  const affine *form = (wide)y.hi - y.lo < (wide)x.hi - x.lo ? &y : &x;
  int64_t lo_x, hi_x, lo_y, hi_y;
  affine_reform(grid, &x, form->c, &lo_x, &hi_x);
  affine_reform(grid, &y, form->c, &lo_y, &hi_y);
  *met = x;
  memcpy(met->c, form->c, sizeof met->c);
  met->lo = larger(lo_x, lo_y);
  met->hi = smaller(hi_x, hi_y);
  met->min = larger(x.min, y.min);
  met->max = smaller(x.max, y.max);
  met->zeros = x.zeros > y.zeros ? x.zeros : y.zeros;
  if (met->lo > met->hi || met->min > met->max) return false;
  return affine_tighten(grid, met);
}

/* ---- loops ---- */

affine affine_widen(const affine_grid *grid, const affine *old, const affine *new, uint8_t bits, uint32_t stage) {
  affine v = affine_join(grid, old, new);
  if (v.top || old->top || !stage) return v;
  wide highest = bits >= 64 ? (wide)1 << 62 : type_max((affine_type){bits, stage == 1});
  wide lowest = bits >= 64 ? -((wide)1 << 62) : type_min((affine_type){bits, true});
  affine up = hull(grid, (sided){grid, old}, (sided){grid, new}, old->c);
  if (!up.top) {
    v = up;
    v.base = 0;
  }
  if (stage > 2 || v.max > highest || v.min < lowest) {
    affine unknown = affine_top(v.line, v.line ? (affine_cause)v.cause : AFFINE_LOOPED);
    unknown.points = v.points;
    return unknown;
  }
  if (v.max > old->max) v.max = (int64_t)highest;
  if (v.min < old->min) v.min = (int64_t)lowest;
  if (v.hi > old->hi) v.hi = INT64_MAX;
  if (v.lo < old->lo) v.lo = INT64_MIN;
  return tight(grid, v);
}

affine affine_repeat(const affine_grid *grid, const affine *v, int64_t step_lo, int64_t step_hi, int64_t times) {
  wide low = step_lo < 0 ? (wide)step_lo * times : 0, high = step_hi > 0 ? (wide)step_hi * times : 0;
  affine unknown = unknown_of(v, v, v->points);
  if (!fits(low) || !fits(high)) return unknown;
  affine by = affine_interval((int64_t)low, (int64_t)high);
  by.zeros = step_lo == step_hi ? zeros_of(step_lo) : 0;
  affine sum = affine_add(grid, v, &by);
  return sum;
}
