/* Go on with trajectories, each with steps of its own length, until something jumps or they end. */
#include "kernels.h"

/* Errors are measured relative to a state, but to no less than a share of the largest value that it has had. States
   that start from zero have no size of their own yet: to no less than a share of the largest value that any has had.
   Those that start from very little have: an epidemic may grow from 1e-20. */
static const double LEAST = 1e-3, NOTHING = 1e-13;
static const double ALL_BLANK = 1e-6; /* where all states have been zero: the share of what they reach by the next stop */
static const double SAFE = 0.9, SHORTER = 0.2, LONGER = 6.0, BAD = 0.1; /* changes of the length of a step */
static const double ORDER = 3.0;                     /* of the solution that the error is measured by */
static const double SHORTEST = 1e-12, FIRST = 1e-3;  /* of the way to the next stop: the first step after a corner */
static const double CHANGE = 0.03;                   /* of a state, at most, in it */
static const double STRETCH = 1.1;                   /* a stop that is so much further than a step is reached by it */
static const double AHEAD = 1e-4;                    /* of a step: how far ahead the field's own change is looked at */
static const double STUCK = 1e-14;                   /* of the time: a step that is shorter */
static const double TINY = 1e-290;                   /* what a size is divided by at least */

/* _Stops, _Walkers, Steps and _Work of integrate_batch.py. */
typedef struct { Matrix stops; Index last; MaskMatrix corner; IndexMatrix halt; Matrix low, high; MaskMatrix jumps; } Stops;
typedef struct {
    Index e;
    Matrix numbers;
    Index most, tries;
    Vector t;
    Matrix x;
    Index stop;
    Matrix size;
    MaskMatrix blank;
    Vector h;
    Mask fresh, going, waits;
    Index jumped;
    MaskMatrix held;
    Mask crossed;
} Walkers;
typedef struct { Index who; Vector t, until; Matrix x, end; Matrices bend; } Steps;
typedef struct { Vector r, r_all, r_conditions, truth, f0, ahead, ft; Matrix fx, nothing; Step to; } Work;
typedef struct {
    Tape tape, by_states;
    Drive drive;
    int64_t varies;
    Tape conditions;
    Drive plain;
    Stops stops;
    Walkers w;
    Index rows;
    double tolerance;
    Steps steps;
    int64_t count;
    Work work;
} Walk;

/* Compute the error of a step relative to the states; infinite where it is not finite.

   Where all states have been zero so far, they are given a size: a share of what the slopes of this step lead to by the
   next stop, which is so many steps of this length away. */
static double relative_error(const double *x, const Step *to, double *size, const uint8_t *blank, double steps, int64_t K)
{
    const double *end = to->end.at, *error = to->error.at;
    double largest = 0.0, ahead = 0.0, found = 0.0;
    for (int64_t k = 0; k < K; k++) {
        largest = most(most(largest, size[k]), fabs(x[k]));
        ahead = most(ahead, fabs(end[k]));
    }
    if (largest == 0.0)
        for (int64_t k = 0; k < K; k++)
            size[k] = ALL_BLANK * steps * ahead / LEAST;
    largest = most(largest, ahead);
    for (int64_t k = 0; k < K; k++) {
        if (!isfinite(end[k]) || !isfinite(error[k]))
            return INFINITY;
        double both = most(fabs(x[k]), fabs(end[k]));
        double share = blank[k] ? NOTHING * largest : 0.0;
        double matter = most(most(LEAST * most(size[k], both), both), share + TINY);
        found = most(found, fabs(error[k]) / matter);
    }
    return found;
}

/* The length of a first step, in which no state changes by much. */
static double first_length(const double *f, const double *size, double way, int64_t K)
{
    double largest = 0.0, rate = 0.0;
    for (int64_t k = 0; k < K; k++)
        largest = most(largest, size[k]);
    for (int64_t k = 0; k < K; k++)
        rate = most(rate, fabs(f[k]) / most(most(size[k], LEAST * largest), TINY));
    return least(most(CHANGE / most(rate, TINY), SHORTEST * way), FIRST * way);
}

/* Advance one trajectory; returns how many steps are written now, or -1 if there is no room for more. */
static int64_t advance(const Walk *a, int64_t row, int64_t count)
{
    const Walkers *w = &a->w;
    const Stops *stops = &a->stops;
    const Steps *steps = &a->steps;
    const Step *to = &a->work.to;
    int64_t K = w->x.columns, N = w->numbers.columns, T = w->held.columns, n = stops->stops.columns;
    int64_t e = w->e.at[row], last = stops->last.at[e];
    double *x = w->x.at + row * K, *size = w->size.at + row * K;
    const uint8_t *blank = w->blank.at + row * K;
    uint8_t *held = w->held.at + row * T;
    double *r = a->work.r.at, *r_all = a->work.r_all.at, *f0 = a->work.f0.at, *fx = a->work.fx.at, *ft = a->work.ft.at;
    double *ahead = a->work.ahead.at, *truth = a->work.truth.at;
    for (int64_t j = 0; j < N; j++) {
        r[1 + K + j] = r_all[1 + K + j] = w->numbers.at[row * N + j];
        if (T)
            a->work.r_conditions.at[1 + K + j] = w->numbers.at[row * N + j];
    }
    while (w->stop.at[row] < last) {
        if (count == steps->who.n)
            return -1;
        if (w->tries.at[row] >= w->most.at[row]) {
            w->going.at[row] = 0;
            break;
        }
        w->tries.at[row]++;
        int64_t stop = w->stop.at[row], goal = stops->halt.at[e * n + stop];
        double now = w->t.at[row], low = stops->low.at[e * n + stop], high = stops->high.at[e * n + stop];
        double way = stops->stops.at[e * n + goal] - now;
        evaluate(&a->by_states, &a->drive, e, least(most(now, low), high), x, K, r_all, f0);
        double rate = 0.0;
        for (int64_t k = 0; k < K; k++)
            rate += fabs(f0[k]);
        if (!isfinite(rate)) {
            w->going.at[row] = 0;
            break;
        }
        slopes(&a->by_states, r_all, fx, 0, K, 0);
        double pace = w->h.at[row];
        if (w->fresh.at[row]) {
            double first = first_length(f0, size, way, K);
            pace = pace > 0.0 ? least(pace, first) : first;
        }
        int cut = pace * STRETCH >= way;
        double length = cut ? way : pace;
        if (a->varies) {
            evaluate(&a->tape, &a->drive, e, least(most(now + AHEAD * length, low), high), x, K, r, ahead);
            for (int64_t k = 0; k < K; k++)
                ft[k] = (ahead[k] - f0[k]) / (AHEAD * length);
        }
        Start start = {&a->tape, &a->drive, e, K, now, low, high, x, f0, fx, ft, r};
        rodas_step(&start, length, to);
        double error = relative_error(x, to, size, blank, way / length, K) / a->tolerance;
        int good = error <= 1.0;
        double change = BAD;
        if (error < INFINITY)
            change = least(most(SAFE * pow(most(error, 1e-10), -1.0 / (ORDER + 1.0)), SHORTER), LONGER);
        double follow = length * change;
        /* A step that a stop has cut says little of how long one could be. */
        if (good)
            w->h.at[row] = cut ? most(follow, pace) : follow;
        else
            w->h.at[row] = least(follow, 0.9 * pace);
        w->fresh.at[row] = w->fresh.at[row] && !good && w->h.at[row] == 0.0;
        if (good && T) {
            double whole = length;
            length = shortened(&start, whole, to, &a->conditions, &a->plain, a->work.r_conditions.at, held, truth, ahead, T);
            w->crossed.at[row] = (uint8_t)is_new(truth, held, T);
            cut = cut && length == whole;
        }
        if (good) {
            w->t.at[row] = cut ? stops->stops.at[e * n + goal] : now + length;
            steps->who.at[count] = row;
            steps->t.at[count] = now;
            steps->until.at[count] = w->t.at[row];
            for (int64_t k = 0; k < K; k++) {
                double end = to->end.at[k];
                steps->x.at[count * K + k] = x[k];
                steps->end.at[count * K + k] = end;
                steps->bend.at[2 * count * K + k] = to->bend.at[k];
                steps->bend.at[(2 * count + 1) * K + k] = to->bend.at[K + k];
                size[k] = most(most(size[k], fabs(x[k])), fabs(end));
                x[k] = end;
            }
            count++;
            if (cut) {
                w->stop.at[row] = goal;
                w->fresh.at[row] = stops->corner.at[e * n + goal];
            }
        }
        if (w->h.at[row] <= STUCK * most(fabs(w->t.at[row]), 1e-280)) {
            w->going.at[row] = 0;
            break;
        }
        int jumps = cut && (stops->jumps.at[e * n + goal] || (T && stops->corner.at[e * n + goal]));
        if (good && (w->crossed.at[row] || jumps)) {
            w->waits.at[row] = 1;
            w->going.at[row] = 0;
            break;
        }
    }
    return count;
}

/* Advance some trajectories and write down the steps that are taken. Returns how many steps there are; that number
   negative, less one, if there was no room for more: what has been done stays valid, and the call can be repeated. */
ENTRY walk(const Walk *a)
{
    int64_t count = a->count;
    for (int64_t i = 0; i < a->rows.n; i++)
        if (a->w.going.at[a->rows.at[i]]) {
            int64_t now = advance(a, a->rows.at[i], count);
            if (now < 0)
                return -a->steps.who.n - 1;
            count = now;
        }
    return count;
}
