/* Written by docs/export.py from the blocks of C in nbs/search/12_compiled.ipynb: change the chapter. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef _MSC_VER
#include <intrin.h>
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif
typedef uint64_t u64;
typedef uint16_t u16;
typedef int32_t i32;
typedef int64_t i64;
#define VERSION 6    /* of the functions below; whoever calls them asks first */
#define DEEPEST 4096 /* levels of a tree, at most */
#define WIDEST 64    /* columns that lead to one leaf, at most */
#define DIVE 100000  /* steps without an answer before a dive, and steps of a dive */
#define TIE 1e-9     /* costs that differ by less are the same */
API i32 core_version(void) { return VERSION; }

typedef struct Node {
  double most;              /* the largest value below it */
  i32 column, cut;          /* cut: the last cell that goes left; a set; or the number of a leaf in its tree */
  i32 left, right, missing; /* column is -1 for a leaf; missing: whether a missing number goes left */
} Node;
typedef struct Part { /* of a leaf: the cells of one column that lead to it; of a category `low` is a set */
  i32 low, high;
  u16 column, missing;
} Part;
typedef union Span { /* the same, by column */
  struct {
    u16 low, high;
  } of;
  uint32_t set;
} Span;
typedef struct Trees {
  i32 G, T, K, N, leaves;   /* columns, trees, sums, nodes */
  i32 *sum, *root, *first;  /* of a tree: the sum that it adds to, its first node, its first leaf */
  Node *node;
  double *value;            /* of a leaf */
  i32 *part_at;             /* of a leaf: its parts, one after another */
  Part *part;
  i64 parts, part_room;
  Span *span;               /* (G, leaves) */
  uint8_t *place;           /* (leaves, G): which of its parts speaks of a column, from 1 on; 0: none */
  u64 *set;                 /* sets of levels, each as many words as its column has */
  i64 sets, set_room;
  i32 *words, *word_at, W;  /* of a column: words of its sets (0: a number), and where they are in a box */
  i32 *asks_at, *asks;      /* of a column: the trees that ask for it */
  int broken;               /* no memory was left */
} Trees;

static void *room_for(int *broken, size_t many, size_t size) { /* zeros; never a size of 0 */
  void *out = calloc(many ? many : 1, size);
  if (!out) *broken = 1;
  return out;
}
static void *copied(int *broken, const void *v, size_t size) {
  void *out = room_for(broken, size, 1);
  if (out && size) memcpy(out, v, size);
  return out;
}
static int grown(int *broken, void *at, size_t size) { /* `at`: the address of a pointer */
  void *out = realloc(*(void **)at, size);
  if (!out) {
    *broken = 1;
    return 0;
  }
  *(void **)at = out;
  return 1;
}

static i64 new_set(Trees *m, i32 words) { /* where it stands; -1 without memory */
  if (m->sets + words > m->set_room) {
    i64 most = 2 * m->set_room + words + 64;
    if (!grown(&m->broken, &m->set, (size_t)most * 8)) return -1;
    m->set_room = most;
  }
  m->sets += words;
  return m->sets - words;
}
static i64 every_level(Trees *m, i32 words) {
  i64 at = new_set(m, words);
  if (at >= 0) memset(m->set + at, 0xff, (size_t)words * 8);
  return at;
}
static void leaf_below(Trees *m, i32 n, const Part *now, i32 depth, i32 t) {
  i32 l = m->leaves++;
  m->node[n].cut = l - m->first[t];
  m->value[l] = m->node[n].most;
  if (m->parts + depth > m->part_room) {
    i64 most = 2 * m->part_room + depth + 1024;
    if (most > INT32_MAX || !grown(&m->broken, &m->part, (size_t)most * sizeof(Part))) {
      m->broken = 1;
      return;
    }
    m->part_room = most;
  }
  if (depth) memcpy(m->part + m->parts, now, (size_t)depth * sizeof(Part));
  m->parts += depth;
  m->part_at[l + 1] = (i32)m->parts;
}
/* Number the leaves below a node, and write down which cells lead to each. */
static void leaves_below(Trees *m, i32 n, Part *now, i32 depth, i32 t, i32 level) {
  if (n < 0 || n >= m->N || level > DEEPEST - 2 || m->node[n].column >= m->G) m->broken = 1;
  if (m->broken) return;
  i32 g = m->node[n].column, i = 0, right, was = depth;
  if (g < 0) {
    leaf_below(m, n, now, depth, t);
    return;
  }
  i32 w = m->words[g];
  while (i < depth && now[i].column != g) i++;
  Part old = {0, INT32_MAX, (u16)g, 1};
  if (i < depth)
    old = now[i];
  else {
    depth++;
    if (w) old.low = (i32)every_level(m, w);
  }
  for (right = 0; right < 2 && !m->broken; right++) {
    Part p = old;
    p.missing &= m->node[n].missing != right;
    if (w) {
      i64 s = new_set(m, w);
      if (s < 0) return;
      for (i32 j = 0; j < w; j++) {
        u64 v = m->set[m->node[n].cut + j];
        m->set[s + j] = m->set[old.low + j] & (right ? ~v : v);
      }
      p.low = (i32)s;
    } else if (right) {
      if (m->node[n].cut + 1 > p.low) p.low = m->node[n].cut + 1;
    } else if (m->node[n].cut < p.high)
      p.high = m->node[n].cut;
    now[i] = p;
    i32 child = right ? m->node[n].right : m->node[n].left;
    leaves_below(m, child, now, depth, t, level + 1);
    if (m->broken) return;
    if (!right || m->node[child].most > m->node[n].most) m->node[n].most = m->node[child].most;
  }
  if (was == depth) now[i] = old;
}
/* The same by column; and which trees ask for which column. */
static int spans_of(Trees *m) {
  size_t leaves = (size_t)m->leaves;
  i32 G = m->G, g, l, i, t, k = 0;
  m->place = room_for(&m->broken, leaves * G, 1);
  m->span = room_for(&m->broken, leaves * G, sizeof(Span));
  m->asks_at = room_for(&m->broken, (size_t)G + 1, 4);
  m->asks = room_for(&m->broken, (size_t)G * m->T, 4);
  if (m->broken) return 0;
  for (l = 0; l < m->leaves; l++)
    for (i = m->part_at[l]; i < m->part_at[l + 1]; i++) {
      if (i - m->part_at[l] >= WIDEST) return 0;
      m->place[(size_t)l * G + m->part[i].column] = (uint8_t)(i - m->part_at[l] + 1);
    }
  for (g = 0; g < G; g++) {
    Span all;
    all.of.low = 0;
    all.of.high = 65535;
    if (m->words[g]) all.set = (uint32_t)every_level(m, m->words[g]);
    if (m->broken) return 0;
    for (l = 0; l < m->leaves; l++) {
      Span x = all;
      if ((i = m->place[(size_t)l * G + g]) != 0) {
        const Part *q = m->part + m->part_at[l] + i - 1;
        if (m->words[g])
          x.set = (uint32_t)q->low;
        else {
          x.of.low = (u16)q->low;
          x.of.high = q->high > 65535 ? 65535 : (u16)q->high;
        }
      }
      m->span[(size_t)g * leaves + l] = x;
    }
    for (t = 0; t < m->T; t++) {
      int asks = 0;
      for (l = m->first[t]; l < m->first[t + 1] && !asks; l++) asks = m->place[(size_t)l * G + g];
      if (asks) m->asks[k++] = t;
    }
    m->asks_at[g + 1] = k;
  }
  return 1;
}
API void trees_free(Trees *m) {
  if (!m) return;
  free(m->sum), free(m->root), free(m->first), free(m->node), free(m->value), free(m->part_at), free(m->part);
  free(m->span), free(m->place), free(m->set), free(m->words), free(m->word_at);
  free(m->asks_at), free(m->asks);
  free(m);
}
/* 0 for what these tables do not hold: too many levels, leaves or columns; or no memory. */
API Trees *trees_new(i32 G, i32 T, i32 K, i32 N, const i32 *sum, const i32 *root, const i32 *column,
                     const i32 *cut, const i32 *left, const i32 *right, const uint8_t *missing,
                     const double *value, const i32 *words, const u64 *set, i64 sets) {
  int broken = 0, fits = 1;
  Trees *m = room_for(&broken, 1, sizeof *m);
  Part *now = room_for(&broken, (size_t)G + 1, sizeof(Part));
  if (!broken) {
    m->G = G, m->T = T, m->K = K, m->N = N;
    m->sum = copied(&m->broken, sum, (size_t)T * 4);
    m->root = copied(&m->broken, root, (size_t)T * 4);
    m->words = copied(&m->broken, words, (size_t)G * 4);
    m->set = copied(&m->broken, set, (size_t)sets * 8);
    m->sets = m->set_room = sets;
    m->node = room_for(&m->broken, (size_t)N, sizeof(Node));
    m->word_at = room_for(&m->broken, (size_t)G, 4);
    m->first = room_for(&m->broken, (size_t)T + 1, 4);
    m->part_at = room_for(&m->broken, (size_t)N + 1, 4);
    m->value = room_for(&m->broken, (size_t)N, 8);
    broken = m->broken;
  }
  for (i32 n = 0; n < N && !broken; n++) {
    Node v = {value[n], column[n], cut[n], left[n], right[n], missing[n]};
    m->node[n] = v;
  }
  for (i32 g = 0; g < G && !broken; m->W += words[g++]) m->word_at[g] = m->W;
  for (i32 t = 0; t < T && !broken && fits; t++) {
    m->first[t] = m->leaves;
    leaves_below(m, m->root[t], now, 0, t, 0);
    m->first[t + 1] = m->leaves;
    fits = m->leaves - m->first[t] < 65535;
    broken = m->broken;
  }
  fits = fits && !broken && spans_of(m) && !m->broken;
  free(now);
  if (fits) return m;
  trees_free(m);
  return 0;
}

typedef struct Row {
  const uint8_t *open;  /* columns that may change */
  const uint8_t *shift; /* 1 where the own number is missing: it stands before the cells, as number 0 */
  const i32 *cells;     /* cells of each column, with that one */
  const i32 *own;       /* the own cell, or the own level */
  const double *cost;   /* of each cell, toll included; 0 for the own one, infinite where nothing is legal */
  const i32 *near;      /* number: next legal cell on the way from the own one;
                           category: levels, cheapest first, then -1 */
  const double *need;   /* of each sum */
  i32 most, least;      /* columns that may change, and fewest of any answer */
} Row;
/* A box lies in one piece: this head, both ends of each column, sets of levels, best leaves,
   leaves of the corner. */
typedef struct Box {
  double key, least; /* no answer in it costs less: rounded up to whole tolls, and as it is */
  i64 tick;          /* when it was made */
  i64 fresh;         /* whether its leaves are still those of the own row */
} Box;
typedef struct Heap {
  Box **b;
  i32 n, room;
} Heap;
typedef struct Search {
  const Trees *m;
  const i32 *at; /* first cell of each column among all; G + 1 of them */
  Row rows, r;   /* of all rows, and the one that is searched */
  double toll, gap;
  i32 few;                            /* columns up to which each set of columns has a box of its own */
  size_t sets, best, corner, size;    /* where the parts of a box are, and its size */
  char **chunks;                      /* boxes that were made */
  i32 chunk_n;
  i64 bytes, most_bytes;
  void *list;                         /* boxes that are free again */
  Heap h;
  int stage, dive, broken;
  double cost, limit, reach;          /* of the best answer; from which on nothing is cheaper; or of its cost */
  int ties;                           /* whether the first of equal answers is searched */
  i64 tick, boxes, steps;
  double *gain, *sum, *here;          /* of trees; of sums, at best and at the corner */
  double *weight, *heavy;             /* of columns, of cells: what is promised there */
  i32 *answer, *cell, *other, *which, *moved; /* cells of the answer and of the corner; columns */
  uint8_t *open, *touched, *some, *todo;
  u16 *own_leaf;                      /* of each tree */
  u64 *off;                           /* of a leaf: which of its parts the own row is not in … */
  i32 *off_row, row;                  /* … and for which row that was said */
  i32 stack[DEEPEST];
} Search;
#define LOW(b) ((u16 *)((Box *)(b) + 1))
#define HIGH(b) (LOW(b) + s->m->G)
#define SET(b, g) ((u64 *)((char *)(b) + s->sets) + s->m->word_at[g])
#define BEST(b) ((u16 *)((char *)(b) + s->best))
#define CORNER(b) ((u16 *)((char *)(b) + s->corner))
#define HAS(v, k) ((v)[(k) >> 6] >> ((k) & 63) & 1)
#define WITH(v, k) ((v)[(k) >> 6] |= (u64)1 << ((k) & 63))
#define WITHOUT(v, k) ((v)[(k) >> 6] &= ~((u64)1 << ((k) & 63)))
#define FULL(s) ((s)->broken || (!(s)->list && (s)->bytes >= (s)->most_bytes))
#define CHUNK 256

static void drop(Search *s, Box *b) {
  *(void **)b = s->list;
  s->list = b;
}
static Box *new_box(Search *s) { /* 0 without memory */
  if (!s->list) {
    char *made = malloc(CHUNK * s->size);
    if (!made || !grown(&s->broken, &s->chunks, (size_t)(s->chunk_n + 1) * sizeof(char *))) {
      free(made);
      s->broken = 1;
      return 0;
    }
    s->chunks[s->chunk_n++] = made;
    s->bytes += CHUNK * (i64)s->size;
    for (int i = CHUNK - 1; i >= 0; i--) drop(s, (Box *)(made + i * s->size));
  }
  Box *b = s->list;
  s->list = *(void **)b;
  return b;
}
static int before(const Box *a, const Box *b) {
  return a->key < b->key || (a->key == b->key && a->tick < b->tick);
}
static void push(Search *s, Box *x) {
  Heap *h = &s->h;
  if (h->n == h->room) {
    i32 most = h->room ? 2 * h->room : 1024;
    if (!grown(&s->broken, &h->b, (size_t)most * sizeof *h->b)) {
      drop(s, x);
      return;
    }
    h->room = most;
  }
  i32 i = h->n++;
  while (i && before(x, h->b[(i - 1) / 2])) {
    h->b[i] = h->b[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  h->b[i] = x;
}
static Box *pop(Heap *h) {
  Box *top = h->b[0], *x = h->b[--h->n];
  i32 i = 0, c;
  while ((c = 2 * i + 1) < h->n) {
    if (c + 1 < h->n && before(h->b[c + 1], h->b[c])) c++;
    if (!before(h->b[c], x)) break;
    h->b[i] = h->b[c];
    i = c;
  }
  if (h->n) h->b[i] = x;
  return top;
}

/* The cheapest cell of a box in a column; -1 where none is legal. */
static i32 corner_of(const Search *s, const Box *b, i32 g) {
  const Row *r = &s->r;
  const i32 *near = r->near + s->at[g];
  i32 own = r->own[g];
  if (s->m->words[g]) {
    const u64 *v = SET(b, g);
    for (i32 i = 0; i < r->cells[g] && near[i] >= 0; i++)
      if (HAS(v, near[i])) return near[i];
    return -1;
  }
  i32 low = LOW(b)[g], high = HIGH(b)[g];
  if (low <= own && own <= high) return own;
  i32 c = near[high < own ? high : low];
  return c < low || c > high ? -1 : c;
}
/* What a box costs at its corner, whose cells go to `cell`; infinite where there is none. */
static double priced(Search *s, const Box *b, i32 *changed) {
  const Row *r = &s->r;
  double sum = 0;
  *changed = 0;
  for (i32 g = 0; g < s->m->G; g++) {
    i32 c = r->open[g] ? corner_of(s, b, g) : r->own[g];
    if (c < 0) return INFINITY;
    s->cell[g] = c;
    if (c != r->own[g]) {
      ++*changed;
      sum += r->cost[s->at[g] + c];
    }
  }
  return sum;
}
static double rounded(double cost, double toll) { /* no distance is as long as half a toll */
  if (!(toll > 0) || !isfinite(cost)) return cost;
  double rest = fmod(cost, toll);
  return rest > toll / 2 ? cost - rest + toll : cost;
}
/* From which cost on a box is not worth a look: the best answer, less the gap that is allowed. */
static void cheaper(Search *s, double cost) {
  double far = isfinite(cost) ? (s->toll > 0 ? fmod(cost, s->toll) : cost) : 0;
  s->cost = cost;
  s->limit = cost - far * s->gap / (1 + s->gap) - TIE;
  s->reach = s->ties ? cost + TIE : s->limit;
}
/* How the row at `cell` stands to the answer, where both cost the same: above 0 it comes first.
   3, -3: it changes fewer columns, or more; 2: as many, others; 1: the same ones, with other values. */
static int order(const Search *s) {
  i32 more = 0;
  int which = 0, value = 0;
  if (s->answer[0] < 0) return 3;
  for (i32 g = 0; g < s->m->G; g++) {
    i32 cell = s->cell[g], known = s->answer[g];
    int moved = cell != s->r.own[g], was = known != s->r.own[g];
    more += moved - was;
    if (!which && moved != was) which = moved ? 2 : -2;
    if (!value && cell != known) value = cell < known ? 1 : -1;
  }
  return more ? (more < 0 ? 3 : -3) : which ? which : value;
}
/* Whether a box may hold a cheaper answer, or one of the same cost that comes first.
   Its corner, at `cell`, costs `cost`, and no row of the box comes before it. */
static int worth(const Search *s, double key, double cost) {
  if (key < s->limit) return 1;
  if (!(key < s->reach)) return 0;
  int first = order(s);
  return first > 0 || (first > -2 && cost < s->cost - TIE);
}

/* Which children of a node a box reaches: 1 left, 2 right, 3 both. */
static int ways(const Search *s, const Box *b, i32 n) {
  const Trees *m = s->m;
  i32 g = m->node[n].column, w = m->words[g], c = m->node[n].cut;
  if (w) {
    const u64 *v = SET(b, g), *in = m->set + c;
    u64 l = 0, o = 0;
    for (i32 j = 0; j < w; j++) {
      l |= v[j] & in[j];
      o |= v[j] & ~in[j];
    }
    return (l != 0) | (o != 0) << 1;
  }
  i32 low = LOW(b)[g], high = HIGH(b)[g];
  if (!s->r.shift[g]) return (low <= c) | (high > c) << 1;
  int out = high >= 1 ? ((low > 1 ? low - 1 : 0) <= c) | (high - 1 > c) << 1 : 0;
  return low == 0 ? out | (m->node[n].missing ? 1 : 2) : out;
}
/* The best leaf of a tree that a box reaches; -1 for none. Branch and bound, the better child first. */
static i32 best_leaf(Search *s, const Box *b, i32 t) {
  const Node *node = s->m->node;
  i32 depth = 0, best = -1, n = s->m->root[t];
  double most = -INFINITY;
  for (;;) {
    while (n >= 0 && (best < 0 || node[n].most > most)) {
      s->steps++;
      if (node[n].column < 0) {
        best = node[n].cut;
        most = node[n].most;
        break;
      }
      i32 go = ways(s, b, n), l = node[n].left, o = node[n].right;
      if (go == 3) {
        int swap = node[o].most > node[l].most;
        s->stack[depth++] = swap ? l : o;
        n = swap ? o : l;
      } else
        n = go == 1 ? l : go == 2 ? o : -1;
    }
    if (!depth) return best;
    n = s->stack[--depth];
  }
}
static int goes_left(const Search *s, i32 n, i32 k) {
  const Trees *m = s->m;
  i32 g = m->node[n].column;
  if (m->words[g]) return HAS(m->set + m->node[n].cut, k);
  if (!s->r.shift[g]) return k <= m->node[n].cut;
  return k ? k - 1 <= m->node[n].cut : m->node[n].missing;
}
static i32 leaf_at(Search *s, const i32 *cell, i32 t) {
  const Node *node = s->m->node;
  i32 n = s->m->root[t];
  while (node[n].column >= 0) {
    s->steps++;
    n = goes_left(s, n, cell[node[n].column]) ? node[n].left : node[n].right;
  }
  return node[n].cut;
}
static int part_has(const Search *s, const Part *q, i32 k) { /* whether a cell leads to a leaf */
  if (s->m->words[q->column]) return HAS(s->m->set + q->low, k);
  if (s->r.shift[q->column] && !k--) return q->missing;
  return q->low <= k && k <= q->high;
}
/* Of a number: for a row where it is missing. */
static int part_meets(const Search *s, const Box *b, const Part *q) {
  i32 low = LOW(b)[q->column], high = HIGH(b)[q->column];
  if (!low && q->missing) return 1;
  return high >= 1 && (low ? low - 1 : 0) <= q->high && high - 1 >= q->low;
}
static const Part *part_of(const Trees *m, i32 leaf, i32 g) {
  i32 i = m->place[(size_t)leaf * m->G + g];
  return i ? m->part + m->part_at[leaf] + i - 1 : 0;
}
/* What a column that became narrower takes away; 0 where a tree has no leaf left.
   `moved`: the corner's cell is another. */
static int narrowed(Search *s, Box *b, i32 g, int moved) {
  const Trees *m = s->m;
  u16 *best = BEST(b), *corner = CORNER(b);
  const Span *span = m->span + (size_t)g * m->leaves;
  i32 w = m->words[g], low = LOW(b)[g], high = HIGH(b)[g], at = s->cell[g], shift = s->r.shift[g];
  const u64 *v = SET(b, g);
  s->steps += m->asks_at[g + 1] - m->asks_at[g];
  for (i32 i = m->asks_at[g]; i < m->asks_at[g + 1]; i++) {
    i32 t = m->asks[i], l = m->first[t] + best[t], c = m->first[t] + corner[t];
    int meets = 0, has;
    if (w) {
      const u64 *u = m->set + span[l].set;
      for (i32 j = 0; j < w; j++) meets |= (u[j] & v[j]) != 0;
      has = HAS(m->set + span[c].set, at);
    } else if (!shift) {
      meets = (span[l].of.low <= high) & (span[l].of.high >= low);
      has = (span[c].of.low <= at) & (at <= span[c].of.high);
    } else {
      const Part *q = part_of(m, l, g), *p = part_of(m, c, g);
      meets = !q || part_meets(s, b, q);
      has = !p || part_has(s, p, at);
    }
    if (!meets) {
      if ((l = best_leaf(s, b, t)) < 0) return 0;
      best[t] = (u16)l;
    }
    if (moved && !has) corner[t] = (u16)leaf_at(s, s->cell, t);
  }
  return 1;
}
/* 0: hopeless; 1: an answer; 2: neither. `cell` holds the corner, which costs `cost`.
   Trees of one sum stand together. */
static int judged(Search *s, const Box *b, double cost) {
  const Trees *m = s->m;
  const u16 *best = BEST(b), *corner = CORNER(b);
  int there = 1;
  for (i32 k = 0, t = 0; k < m->K; k++) {
    double sum = 0, here = 0;
    for (; t < m->T && m->sum[t] == k; t++) {
      const double *v = m->value + m->first[t];
      double a = v[best[t]], c = v[corner[t]];
      sum += a;
      here += c;
      s->gain[t] = a - c;
    }
    s->sum[k] = sum;
    s->here[k] = here;
  }
  for (i32 k = 0; k < m->K; k++) {
    if (!(s->sum[k] >= s->r.need[k])) return 0;
    there &= s->here[k] >= s->r.need[k];
  }
  if (!there) return 2;
  if (cost < s->cost - TIE || (s->ties && cost <= s->cost + TIE && order(s) > 0)) {
    cheaper(s, cost);
    memcpy(s->answer, s->cell, (size_t)m->G * 4);
  }
  return 1;
}
/* Queue a box unless it is too dear; one whose parent knew its leaves is judged first. -1 for no column. */
static void offer(Search *s, Box *b, double least, i32 column, i32 was) {
  i32 changed;
  double cost = priced(s, b, &changed), k = fmax(cost, least), key = fmax(k, rounded(k, s->toll));
  int keep = isfinite(k) && changed <= s->r.most && worth(s, key, cost);
  if (keep && column >= 0) keep = narrowed(s, b, column, s->cell[column] != was) && judged(s, b, cost) == 2;
  if (!keep) {
    drop(s, b);
    return;
  }
  if (s->dive && column >= 0) { /* best first by what the corner lacks */
    key = -INFINITY;
    for (i32 j = 0; j < s->m->K; j++) key = fmax(key, s->r.need[j] - s->here[j]);
  }
  b->key = key;
  b->least = k;
  b->tick = s->tick++;
  push(s, b);
}

static i32 levels_of(const Search *s, const u64 *v, i32 g) {
  i32 n = 0;
  for (i32 j = 0; j < s->m->words[g]; j++)
    for (u64 x = v[j]; x; x &= x - 1) n++;
  return n;
}
/* Cells of one column that cost more than is left; whether any went. 0 levels may be left of a category. */
static int closed_column(Search *s, Box *b, i32 g, double room, int stays, int full) {
  const Row *r = &s->r;
  const double *cost = r->cost + s->at[g];
  i32 own = r->own[g];
  int touched = 0;
  if (s->m->words[g]) {
    u64 *v = SET(b, g);
    for (i32 i = 0; i < r->cells[g]; i++)
      if (HAS(v, i) && i != own && ((stays && (full || room < 0)) || !(cost[i] - s->toll <= fmax(room, 0)))) {
        WITHOUT(v, i);
        touched = 1;
      }
    return touched;
  }
  i32 a = LOW(b)[g], z = HIGH(b)[g];
  if (stays && (full || room < 0))
    a = z = own;
  else if (isfinite(room)) {
    while (z > a && z > own && !(cost[z] - s->toll <= fmax(room, 0))) z--;
    while (a < z && a < own && !(cost[a] - s->toll <= fmax(room, 0))) a++;
  }
  touched = a != LOW(b)[g] || z != HIGH(b)[g];
  LOW(b)[g] = (u16)a;
  HIGH(b)[g] = (u16)z;
  return touched;
}
/* A column that has to change loses its own value. */
static int without_own(Search *s, Box *b, i32 g) {
  i32 own = s->r.own[g];
  if (s->m->words[g]) {
    u64 *v = SET(b, g);
    if (!HAS(v, own)) return 0;
    WITHOUT(v, own);
    return 1;
  }
  u16 *low = LOW(b) + g, *high = HIGH(b) + g;
  if (*low >= *high || (*low != own && *high != own)) return 0;
  if (*low == own)
    ++*low;
  else
    --*high;
  return 1;
}
/* Close what costs more than is left to spend; narrower columns go to `which`,
   with a flag where the corner moved. */
static int closed(Search *s, Box *b, i32 *count) {
  const Row *r = &s->r;
  const Trees *m = s->m;
  i32 changed, open = 0, *cell = s->other;
  double total = priced(s, b, &changed);
  *count = 0;
  if (!isfinite(total) || changed > r->most) return 0;
  memcpy(cell, s->cell, (size_t)m->G * 4);
  for (i32 g = 0; g < m->G; g++) {
    s->open[g] = s->touched[g] = 0;
    if (!r->open[g]) continue;
    int stays = cell[g] == r->own[g];
    double room = s->reach - total + (stays ? 0 : r->cost[s->at[g] + cell[g]]) - s->toll;
    s->touched[g] = (uint8_t)closed_column(s, b, g, room, stays, changed >= r->most);
    i32 left = m->words[g] ? levels_of(s, SET(b, g), g) : HIGH(b)[g] - LOW(b)[g] + 1;
    if (left <= 0) return 0;
    s->open[g] = left > 1 || !stays;
    open += s->open[g];
  }
  if (s->toll > 0) {
    i32 spare = open - (i32)floor(b->least / s->toll + TIE); /* open columns that need not change */
    if (spare < 0) return 0;
    for (i32 g = 0; g < m->G && !spare; g++)
      if (s->open[g] && without_own(s, b, g)) s->touched[g] = 1;
  }
  total = priced(s, b, &changed);
  if (!isfinite(total) || changed > r->most || fmax(total, b->least) > s->reach) return 0;
  if (total > b->least) b->least = total;
  for (i32 g = 0; g < m->G; g++)
    if (s->touched[g]) s->which[(*count)++] = g | (s->cell[g] != cell[g]) << 30;
  return 1;
}

#ifdef _MSC_VER
static int lowest_bit(u64 v) {
  unsigned long at;
  _BitScanForward64(&at, v);
  return (int)at;
}
#else
#define lowest_bit __builtin_ctzll
#endif
static u64 off_own(Search *s, i32 leaf) { /* the parts of a leaf that the own row is not in */
  const Trees *m = s->m;
  if (s->off_row[leaf] == s->row) return s->off[leaf];
  u64 out = 0;
  for (i32 i = m->part_at[leaf]; i < m->part_at[leaf + 1]; i++)
    out |= (u64)!part_has(s, m->part + i, s->r.own[m->part[i].column]) << (i - m->part_at[leaf]);
  s->off_row[leaf] = s->row;
  return s->off[leaf] = out;
}
/* The column in which the best leaves of most trees leave the corner;
   -1 where the corner has what is promised. */
static i32 column_of(Search *s, const Box *b, i32 sum) {
  const Trees *m = s->m;
  const u16 *best = BEST(b);
  i32 many = 0, out = -1;
  memset(s->weight, 0, (size_t)m->G * 8);
  for (i32 g = 0; g < m->G; g++)
    if (s->cell[g] != s->r.own[g]) s->moved[many++] = g;
  for (i32 t = 0; t < m->T; t++) {
    if (m->sum[t] != sum || !(s->gain[t] > 0)) continue;
    i32 l = m->first[t] + best[t];
    u64 off = off_own(s, l);
    const Part *q = m->part + m->part_at[l];
    for (i32 j = 0; j < many; j++) {
      i32 i = m->place[(size_t)l * m->G + s->moved[j]];
      if (i--) off = (off & ~((u64)1 << i)) | (u64)!part_has(s, q + i, s->cell[s->moved[j]]) << i;
    }
    for (; off; off &= off - 1) s->weight[q[lowest_bit(off)].column] += s->gain[t];
  }
  for (i32 g = 0; g < m->G; g++)
    if (s->weight[g] > 0 && (out < 0 || s->weight[g] > s->weight[out])) out = g;
  return out;
}
/* Part a category: the levels of the best leaf that promises most, and the rest; or else the corner alone. */
static void cut_levels(Search *s, Box *b, Box *c, i32 g, i32 sum) {
  const Trees *m = s->m;
  const Part *q = 0;
  u64 *v = SET(b, g), *o = SET(c, g), some = 0, rest = 0;
  i32 at = s->cell[g], most = -1;
  for (i32 i = m->asks_at[g]; i < m->asks_at[g + 1]; i++) {
    i32 t = m->asks[i];
    if (m->sum[t] != sum || !(s->gain[t] > 0) || (most >= 0 && s->gain[t] <= s->gain[most])) continue;
    const Part *x = part_of(m, m->first[t] + BEST(b)[t], g);
    if (x && !part_has(s, x, at)) {
      most = t;
      q = x;
    }
  }
  for (i32 j = 0; j < m->words[g]; j++) {
    u64 in = q ? m->set[q->low + j] : 0;
    o[j] = v[j] & in;
    v[j] &= ~in;
    some |= o[j];
    rest |= v[j];
  }
  if (some && rest) return;
  for (i32 j = 0; j < m->words[g]; j++) {
    v[j] |= o[j];
    o[j] = 0;
  }
  WITHOUT(v, at);
  WITH(o, at);
}
/* The last cell of the lower part of a number; -1 where it cannot be parted. */
static i32 cut_number(Search *s, const Box *b, i32 g, i32 sum) {
  const Trees *m = s->m;
  i32 low = LOW(b)[g], high = HIGH(b)[g], shift = s->r.shift[g], at = s->cell[g], own = s->r.own[g], upper = -1;
  double most = 0;
  memset(s->heavy + low, 0, (size_t)(high - low + 1) * 8);
  for (i32 i = m->asks_at[g]; i < m->asks_at[g + 1]; i++) {
    i32 t = m->asks[i], k = -1;
    if (m->sum[t] != sum || !(s->gain[t] > 0)) continue;
    if (!shift) {
      Span x = m->span[(size_t)g * m->leaves + m->first[t] + BEST(b)[t]];
      k = x.of.low > at ? x.of.low - 1 : x.of.high < at ? x.of.high : -1;
    } else {
      const Part *q = part_of(m, m->first[t] + BEST(b)[t], g);
      if (q && !part_has(s, q, at)) k = q->low + shift > at ? q->low : q->high > 65535 ? -1 : q->high + shift;
    }
    if (k >= low && k < high) s->heavy[k] += s->gain[t];
  }
  for (i32 k = low; k < high; k++)
    if (s->heavy[k] > most) {
      most = s->heavy[k];
      upper = k;
    }
  if (upper < 0) upper = low <= own && own <= high ? (own < high ? own : own - 1) : low + (high - low) / 2;
  return upper >= low && upper < high ? upper : -1;
}
/* Cut a box for the sum that lacks most, and offer both parts. */
static void cut(Search *s, Box *b) {
  const Trees *m = s->m;
  i32 sum = -1, upper = 0;
  for (i32 k = 0; k < m->K; k++)
    if (s->here[k] < s->r.need[k] &&
        (sum < 0 || s->here[k] - s->r.need[k] < s->here[sum] - s->r.need[sum]))
      sum = k;
  i32 g = column_of(s, b, sum);
  if (g >= 0 && !m->words[g]) upper = cut_number(s, b, g, sum);
  Box *c = g >= 0 && upper >= 0 ? new_box(s) : 0;
  if (!c) {
    drop(s, b);
    return;
  }
  b->fresh = 0;
  memcpy(c, b, s->size);
  if (m->words[g])
    cut_levels(s, b, c, g, sum);
  else {
    HIGH(b)[g] = (u16)upper;
    LOW(c)[g] = (u16)(upper + 1);
  }
  i32 was = s->cell[g];
  double least = b->least;
  offer(s, b, least, g, was);
  offer(s, c, least, g, was);
}

static void all_of(Search *s, Box *b, i32 g, int may) { /* every legal cell of a column, or the own one alone */
  const Row *r = &s->r;
  if (s->m->words[g]) {
    u64 *v = SET(b, g);
    memset(v, 0, (size_t)s->m->words[g] * 8);
    if (!may) WITH(v, r->own[g]);
    for (i32 i = 0; may && i < r->cells[g] && r->near[s->at[g] + i] >= 0; i++) WITH(v, r->near[s->at[g] + i]);
    return;
  }
  LOW(b)[g] = (u16)(may ? 0 : r->own[g]);
  HIGH(b)[g] = (u16)(may ? r->cells[g] - 1 : r->own[g]);
}
static Box *first_box(Search *s, i32 a, i32 c, const uint8_t *some) { /* two columns may change, or some */
  Box *b = new_box(s);
  if (!b) return 0;
  memset(b, 0, s->size);
  for (i32 g = 0; g < s->m->G; g++) all_of(s, b, g, s->r.open[g] && (some ? some[g] : g == a || g == c));
  memcpy(BEST(b), s->own_leaf, (size_t)s->m->T * 2);
  memcpy(CORNER(b), s->own_leaf, (size_t)s->m->T * 2);
  b->fresh = 1;
  return b;
}
static void begin_with(Search *s, i32 a, i32 c, const uint8_t *some, double least) {
  Box *b = first_box(s, a, c, some);
  if (b) offer(s, b, least, -1, 0);
}
static void first_boxes(Search *s) {
  const Row *r = &s->r;
  i32 G = s->m->G, few = s->toll > 0 ? s->few : 0;
  if (!r->least) { /* a row may be there already */
    Box *b = first_box(s, G, G, 0);
    memcpy(s->cell, r->own, (size_t)G * 4);
    if (b) {
      judged(s, b, 0.);
      drop(s, b);
    }
  }
  for (i32 a = 0; a < G; a++)
    if (r->open[a] && few > 0 && r->least <= 1 && r->most >= 1) begin_with(s, a, a, 0, s->toll);
  for (i32 a = 0; a < G; a++)
    for (i32 c = a + 1; c < G && r->open[a] && few > 1 && r->least <= 2 && r->most >= 2; c++)
      if (r->open[c]) begin_with(s, a, c, 0, 2 * s->toll);
  if (r->most > few) begin_with(s, G, G, r->open, (r->least > few ? r->least : few + 1) * s->toll);
}

/* A first box has the leaves of the own row: walk the trees that ask for an open column. */
static int woken(Search *s, Box *b) {
  const Trees *m = s->m;
  memset(s->todo, 0, (size_t)m->T);
  for (i32 g = 0; g < m->G; g++) {
    int moves = s->cell[g] != s->r.own[g];
    if (s->r.open[g]) moves |= m->words[g] ? levels_of(s, SET(b, g), g) > 1 : LOW(b)[g] < HIGH(b)[g];
    for (i32 i = m->asks_at[g]; i < m->asks_at[g + 1] && moves; i++) s->todo[m->asks[i]] = 1;
  }
  for (i32 t = 0; t < m->T; t++) {
    if (!s->todo[t]) continue;
    i32 l = best_leaf(s, b, t);
    if (l < 0) return 0;
    BEST(b)[t] = (u16)l;
    CORNER(b)[t] = (u16)leaf_at(s, s->cell, t);
  }
  return 1;
}
/* Look at boxes until nothing cheaper is left, or so many steps are done; a dive ends at the first answer. */
static void go_on(Search *s, i64 until) {
  i32 count, changed;
  while (s->h.n && s->steps < until && !FULL(s)) {
    if (s->dive ? isfinite(s->cost) : s->h.b[0]->key >= s->reach) break;
    Box *b = pop(&s->h);
    s->boxes++;
    s->steps += 1 + s->m->G; /* all columns are looked at */
    int ok = closed(s, b, &count);
    double least = b->least, cost;
    if (ok && b->fresh) ok = woken(s, b);
    else
      for (i32 i = 0; i < count && ok; i++) ok = narrowed(s, b, s->which[i] & 0xffff, s->which[i] >> 30);
    if (!ok || judged(s, b, cost = priced(s, b, &changed)) < 2 || !worth(s, least, cost))
      drop(s, b);
    else
      cut(s, b);
  }
}
/* Search some columns alone, beside what is queued: for an answer to begin with. */
static void beside(Search *s, const uint8_t *some, int dive) {
  Heap kept = s->h, none = {0, 0, 0};
  s->h = none;
  s->dive = dive;
  begin_with(s, s->m->G, s->m->G, some, 0);
  go_on(s, s->steps + DIVE);
  while (s->h.n) drop(s, s->h.b[--s->h.n]);
  free(s->h.b);
  s->h = kept;
  s->dive = 0;
}
/* Nothing yet: any answer of three columns, of four, of as many as may change;
   then the best of these columns. */
static void dive(Search *s) {
  i32 most = s->r.most, few = s->toll > 0 ? s->few : 0;
  for (i32 n = few + 1; n <= few + 3 && isinf(s->cost) && !s->broken; n++) {
    s->r.most = n < few + 3 && n < most ? n : most;
    beside(s, s->r.open, 1);
    if (s->r.most == most) break;
  }
  s->r.most = most;
  if (isinf(s->cost)) return;
  for (i32 g = 0; g < s->m->G; g++) s->some[g] = s->answer[g] != s->r.own[g];
  beside(s, s->some, 0);
}

API void search_free(Search *s) {
  if (!s) return;
  for (i32 j = 0; j < s->chunk_n; j++) free(s->chunks[j]);
  free(s->chunks), free(s->h.b), free(s->gain), free(s->sum), free(s->here), free(s->weight), free(s->heavy);
  free(s->answer), free(s->cell), free(s->other), free(s->which);
  free(s->moved), free(s->open), free(s->touched);
  free(s->some), free(s->todo), free(s->own_leaf), free(s->off), free(s->off_row);
  free(s);
}
/* Rows `(n, …)` side by side, which have to stay where they are; `cost` and `near` have `at[G]` a row.
   0 without memory. */
API Search *search_new(const Trees *m, const i32 *at, const uint8_t *open, const uint8_t *shift,
                       const i32 *cells, const i32 *own, const double *cost, const i32 *near,
                       const double *need, double toll, double gap, i32 ties, i32 few, i64 most_bytes) {
  int broken = 0;
  size_t G = (size_t)m->G, T = (size_t)m->T, wide = 2;
  Search *s = room_for(&broken, 1, sizeof *s);
  if (!s) return 0;
  for (size_t g = 0; g < G; g++)
    if ((size_t)(at[g + 1] - at[g]) + 2 > wide) wide = (size_t)(at[g + 1] - at[g]) + 2;
  Row rows = {open, shift, cells, own, cost, near, need, 0, 0};
  s->m = m, s->at = at, s->rows = rows, s->toll = toll, s->gap = gap, s->few = few, s->most_bytes = most_bytes;
  s->ties = ties;
  s->sets = (sizeof(Box) + 4 * G + 7) / 8 * 8;
  s->best = s->sets + 8 * (size_t)m->W;
  s->corner = s->best + 2 * T;
  s->size = (s->corner + 2 * T + 15) / 16 * 16;
  s->gain = room_for(&broken, T, 8);
  s->sum = room_for(&broken, (size_t)m->K, 8);
  s->here = room_for(&broken, (size_t)m->K, 8);
  s->weight = room_for(&broken, G, 8);
  s->heavy = room_for(&broken, wide, 8);
  s->answer = room_for(&broken, G, 4);
  s->cell = room_for(&broken, G, 4);
  s->other = room_for(&broken, G, 4);
  s->which = room_for(&broken, G, 4);
  s->moved = room_for(&broken, G, 4);
  s->open = room_for(&broken, G, 1);
  s->touched = room_for(&broken, G, 1);
  s->some = room_for(&broken, G, 1);
  s->todo = room_for(&broken, T, 1);
  s->own_leaf = room_for(&broken, T, 2);
  s->off = room_for(&broken, (size_t)m->leaves, 8);
  s->off_row = room_for(&broken, (size_t)m->leaves, 4);
  if (!broken) return s;
  search_free(s);
  return 0;
}
/* Begin with a row, of which an answer of some cost is known; infinite for none. */
API void search_row(Search *s, i32 i, i32 most, i32 least, double cost) {
  size_t G = (size_t)s->m->G, C = (size_t)s->at[G];
  Row r = {s->rows.open + i * G, s->rows.shift + i * G, s->rows.cells + i * G, s->rows.own + i * G,
           s->rows.cost + i * C, s->rows.near + i * C, s->rows.need + (size_t)i * s->m->K, most, least};
  while (s->h.n) drop(s, s->h.b[--s->h.n]);
  s->r = r;
  s->row++;
  s->stage = s->dive = s->broken = 0;
  s->boxes = s->steps = s->tick = 0;
  cheaper(s, cost);
  for (i32 t = 0; t < s->m->T; t++) s->own_leaf[t] = (u16)leaf_at(s, r.own, t);
  for (i32 g = 0; g < s->m->G; g++) s->answer[g] = -1;
  first_boxes(s);
}
/* Go on for so many steps: 0 where more is left, 1 where all is known,
   2 where boxes take all memory that they may. */
API i32 search_go(Search *s, i64 steps) {
  i64 until = s->steps + steps;
  if (!s->stage) {
    if (isinf(s->cost)) go_on(s, until < DIVE ? until : DIVE);
    if (isinf(s->cost) && s->h.n && s->steps < DIVE && !FULL(s)) return 0;
    if (isinf(s->cost) && s->h.n && s->steps < until && !FULL(s)) dive(s);
    s->stage = 1;
  }
  go_on(s, until);
  if (s->h.n ? FULL(s) : s->broken) return 2;
  return !s->h.n || s->h.b[0]->key >= s->reach;
}
/* What is known: cells of the answer, -1 for none, its cost, and what everything else costs at least. */
API void search_known(const Search *s, i32 *answer, double *cost, double *left, i64 *boxes, i64 *steps) {
  memcpy(answer, s->answer, (size_t)s->m->G * 4);
  *cost = s->cost;
  *left = s->broken ? 0 : s->h.n && s->h.b[0]->key < s->limit ? s->h.b[0]->key : INFINITY;
  *boxes = s->boxes;
  *steps = s->steps;
}

typedef struct Ask { /* what a node asks of a row */
  double bound;
  i32 feature, set; /* set: where the levels that go left begin; -1 for a number */
  i32 missing;      /* whether a missing value goes left */
} Ask;
typedef struct Knot { /* a node of a tree that is walked; its left child is the next one */
  Ask ask;        /* of a leaf the feature is -1, and the bound its value */
  i32 right, cut; /* cut: how many places of its column go left, the first ones; below 0: where they are listed */
} Knot;
typedef struct Test { /* a node of a tree whose leaves are bits */
  Ask ask;
  u64 left_out; /* the leaves that stay where a row goes right */
} Test;
typedef struct Piece { /* values of a column that leave the same leaves, from one place on */
  u64 stay;
  i64 place;
} Piece;
typedef struct Column { /* of a tree; both as ends */
  i32 column, tests, pieces;
} Column;
typedef struct Opened { /* trees of several models in what they read */
  i32 T, N, G, M;
  i32 *root, *sum, *at;       /* of a tree: its first node, its sum; of a column: its first place */
  i32 *owner;                 /* of a feature: its column, -1 for none */
  i32 *leaf_at, *columns_at;  /* of a tree: its first leaf, -1 where it is walked; its first column */
  Knot *knot;
  double *leaf;
  Test *test;
  Piece *piece;
  Column *column;
  i32 leaves, tests, pieces, columns, piece_room, words;
  u64 *level, *place; /* sets of levels, and of places, so many words */
  int broken;         /* no memory was left */
} Opened;
static int left_of(const u64 *level, const Ask *a, const double *x) {
  double v = x[a->feature];
  if (isnan(v)) return a->missing;
  if (a->set < 0) return v <= a->bound;
  i64 k = (i64)v;
  return (int)(level[a->set + k / 64] >> (k % 64) & 1);
}
static u64 go_left(const Opened *o, const Knot *k, i32 word) { /* of the places of its column, 64 at a time */
  if (k->cut < 0) return o->place[word - 1 - k->cut];
  i32 c = k->cut - 64 * word;
  return c <= 0 ? 0 : c < 64 ? ((u64)1 << c) - 1 : ~(u64)0;
}
static i32 leaves_under(const Knot *k, i32 n, i32 most) { /* more than `most` are not counted */
  if (k[n].ask.feature < 0) return 1;
  i32 left = leaves_under(k, n + 1, most);
  return left > most ? left : left + leaves_under(k, k[n].right, most);
}
/* Number the leaves of a small tree, and write down its inner nodes and what each leaves; the next number. */
static i32 number_leaves(Opened *o, i32 n, i32 next, i32 *inner, u64 *left_out, i32 *many) {
  const Knot *k = o->knot + n;
  if (k->ask.feature < 0) {
    o->leaf[o->leaves++] = k->ask.bound;
    return next + 1;
  }
  i32 i = (*many)++, first = next;
  inner[i] = n;
  next = number_leaves(o, n + 1, next, inner, left_out, many);
  left_out[i] = ~((((u64)1 << (next - first)) - 1) << first);
  return number_leaves(o, k->right, next, inner, left_out, many);
}
static void add_pieces(Opened *o, i32 g, const i32 *node, const u64 *left_out, i32 many) {
  u64 last = 0;
  for (i32 p = 0; p < o->at[g + 1] - o->at[g]; p++) {
    u64 stay = ~(u64)0;
    for (i32 j = 0; j < many; j++)
      if (!(go_left(o, o->knot + node[j], p / 64) >> (p % 64) & 1)) stay &= left_out[j];
    if (p && stay == last) continue;
    if (o->pieces == o->piece_room) {
      i32 more = 2 * o->piece_room + 1024;
      if (!grown(&o->broken, &o->piece, (size_t)more * sizeof(Piece))) return;
      o->piece_room = more;
    }
    Piece new = {last = stay, o->at[g] + p};
    o->piece[o->pieces++] = new;
  }
}
static void add_tree(Opened *o, i32 t) {
  i32 inner[64], node[64], many = 0;
  u64 left_out[64], mine[64];
  o->leaf_at[t] = -1;
  o->columns_at[t + 1] = o->columns;
  if (leaves_under(o->knot, o->root[t], 64) > 64) return;
  o->leaf_at[t] = o->leaves;
  number_leaves(o, o->root[t], 0, inner, left_out, &many);
  for (i32 i = 0; i < many; i++) {
    if (inner[i] < 0) continue;
    i32 g = o->owner[o->knot[inner[i]].ask.feature], k = 0;
    for (i32 j = i; j < many; j++) {
      if (inner[j] < 0 || o->owner[o->knot[inner[j]].ask.feature] != g) continue;
      Test new = {o->knot[inner[j]].ask, mine[k] = left_out[j]};
      o->test[o->tests++] = new;
      node[k++] = inner[j];
      inner[j] = -1;
    }
    if (g >= 0) add_pieces(o, g, node, mine, k);
    Column new = {g, o->tests, o->pieces};
    o->column[o->columns++] = new;
  }
  o->columns_at[t + 1] = o->columns;
}
/* Which places of its column go left at a node. */
static void add_places(Opened *o, Knot *k, const double *table, i32 J) {
  i32 g = o->owner[k->ask.feature], many = g < 0 ? 0 : o->at[g + 1] - o->at[g], first = 0, left = 0;
  for (i32 p = 0; p < many; p++) {
    int goes = left_of(o->level, &k->ask, table + (i64)(o->at[g] + p) * J);
    left += goes, first += goes && first == p;
  }
  k->cut = left;
  if (left == first) return;
  size_t words = (size_t)(many + 63) / 64;
  if (!grown(&o->broken, &o->place, (o->words + words) * 8)) return;
  k->cut = -1 - o->words;
  u64 *list = o->place + o->words;
  memset(list, 0, words * 8);
  for (i32 p = 0; p < many; p++)
    if (left_of(o->level, &k->ask, table + (i64)(o->at[g] + p) * J)) WITH(list, p);
  o->words += (i32)words;
}
API void opened_free(Opened *o) {
  if (!o) return;
  free(o->root), free(o->sum), free(o->at), free(o->owner), free(o->leaf_at), free(o->columns_at);
  free(o->knot), free(o->leaf), free(o->test), free(o->piece), free(o->column);
  free(o->level), free(o->place), free(o);
}
/* `owner`: of a feature, its column; `table`: the features of each place, `(at[G], J)`; `at`: first places. */
API Opened *opened_new(i32 T, const i32 *root, const i32 *sum, i32 N, const i32 *feature, const i32 *left,
                       const i32 *right, const i32 *set, const double *bound, const double *value,
                       const uint8_t *missing, const u64 *level, i64 levels, const i32 *owner,
                       const double *table, i32 J, i32 G, const i32 *at, i32 M) {
  Opened *o = calloc(1, sizeof(Opened));
  if (!o) return 0;
  int *b = &o->broken;
  i32 *later = room_for(b, N, 4), *from = room_for(b, N, 4); /* right children, and whose they are */
  o->T = T, o->N = N, o->G = G, o->M = M;
  o->root = room_for(b, T, 4), o->sum = copied(b, sum, (size_t)T * 4);
  o->at = copied(b, at, (size_t)(G + 1) * 4), o->owner = copied(b, owner, (size_t)J * 4);
  o->level = copied(b, level, (size_t)levels * 8);
  o->leaf_at = room_for(b, T, 4), o->columns_at = room_for(b, (size_t)T + 1, 4);
  o->knot = room_for(b, N, sizeof(Knot)), o->leaf = room_for(b, N, 8);
  o->test = room_for(b, N, sizeof(Test)), o->column = room_for(b, N, sizeof(Column));
  for (i32 t = 0, k = 0; !o->broken && t < T; t++) { /* a node, all on its left, all on its right */
    i32 waiting = 0, n = root[t];
    for (o->root[t] = k;; k++) {
      Knot new = {{feature[n] < 0 ? value[n] : bound[n], feature[n], set[n], missing[n]}, 0, 0};
      o->knot[k] = new;
      if (feature[n] >= 0) {
        add_places(o, o->knot + k, table, J);
        later[waiting] = right[n], from[waiting++] = k, n = left[n];
        continue;
      }
      if (!waiting || o->broken) break;
      n = later[--waiting], o->knot[from[waiting]].right = k + 1;
    }
    k++;
  }
  free(later), free(from);
  for (i32 t = 0; !o->broken && t < T; t++) add_tree(o, t);
  if (!o->broken) return o;
  opened_free(o);
  return 0;
}

/* A small tree: all nodes are asked, and each piece of each column says which leaf would be reached. */
static double ask_bits(const Opened *o, i32 t, const double *x, const uint8_t *open, double *change) {
  const Column *c = o->column + o->columns_at[t];
  const double *leaf = o->leaf + o->leaf_at[t];
  i32 many = o->columns_at[t + 1] - o->columns_at[t];
  const Column *before = many && o->columns_at[t] ? c - 1 : 0;
  i32 test = before ? before->tests : 0, piece = before ? before->pieces : 0;
  u64 own[64], after[65], others = ~(u64)0;
  for (i32 i = 0; i < many; i++)
    for (own[i] = ~(u64)0; test < c[i].tests; test++)
      own[i] &= o->test[test].left_out | -(u64)left_of(o->level, &o->test[test].ask, x);
  after[many] = ~(u64)0;
  for (i32 i = many; i--;) after[i] = after[i + 1] & own[i];
  double here = leaf[lowest_bit(after[0])];
  for (i32 i = 0; i < many; others &= own[i++]) {
    double v = here;
    if (c[i].column < 0 || !open[c[i].column]) piece = c[i].pieces;
    for (u64 rest = others & after[i + 1]; piece < c[i].pieces; piece++) {
      double new = leaf[lowest_bit(rest & o->piece[piece].stay)];
      change[o->piece[piece].place] += new - v;
      v = new;
    }
  }
  return here;
}

static void add_to(double *d, i64 end, u64 some, double v) { /* to a set of places, as differences */
  for (i64 at = 0; some;) {
    i32 low = lowest_bit(some);
    at += low, some >>= low, d[at] += v;
    i32 run = ~some ? lowest_bit(~some) : 64;
    at += run;
    if (at < end) d[at] -= v;
    if (run == 64) return;
    some >>= run;
  }
}
/* `d`: from the first place of a word on; `end`: how many places its column has from there. */
static void open_below(const Opened *o, i32 n, i32 g, i32 word, u64 some, const double *x, double own, double *d,
                       i64 end) {
  const Knot *k = o->knot + n;
  for (; k->ask.feature >= 0; k = o->knot + n) {
    if (o->owner[k->ask.feature] != g) {
      n = left_of(o->level, &k->ask, x) ? n + 1 : k->right;
      continue;
    }
    u64 way = go_left(o, k, word), left = some & way, right = some & ~way;
    if (left && right) open_below(o, n + 1, g, word, left, x, own, d, end);
    n = right ? k->right : n + 1;
    some = right ? right : left;
  }
  if (k->ask.bound != own) add_to(d, end, some, k->ask.bound - own);
}
/* `with`: the places of each column that are still with the row, from `word[g]` on; `seen`: whose they are. */
static double walk(const Opened *o, i32 t, const double *x, const uint8_t *open, double *change, i64 turn, i64 *seen,
                   const i32 *word, u64 *with) {
  i32 n = o->root[t];
  const Knot *k = o->knot;
  while (k[n].ask.feature >= 0) n = left_of(o->level, &k[n].ask, x) ? n + 1 : k[n].right;
  double own = k[n].ask.bound;
  n = o->root[t];
  while (change && k[n].ask.feature >= 0) {
    i32 g = o->owner[k[n].ask.feature], left = left_of(o->level, &k[n].ask, x), other = left ? k[n].right : n + 1;
    i32 many = g < 0 || !open[g] ? 0 : o->at[g + 1] - o->at[g];
    for (i32 w = 0; 64 * w < many; w++) {
      u64 *mine = with + word[g] + w, way = go_left(o, k + n, w);
      if (seen[g] != turn) *mine = many - 64 * w < 64 ? ((u64)1 << (many - 64 * w)) - 1 : ~(u64)0;
      u64 away = *mine & (left ? ~way : way);
      if (away) open_below(o, other, g, w, away, x, own, change + o->at[g] + 64 * w, many - 64 * w);
      *mine &= left ? way : ~way;
    }
    if (g >= 0) seen[g] = turn;
    n = left ? n + 1 : k[n].right;
  }
  return own;
}
/* Some sums of rows `(S, J)`, written to `(S, M)`; with `change` those after every change of the columns that are
   `open`, `(S, G)`, written to `(S, M, at[G])`. 0 without memory. */
API i32 opened_sums(const Opened *o, const double *x, i32 S, i32 J, i32 first, i32 end, const uint8_t *open,
                    double *base, double *change) {
  int broken = 0;
  i64 P = o->at[o->G], *seen = room_for(&broken, o->G, 8);
  i32 *word = room_for(&broken, (size_t)o->G + 1, 4);
  for (i32 g = 0; word && g < o->G; g++) word[g + 1] = word[g] + (o->at[g + 1] - o->at[g] + 63) / 64;
  u64 *with = room_for(&broken, word ? word[o->G] : 1, 8);
  i64 M = o->M, many = change ? 8 : 1024; /* rows that one tree is asked about while it is at hand */
  for (i64 s = 0; !broken && s < S; s++)
    for (i32 m = first; m < end; m++) {
      base[s * M + m] = 0;
      for (i32 g = 0; change && g < o->G; g++)
        if (open[s * o->G + g])
          memset(change + (s * M + m) * P + o->at[g], 0, sizeof(double) * (size_t)(o->at[g + 1] - o->at[g]));
    }
  for (i64 from = 0; !broken && from < S; from += many)
    for (i32 t = 0; t < o->T; t++)
      for (i64 s = from; o->sum[t] >= first && o->sum[t] < end && s < S && s < from + many; s++) {
        double *d = change ? change + (s * M + o->sum[t]) * P : 0;
        const uint8_t *some = change ? open + s * o->G : 0;
        base[s * M + o->sum[t]] += d && o->leaf_at[t] >= 0
                                       ? ask_bits(o, t, x + s * J, some, d)
                                       : walk(o, t, x + s * J, some, d, s * o->T + t + 1, seen, word, with);
      }
  for (i64 s = 0; !broken && change && s < S; s++)
    for (i64 b = s * M + first; b < s * M + end; b++)
      for (i32 g = 0; g < o->G; g++) {
        double v = base[b];
        for (i32 p = o->at[g]; open[s * o->G + g] && p < o->at[g + 1]; p++) change[b * P + p] = v += change[b * P + p];
      }
  free(seen), free(word), free(with);
  return !broken;
}

static double bent(double u, double below) { return (u > 0 ? u : 0) + below * (u < 0 ? u : 0); } /* without a branch */
/* One hidden layer with a kink at 0 and the slope `below` under it. Features `(S, J)` and their columns, -1 for
   one that never moves; weights `(J, H)` and `(H, K)`; `moved` `(H, at[G])`: what a place adds to a unit. Sums
   `(S, M)`, the first `K` of them; with `change` those after every change of the columns that are `open`, `(S, G)`:
   `(S, M, at[G])`. 0 without memory. */
API i32 layer_sums(const double *f, i32 S, i32 J, const i32 *owner, i32 H, const double *first,
                   const double *start, double below, i32 K, const double *last, const double *end, i32 G,
                   const i32 *at, const double *moved, i32 M, const uint8_t *open, double *base, double *change) {
  int broken = 0;
  i64 P = at[G];
  double *all = room_for(&broken, H, 8), *own = room_for(&broken, (size_t)G * H, 8);
  for (i64 s = 0; !broken && s < S; s++) {
    memcpy(all, start, sizeof(double) * (size_t)H);
    memset(own, 0, sizeof(double) * (size_t)G * (size_t)H);
    for (i32 j = 0; j < J; j++) {
      double v = f[s * J + j], *o = owner[j] < 0 ? 0 : own + (i64)owner[j] * H;
      const double *w = first + (i64)j * H;
      if (v == 0) continue;
      for (i32 h = 0; h < H; h++) all[h] += v * w[h];
      for (i32 h = 0; o && h < H; h++) o[h] += v * w[h];
    }
    for (i32 k = 0; k < K; k++) {
      double z = end[k];
      for (i32 h = 0; h < H; h++) z += last[(i64)h * K + k] * bent(all[h], below);
      base[s * M + k] = z;
      double *c = change ? change + (s * M + k) * P : 0;
      for (i32 g = 0; c && g < G; g++) {
        if (!open[s * G + g]) continue;
        for (i32 p = at[g]; p < at[g + 1]; p++) c[p] = end[k];
        for (i32 h = 0; h < H; h++) {
          double rest = all[h] - own[(i64)g * H + h], w = last[(i64)h * K + k];
          const double *m = moved + h * P;
          for (i32 p = at[g]; p < at[g + 1]; p++) c[p] += w * bent(rest + m[p], below);
        }
      }
    }
  }
  free(all), free(own);
  return !broken;
}

#define NEAREST 64 /* real rows that are looked at, at most */
static double apart(i32 named, double a, double b) { /* squared; of a category both are levels, -1 for none */
  return named ? (a == b ? 0 : (a >= 0) + (b >= 0)) : (a - b) * (a - b);
}
/* Rows `(S, G)` and real ones `(2*half, G)`, levels as numbers; `bar` `(S, 2)`; out `(S, at[G])`: how far the
   mean distance to the `near` nearest rows of a half is beyond its bar, the larger of the two. */
API void lonely_changes(const double *x, i32 S, i32 G, const double *real, i32 half, i32 near,
                        const uint8_t *named, const i32 *at, const double *value, const double *bar,
                        double *out) {
  double far[NEAREST], part[NEAREST];
  i32 who[NEAREST];
  for (i64 s = 0; s < S; s++)
    for (i32 h = 0; h < 2; h++) {
      const double *own = x + s * G;
      i32 k = 0;
      for (i32 r = h * half; r < (h + 1) * half; r++) {
        double d = 0;
        for (i32 g = 0; g < G; g++) d += apart(named[g], own[g], real[(i64)r * G + g]);
        if (k == near && d >= far[k - 1]) continue;
        i32 i = k < near ? k++ : k - 1;
        for (; i && far[i - 1] > d; i--) far[i] = far[i - 1], who[i] = who[i - 1];
        far[i] = d, who[i] = r;
      }
      for (i32 g = 0; g < G; g++) {
        for (i32 i = 0; i < k; i++) part[i] = far[i] - apart(named[g], own[g], real[(i64)who[i] * G + g]);
        for (i32 p = at[g]; p < at[g + 1]; p++) {
          double sum = 0, *o = out + s * at[G] + p;
          for (i32 i = 0; i < k; i++)
            sum += sqrt(fmax(part[i] + apart(named[g], value[p], real[(i64)who[i] * G + g]), 0));
          sum = sum / k - bar[2 * s + h];
          *o = h && *o > sum ? *o : sum;
        }
      }
    }
}
